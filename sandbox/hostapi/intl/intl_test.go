package intl

import "testing"

func join(parts []Part) (text string) {
	for _, p := range parts {
		text += p.Value
	}
	return text
}

// What engines with all of ECMA-402 write for en-US.
func TestNumber(t *testing.T) {
	plain := NumberOptions{Style: "decimal", MinInteger: 1, MaxFraction: 3, UseGrouping: "auto", Notation: "standard", SignDisplay: "auto"}
	with := func(change func(*NumberOptions)) NumberOptions { o := plain; change(&o); return o }
	for _, c := range []struct {
		text string
		opt  NumberOptions
		want string
	}{
		{"1234567.891", plain, "1,234,567.891"}, {"0", plain, "0"}, {"-0", plain, "-0"}, {"1e+21", plain, "1,000,000,000,000,000,000,000"},
		{"0.0005", plain, "0.001"}, {"0.00049", plain, "0"}, {"1.0005", plain, "1.001"}, {"999.9995", plain, "1,000"}, {"5e-324", plain, "0"},
		{"NaN", plain, "NaN"}, {"-Infinity", plain, "-∞"}, {"123456789012345678901234567890", plain, "123,456,789,012,345,678,901,234,567,890"},
		{"1.5", with(func(o *NumberOptions) { o.MinFraction, o.MaxFraction, o.MinInteger = 2, 2, 3 }), "001.50"},
		{"2.5", with(func(o *NumberOptions) { o.MaxFraction = 0 }), "3"},
		{"1234.5", with(func(o *NumberOptions) { o.UseGrouping = "false" }), "1234.5"}, {"1234", with(func(o *NumberOptions) { o.UseGrouping = "min2" }), "1234"},
		{"0.256", with(func(o *NumberOptions) { o.Style, o.MaxFraction = "percent", 0 }), "26%"},
		{"-1234.5", with(func(o *NumberOptions) {
			o.Style, o.Currency, o.CurrencyDisplay, o.MinFraction, o.MaxFraction = "currency", "USD", "symbol", 2, 2
		}), "-$1,234.50"},
		{"-5", with(func(o *NumberOptions) {
			o.Style, o.Currency, o.CurrencyDisplay, o.CurrencySign, o.MaxFraction = "currency", "CHF", "symbol", "accounting", 0
		}), "(CHF\u00a05)"},
		{"123456", with(func(o *NumberOptions) { o.MinSignificant, o.MaxSignificant = 1, 3 }), "123,000"},
		{"0.00012345", with(func(o *NumberOptions) { o.MinSignificant, o.MaxSignificant = 2, 2 }), "0.00012"},
		{"1", with(func(o *NumberOptions) { o.MinSignificant, o.MaxSignificant = 3, 5 }), "1.00"}, {"0", with(func(o *NumberOptions) { o.MinSignificant, o.MaxSignificant = 3, 5 }), "0.00"},
		{"1234", with(func(o *NumberOptions) { o.Notation, o.CompactDisplay, o.CompactRounding = "compact", "short", true }), "1.2K"},
		{"999999", with(func(o *NumberOptions) { o.Notation, o.CompactDisplay, o.CompactRounding = "compact", "long", true }), "1 million"},
		{"15300000", with(func(o *NumberOptions) { o.Notation, o.CompactDisplay, o.CompactRounding = "compact", "short", true }), "15M"},
		{"0.0123", with(func(o *NumberOptions) { o.Notation, o.CompactDisplay, o.CompactRounding = "compact", "short", true }), "0.012"},
		{"12345", with(func(o *NumberOptions) { o.Notation = "scientific" }), "1.235E4"}, {"0.00012", with(func(o *NumberOptions) { o.Notation = "engineering" }), "120E-6"},
		{"5", with(func(o *NumberOptions) { o.SignDisplay = "always" }), "+5"}, {"0", with(func(o *NumberOptions) { o.SignDisplay = "exceptZero" }), "0"},
		{"-0", with(func(o *NumberOptions) { o.SignDisplay = "negative" }), "0"}, {"-7", with(func(o *NumberOptions) { o.SignDisplay = "never" }), "7"},
		{"1e500", plain, ""}, {"x", plain, ""}, {"", plain, ""}, {"1e", plain, ""},
	} {
		parts, _ := Number(c.text, c.opt)
		if got := join(parts); got != c.want {
			t.Errorf("%s, %+v: got %q, want %q", c.text, c.opt, got, c.want)
		}
	}
}

func TestDate(t *testing.T) {
	const ms = 1577934245678 // 2020-01-02T03:04:05.678Z, a Thursday
	for _, c := range []struct {
		opt  DateOptions
		want string
	}{
		{DateOptions{Year: "numeric", Month: "numeric", Day: "numeric"}, "1/2/2020"},
		{DateOptions{Year: "2-digit", Month: "2-digit", Day: "2-digit"}, "01/02/20"},
		{DateOptions{Year: "numeric", Month: "numeric", Day: "numeric", Hour: "numeric", Minute: "2-digit", Second: "2-digit", HourCycle: "h12"}, "1/2/2020, 3:04:05 AM"},
		{DateOptions{Hour: "numeric", Minute: "numeric", HourCycle: "h23"}, "03:04"}, {DateOptions{Hour: "numeric", HourCycle: "h12"}, "3 AM"},
		{DateOptions{Minute: "2-digit", Second: "2-digit", Fraction: 2}, "04:05.67"},
		{DateOptions{Weekday: "long", Year: "numeric", Month: "long", Day: "numeric"}, "Thursday, January 2, 2020"},
		{DateOptions{Weekday: "short", Month: "short", Day: "numeric"}, "Thu, Jan 2"}, {DateOptions{Month: "long", Year: "numeric"}, "January 2020"},
		{DateOptions{Month: "long", Day: "numeric", Hour: "numeric", Minute: "2-digit", HourCycle: "h12"}, "January 2 at 3:04 AM"},
		{DateOptions{DateStyle: "full", TimeStyle: "long", HourCycle: "h12", TimeZone: "+05:30"}, "Thursday, January 2, 2020 at 8:34:05 AM GMT+5:30"},
		{DateOptions{DateStyle: "medium", TimeStyle: "short", HourCycle: "h12", TimeZone: "-04"}, "Jan 1, 2020, 11:04 PM"},
		{DateOptions{DateStyle: "short"}, "1/2/20"}, {DateOptions{TimeStyle: "full", HourCycle: "h12"}, "3:04:05 AM Coordinated Universal Time"},
		{DateOptions{Year: "numeric", TimeZoneName: "short"}, "2020, UTC"},
		{DateOptions{Weekday: "narrow"}, "T"}, {DateOptions{Weekday: "long", Day: "numeric"}, "2 Thursday"},
		{DateOptions{Year: "numeric", TimeZone: "Europe/Berlin"}, ""}, {DateOptions{Year: "numeric", TimeZone: "+25:00"}, ""},
	} {
		if c.opt.TimeZone == "" {
			c.opt.TimeZone = "UTC"
		}
		parts, _ := Date(ms, c.opt)
		if got := join(parts); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.opt, got, c.want)
		}
	}
}

// Whatever is asked for, nothing panics and the output is bounded.
func FuzzFormat(f *testing.F) {
	f.Add("1234.5", 1, 2, 3, uint8(1), 1e12)
	f.Add("1e+300", 21, 100, 21, uint8(7), -8.64e15)
	f.Fuzz(func(t *testing.T, text string, minInteger, fraction, significant int, choice uint8, ms float64) {
		pick := func(i uint8, list ...string) string { return list[int(choice>>i)%len(list)] }
		parts, _ := Number(text, NumberOptions{Style: pick(0, "decimal", "percent", "currency"), Currency: "EUR", CurrencyDisplay: pick(1, "symbol", "code", "narrowSymbol"),
			MinInteger: minInteger & 31, MinFraction: fraction & 127, MaxFraction: fraction & 127, MinSignificant: significant & 15, MaxSignificant: significant & 31,
			UseGrouping: pick(2, "auto", "false", "min2"), Notation: pick(3, "standard", "compact", "scientific", "engineering"), CompactRounding: choice&64 != 0, SignDisplay: pick(5, "auto", "always", "exceptZero")})
		if n := len(join(parts)); n > 4*maxDigits+200 {
			t.Fatalf("%d bytes", n)
		}
		Date(ms, DateOptions{DateStyle: pick(0, "full", "long", "medium", "short"), TimeStyle: pick(2, "full", "short"), HourCycle: pick(3, "h11", "h12", "h23", "h24"), TimeZone: pick(5, "UTC", "+14:00", text)})
	})
}

package hostapi

import "testing"

// ECMA-402, as far as it goes: en-US, UTC and offsets; everything else is refused by name.
func TestIntl(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`return [(1234567.891).toLocaleString(), (0.5).toLocaleString('en-US', { style: 'percent' }), (1234.5).toLocaleString('en', { style: 'currency', currency: 'usd' }), (-0).toLocaleString(), NaN.toLocaleString(), (12345678901234567890n).toLocaleString(), [1234.5, new Date(0)].toLocaleString()].join(' | ')`,
			"1,234,567.891 | 50% | $1,234.50 | -0 | NaN | 12,345,678,901,234,567,890 | 1,234.5,1/1/1970, 12:00:00 AM"},
		{`const d = new Date(1577934245678); return [d.toLocaleString(), d.toLocaleDateString(), d.toLocaleTimeString(), d.toLocaleDateString('en-US', { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' }), d.toLocaleTimeString('en-US', { hour: '2-digit', minute: '2-digit', hour12: false, timeZone: '+05:30' }), d.toLocaleTimeString([], { timeStyle: 'short' }), d.toLocaleDateString(undefined, { hour: 'numeric' }), new Date(NaN).toLocaleString()].join(' | ')`,
			"1/2/2020, 3:04:05 AM | 1/2/2020 | 3:04:05 AM | Thursday, January 2, 2020 | 08:34 | 3:04 AM | 1/2/2020, 3 AM | Invalid Date"},
		{`const f = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 }); return [[1, 2.25].map(f.format).join(), f.format === f.format, JSON.stringify(f.formatToParts(-1234.5)), Intl.NumberFormat().format('1234567890123456789.5')].join(' ')`,
			`1,2.3 true [{"type":"minusSign","value":"-"},{"type":"integer","value":"1"},{"type":"group","value":","},{"type":"integer","value":"234"},{"type":"decimal","value":"."},{"type":"fraction","value":"5"}] 1,234,567,890,123,456,789.5`},
		{`const f = new Intl.DateTimeFormat(['xx', 'en-US'], { dateStyle: 'medium', timeStyle: 'short', timeZone: 'utc' }); return f.format(0) + ' ' + JSON.stringify(f.resolvedOptions()) + f.formatToParts(new Date(0))[0].type`,
			`Jan 1, 1970, 12:00 AM {"locale":"en-US","timeZone":"UTC","dateStyle":"medium","timeStyle":"short","hourCycle":"h12","calendar":"gregory","numberingSystem":"latn","hour12":true}month`},
		{`return [Object.prototype.toString.call(Intl), new Intl.NumberFormat() instanceof Intl.NumberFormat, Intl.DateTimeFormat() instanceof Intl.DateTimeFormat, Intl.NumberFormat.supportedLocalesOf(['de', 'en', 'en-US']), Intl.NumberFormat.name, typeof Intl.Collator].join()`,
			"[object Intl],true,true,en,en-US,NumberFormat,undefined"},
		{`const bad = [() => (1).toLocaleString('de-DE'), () => new Intl.DateTimeFormat('en-GB'), () => (1).toLocaleString('x'), () => new Intl.NumberFormat('en', { style: 'unit', unit: 'meter' }), () => new Intl.NumberFormat('en', { style: 'currency' }), () => new Intl.NumberFormat('en', { style: 'currency', currency: 'x' }),
			() => new Intl.DateTimeFormat('en', { timeZone: 'Europe/Berlin' }), () => new Intl.DateTimeFormat('en', { calendar: 'hebrew' }), () => new Intl.DateTimeFormat('en', { dateStyle: 'full', year: 'numeric' }), () => new Intl.DateTimeFormat('en').format(NaN), () => new Intl.NumberFormat('en', { minimumFractionDigits: 101 }), () => new Intl.NumberFormat(null)];
			return bad.map((f) => { try { f(); return 'none'; } catch (e) { return e.name; } }).join()`,
			"RangeError,RangeError,RangeError,RangeError,TypeError,RangeError,RangeError,RangeError,TypeError,RangeError,RangeError,TypeError"},
	})
}

package cronexpr

import (
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
)

func parse(t testing.TB, text string) Expr {
	t.Helper()
	e, err := Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return e
}

// cron-grammar-enforced: the accept and refuse lists of attachments §4.1 and §4.2; a refusal names the field and the reason.
func TestCronGrammarEnforced(t *testing.T) {
	for _, text := range []string{
		"* * * * *", "0 * * * *", "*/5 * * * *", "0,30 * * * *", "0 9-17 * * 1-5", "0-59/15 0-23/2 1-31 1-12 0-6",
		"05 03 * * *", "5-5 * * * *", "1-3,2-4 * * * *", "*/59 */23 */30 */11 */6", "0-1/59 * * * *",
	} {
		if e := parse(t, text); e.String() != text {
			t.Errorf("%q is kept as %q", text, e)
		}
	}
	for text, names := range map[string]string{
		"0 24 * * *":     "hour: 24 is outside 0-23",
		"60 0 * * *":     "minute: 60 is outside 0-59",
		"0 0 0 * *":      "day of month: 0 is outside 1-31",
		"0 0 32 * *":     "day of month: 32 is outside 1-31",
		"0 0 * 13 *":     "month: 13 is outside 1-12",
		"0 0 * 0 *":      "month: 0 is outside 1-12",
		"0 0 * * 7":      "day of week: 7 is outside 0-6",
		"5-1 * * * *":    "minute: has the inverted range 5-1",
		"*/0 * * * *":    "minute: has the step",
		"*/60 * * * *":   "allowed are 1 to 59",
		"1-2/60 * * * *": "allowed are 1 to 59",
		"* */24 * * *":   "hour: has the step",
		"* * */31 * *":   "day of month: has the step",
		"* * * */12 *":   "month: has the step",
		"* * * * */7":    "day of week: has the step",
		"5/10 * * * *":   "minute: has a step on the bare number 5",
		"0 3 * *":        "expression: has 4 fields",
		"0 3 * * * *":    "expression: has 6 fields",
		"0  3 * * *":     "two spaces",
		"0,,3 * * * *":   "minute: has an empty term",
		"0,3, * * * *":   "minute: has an empty term",
		",3 * * * *":     "minute: has an empty term",
		"":               "expression: is empty",
		" 0 3 * * *":     "space",
		"0 3 * * * ":     "space",
		"0\t3 * * *":     "control",
		"0 3 * * mon":    "holds m",
		"? * * * *":      "holds ?",
		"0 0 L * *":      "holds L",
		"0 0 1W * *":     "holds W",
		"0 0 * * 1#2":    "holds #",
		"@daily":         "holds @",
		"+5 * * * *":     "holds +",
		"-5 * * * *":     "minute: \"\" is not a number",
		"5- * * * *":     "minute: \"\" is not a number",
		"1-2-3 * * * *":  "minute",
		"*/ * * * *":     "minute: has the step",
		"*/1/2 * * * *":  "minute: has the step",
		"*-5 * * * *":    "minute",
		"** * * * *":     "minute",
		"*5 * * * *":     "minute",
		"005 * * * *":    "minute: \"005\" is not a number",
		"0 0 1 1 \u0661": "non-ASCII",
		"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25 * * * *": "longer than 64",
	} {
		_, err := Parse(text)
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Detail(err), names) {
			t.Errorf("%q: %v, want a refusal with %q", text, err, names)
		}
	}
	exact := strings.Repeat("0", 1) + strings.Repeat(",1", 27) + " * * * *" // 63 characters
	parse(t, "0"+exact)
	if _, err := Parse("00" + "," + exact); err == nil {
		t.Error("an expression of more than 64 characters is accepted")
	}
}

// attachments §4.2: the table of canonical forms.
func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		"*/1 * * * *":             "* * * * *",
		"*/15 * * * *":            "0,15,30,45 * * * *",
		"45,0,15,30 * * * *":      "0,15,30,45 * * * *",
		"0 0,1,2,5 * * *":         "0 0-2,5 * * *",
		"05 03 * * *":             "5 3 * * *",
		"0-59 0-23 1-31 1-12 0-6": "* * * * *",
		"1,2 * * * *":             "1,2 * * * *",
		"58,59,57 * * * 6,5":      "57-59 * * * 5,6",
	} {
		e := parse(t, text)
		if got := e.Canonical(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if again := parse(t, want); again.Canonical() != want || again.sets != e.sets {
			t.Errorf("%q: the canonical form %q is another expression", text, want)
		}
	}
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	out, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// attachments §4.2: restriction by value set, the union of the day fields, dates that do not exist, leap days.
func TestNext(t *testing.T) {
	for _, row := range []struct{ expr, after, want string }{
		{"* * * * *", "2026-01-01 00:00", "2026-01-01 00:01"},
		{"0 3 1 * 1", "2026-06-01 03:00", "2026-06-08 03:00"}, // the 1st of June 2026 is a Monday
		{"0 3 1 * 1", "2026-06-29 03:00", "2026-07-01 03:00"},
		{"0 3 1-31 * 1", "2026-06-02 00:00", "2026-06-08 03:00"}, // 1-31 restricts nothing
		{"0 3 */1 * 1", "2026-06-02 00:00", "2026-06-08 03:00"},
		{"0 3 */2 * 1", "2026-06-02 00:00", "2026-06-03 03:00"}, // the 3rd, a Wednesday: */2 restricts
		{"0 3 31 * 0-6", "2026-06-02 00:00", "2026-07-31 03:00"},
		{"59 23 31 12 *", "2026-12-31 23:59", "2027-12-31 23:59"},
		{"0 0 29 2 *", "2096-02-29 00:00", "2104-02-29 00:00"}, // 2100 is no leap year
		{"0 0 29 2 *", "2097-01-01 00:00", "2104-02-29 00:00"},
		{"0 0 30 2 *", "2026-01-01 00:00", ""},
		{"0 0 31 2,4,6,9,11 *", "2026-01-01 00:00", ""},
		{"30 12 * * *", "2026-03-01 12:30", "2026-03-02 12:30"},
		{"5,10 0,6 * * *", "2026-03-01 00:10", "2026-03-01 06:05"},
	} {
		got, ok := parse(t, row.expr).Next(at(t, row.after).Add(59 * time.Second))
		if ok != (row.want != "") || ok && !got.Equal(at(t, row.want)) {
			t.Errorf("%q after %s: %v %t, want %q", row.expr, row.after, got, ok, row.want)
		}
	}
	if _, ok := (Expr{}).Next(at(t, "2026-01-01 00:00")); ok {
		t.Error("the zero value matches")
	}
	local := time.FixedZone("x", 3*3600)
	if got, _ := parse(t, "0 0 * * *").Next(at(t, "2026-01-01 22:00").In(local)); !got.Equal(at(t, "2026-01-02 00:00")) {
		t.Errorf("matching is not in UTC: %v", got)
	}
}

// Whatever the text: no panic, a refusal or an expression whose canonical form is a fixed point, and Next gives the first
// minute that Match accepts.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/5 1-3/2 1,2 * 0", "0 0 30 2 *", "5/10 * * * *", "", "0 0 29 2 1"} {
		f.Add(s, int64(1_790_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		e, err := Parse(text)
		if err != nil {
			if fault.Detail(err) == "" {
				t.Fatal("a refusal without a reason")
			}
			return
		}
		c := e.Canonical()
		again, err := Parse(c)
		if len(c) <= MaxLen && (err != nil || again.Canonical() != c || again.sets != e.sets) {
			t.Fatalf("%q has the canonical form %q, which gives %v", text, c, err)
		}
		after := time.Unix(unix%4_000_000_000, 0)
		next, ok := e.Next(after)
		if ok && (!e.Match(next) || !next.After(after) || next.Second() != 0) {
			t.Fatalf("%q after %v gives %v", text, after, next)
		}
		for m, n := after.UTC().Truncate(time.Minute).Add(time.Minute), 0; n < 100 && (!ok || m.Before(next)); m, n = m.Add(time.Minute), n+1 {
			if e.Match(m) {
				t.Fatalf("%q after %v gives %v, but %v matches before", text, after, next, m)
			}
		}
	})
}

package jsonraw

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"edged/internal/fault"
)

// host-api §2.2: what is refused on the raw bytes, and what is not.
func TestCheck(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	good := []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `1.5e-3`, `1E+2`, `""`, " \t\r\n{ \"a\" : [ 1 , 2 ] } \n",
		`{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}`,
		`"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`, `"` + "é😀\u007f\uffff" + `"`,
		`1e308`, `1e-400`, `0e999999999999999999999`, `-1.7976931348623157e308`,
		strings.Repeat("9", 308), "0." + strings.Repeat("9", 2000), deep(MaxDepth),
		`{"":1," ":2}`, `{"__proto__":1,"constructor":2}`,
	}
	for _, s := range good {
		if err := Check([]byte(s)); err != nil {
			t.Errorf("%.60q: %v", s, err)
		}
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Errorf("%.60q: accepted, but encoding/json says %v", s, err)
		}
	}
	bad := map[string]string{ // document → part of the sentence
		"":                             "missing",
		"  ":                           "missing",
		"\ufeff{}":                     "missing",
		`{"a":1} x`:                    "follows",
		`{}{}`:                         "follows",
		`01`:                           "follows",
		`1 2`:                          "follows",
		"\"\xff\"":                     "UTF-8",
		"\"\xed\xa0\x80\"":             "UTF-8",
		`"\ud800"`:                     "lone surrogate",
		`"\ud800\u0041"`:               "lone surrogate",
		`"\udc00\ud800"`:               "lone surrogate",
		`{"\ud800":1}`:                 "lone surrogate",
		`"\x41"`:                       "invalid escape",
		`"\u12g4"`:                     "invalid escape",
		`"\u12"`:                       "invalid escape",
		`"\`:                           "not closed",
		`"abc`:                         "not closed",
		"\"a\nb\"":                     "control character",
		"\"a\x00b\"":                   "control character",
		`{"a":1,"a":2}`:                "twice",
		`{"a":1,"\u0061":2}`:           "twice",
		`{"x":[{"b":{},"b":{}}]}`:      "twice",
		`{"a":{"z":1,"y":2,"z":3}}`:    "twice",
		`1e400`:                        "double range",
		`{"v":-1e309}`:                 "double range",
		"1" + strings.Repeat("0", 309): "double range",
		`1e99999999999999999999`:       "double range",
		`+1`:                           "missing",
		`.5`:                           "missing",
		`1.`:                           "malformed",
		`-`:                            "malformed",
		`1e`:                           "malformed",
		`1e+`:                          "malformed",
		`NaN`:                          "missing",
		`Infinity`:                     "missing",
		`nul`:                          "missing",
		`True`:                         "missing",
		`[1,]`:                         "missing",
		`[,1]`:                         "missing",
		`[1 2]`:                        "comma",
		`[1`:                           "comma",
		`{"a":1,}`:                     "name is missing",
		`{,"a":1}`:                     "name is missing",
		`{a:1}`:                        "name is missing",
		`{"a"}`:                        "colon",
		`{"a" 1}`:                      "colon",
		`{"a":}`:                       "missing",
		`{"a":1 "b":2}`:                "comma",
		`{"a":1`:                       "comma",
		`'a'`:                          "missing",
		`/**/{}`:                       "missing",
		deep(MaxDepth + 1):             "deeply",
		strings.Repeat("[", 1<<20):     "deeply",
	}
	for s, want := range bad {
		err := Check([]byte(s))
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%.60q: got %v, want Invalid with %q", s, err, want)
		}
	}
}

// The work is bounded for documents that try to make it quadratic; the limits are far above what is needed.
func TestHostileDocumentsAreCheap(t *testing.T) {
	var many strings.Builder
	many.WriteString(`{"k0":0`)
	for i := range 300_000 {
		many.WriteString(`,"k`)
		many.WriteString(strings.Repeat("0", 1+i%3))
		many.WriteString(itoa(i + 1))
		many.WriteString(`":0`)
	}
	many.WriteString(`}`)
	layers := strings.Repeat(`{"b":`, MaxDepth) + `"` + strings.Repeat("x", 4<<20) + `"` + strings.Repeat(`,"a":0}`, MaxDepth)
	for name, doc := range map[string]string{
		"many members":  many.String(),
		"many arrays":   "[" + strings.Repeat("[],", 1<<20) + "[]]",
		"long number":   "0." + strings.Repeat("7", 4<<20),
		"long exponent": "1e-" + strings.Repeat("0", 4<<20) + "7",
		"deep unsorted": layers,
		"many escapes":  `"` + strings.Repeat(`\ud83d\ude00`, 300_000) + `"`,
	} {
		start := time.Now()
		if _, err := Fingerprint([]byte(doc)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: %d bytes took %v", name, len(doc), took)
		}
	}
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func BenchmarkCheck(b *testing.B) {
	doc := []byte(`{"form":"https://edge.forms.takoform.com/forms/WorkerVersion/0.7.0/","space":"default","name":"hello.version",` +
		`"spec":{"worker":{"resourceUid":"w-1"},"handlers":["fetch"],"vars":{` + strings.Repeat(`"K1":{"a":[1,2.5,"text"]},`, 1) +
		`"GREETING":"` + strings.Repeat("hello ", 100) + `"}}}`)
	b.Run("impl=ours", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if err := Check(doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("impl=fingerprint", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Fingerprint(doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("impl=encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			var v any
			if err := json.Unmarshal(doc, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

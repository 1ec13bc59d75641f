package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"edged/internal/fault"
)

// sql §3: what is a TypeError, what is an sql_error, what is out of range.
func TestParseSeparatesShapeFromContent(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"type":"null"},`, MaxParams+1), ",")
	for _, tt := range []struct {
		params string
		want   *fault.Named
	}{
		{`[]`, nil}, {`[{"type":"null"}]`, nil}, {`[ { "type" : "null" } ]`, nil},
		{`[{"type":"integer","value":"0"}]`, nil}, {`[{"value":"-9223372036854775808","type":"integer"}]`, nil},
		{`[{"type":"integer","value":"9223372036854775807"}]`, nil}, {`[{"type":"integer","value":"9223372036854775808"}]`, ErrSQL},
		{`[{"type":"integer","value":"-0"}]`, ErrSQL}, {`[{"type":"integer","value":"+1"}]`, ErrSQL}, {`[{"type":"integer","value":"01"}]`, ErrSQL},
		{`[{"type":"integer","value":" 1"}]`, ErrSQL}, {`[{"type":"integer","value":"1.0"}]`, ErrSQL}, {`[{"type":"integer","value":"1e3"}]`, ErrSQL}, {`[{"type":"integer","value":""}]`, ErrSQL},
		{`[{"type":"integer","value":1}]`, ErrType}, {`[{"type":"integer"}]`, ErrType}, {`[{"type":"integer","value":"1","base64":""}]`, ErrType},
		{`[{"type":"real","value":1}]`, nil}, {`[{"type":"real","value":-1.5e-3}]`, nil}, {`[{"type":"real","value":1e999}]`, ErrRange}, {`[{"type":"real","value":-1e999}]`, ErrRange},
		{`[{"type":"real","value":"1"}]`, ErrType}, {`[{"type":"real","value":null}]`, ErrType}, {`[{"type":"real","value":01}]`, ErrType}, {`[{"type":"real","value":.5}]`, ErrType}, {`[{"type":"real","value":1.}]`, ErrType},
		{`[{"type":"text","value":"\u0000x"}]`, nil}, {`[{"type":"text","value":"\ud83d\ude00"}]`, nil}, {`[{"type":"text","value":"\ud83d"}]`, ErrSQL}, {`[{"type":"text","value":"\ude00\ud83d"}]`, ErrSQL}, {`[{"type":"text","value":"\ud83d\u0041"}]`, ErrSQL},
		{`[{"type":"text","value":1}]`, ErrType}, {`[{"type":"text"}]`, ErrType}, {`[{"type":"text","value":"\x"}]`, ErrType}, {"[{\"type\":\"text\",\"value\":\"\n\"}]", ErrType},
		{`[{"type":"blob","base64":""}]`, nil}, {`[{"type":"blob","base64":"AA=="}]`, nil}, {`[{"type":"blob","base64":"AB=="}]`, ErrSQL}, {`[{"type":"blob","base64":"AA"}]`, ErrSQL},
		{`[{"type":"blob","base64":"AA==\n"}]`, ErrSQL}, {`[{"type":"blob","base64":"A-_="}]`, ErrSQL}, {`[{"type":"blob","base64":1}]`, ErrType}, {`[{"type":"blob","value":"AA=="}]`, ErrType},
		{`[true]`, ErrType}, {`[1]`, ErrType}, {`["a"]`, ErrType}, {`[null]`, ErrType}, {`[{}]`, ErrType}, {`[[]]`, ErrType}, {`[{"type":"boolean","value":true}]`, ErrType}, {`[{"type":"null","value":null}]`, ErrType},
		{`[{"type":"null","x":1}]`, ErrType}, {`[{"type":"null","type":"null"}]`, ErrType}, {`[{"__proto__":{}}]`, ErrType}, {`{}`, ErrType}, {`null`, ErrType}, {`[{"type":"null"},]`, ErrType}, {`[{"type":"null"}`, ErrType},
		{`[` + many + `]`, ErrType}, {`[{"type":"integer","value":"x"},true]`, ErrType}, {`[{"type":"integer","value":"x"},{"type":"real","value":1e999}]`, ErrSQL},
	} {
		call := `{"sql":"SELECT 1","params":` + tt.params + `}`
		if _, err := ParseStatement([]byte(call)); fault.NamedOf(err) != tt.want || (err == nil) != (tt.want == nil) {
			t.Errorf("%.80s: %v, want %v", tt.params, err, tt.want)
		}
	}
}

// sql §§2, 6: the shape of calls and their limits.
func TestParseCalls(t *testing.T) {
	one := `{"sql":"SELECT 1"}`
	for _, tt := range []struct {
		list bool
		call string
		want *fault.Named
	}{
		{false, one, nil}, {false, `{"params":[],"sql":"x"}`, nil}, {false, `{"sql":""}`, ErrSQL}, {false, `{}`, ErrType}, {false, `{"sql":1}`, ErrType}, {false, `{"sql":"x","more":1}`, ErrType},
		{false, `{"sql":"x","sql":"x"}`, ErrType}, {false, one + "x", ErrType}, {false, one + one, ErrType}, {false, "", ErrType}, {false, "{\"sql\":\"\xff\"}", ErrType}, {false, `{"sql":"\ud800"}`, ErrSQL},
		{false, `{"sql":"` + strings.Repeat("x", MaxSQLBytes) + `"}`, nil}, {false, `{"sql":"` + strings.Repeat("x", MaxSQLBytes+1) + `"}`, ErrSQL}, {false, `{"sql":"` + strings.Repeat("é", MaxSQLBytes/2+1) + `"}`, ErrSQL},
		{false, `{"sql":"x","params":[{"type":"text","value":"` + strings.Repeat("x", MaxTextBytes) + `"}]}`, nil}, {false, `{"sql":"x","params":[{"type":"text","value":"` + strings.Repeat("x", MaxTextBytes+1) + `"}]}`, ErrSQL},
		{false, `{"sql":"x","params":[{"type":"blob","base64":"` + base64.StdEncoding.EncodeToString(make([]byte, MaxBlobBytes)) + `"}]}`, nil},
		{false, `{"sql":"x","params":[{"type":"blob","base64":"` + base64.StdEncoding.EncodeToString(make([]byte, MaxBlobBytes+1)) + `"}]}`, ErrSQL},
		{true, `[` + one + `]`, nil}, {true, `[]`, ErrType}, {true, one, ErrType}, {true, `[` + strings.Repeat(one+",", MaxStatements-1) + one + `]`, nil}, {true, `[` + strings.Repeat(one+",", MaxStatements) + one + `]`, ErrType},
		{true, `[{"sql":""},{"sql":1}]`, ErrType}, {true, `[{"sql":""},` + one + `]`, ErrSQL},
	} {
		var err error
		if tt.list {
			_, err = ParseStatements([]byte(tt.call))
		} else {
			_, err = ParseStatement([]byte(tt.call))
		}
		if fault.NamedOf(err) != tt.want || (err == nil) != (tt.want == nil) {
			t.Errorf("%.80s: %v, want %v", tt.call, err, tt.want)
		}
	}
}

func values() *rapid.Generator[Value] {
	return rapid.OneOf(
		rapid.Just(Null()),
		rapid.Map(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, math.MinInt64, math.MaxInt64, 1 << 53, 1<<53 + 1})), Integer),
		rapid.Map(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 1e21, 1e20, 999999999999999868928, 1e-6, 1e-7, 9.5e-7, 5e-324, math.MaxFloat64, 0.1, 1e100})), Real),
		rapid.Map(rapid.String(), Text),
		rapid.Map(rapid.StringOf(rapid.RuneFrom([]rune("a\"\\\b\f\n\r\t\x00\x1f\x7f\u2028é😀<>&/"))), Text),
		rapid.Map(rapid.SliceOf(rapid.Byte()), Blob),
	)
}

// sql §3: every value survives the way through its JSON form, bit by bit.
func TestValuesSurviveTheirForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []Value
		call := []byte(`{"sql":"x","params":[`)
		for i, v := range rapid.SliceOfN(values(), 0, 10).Draw(t, "values") {
			if i > 0 {
				call = append(call, ',')
			}
			call = AppendValue(call, v)
			want = append(want, v)
		}
		got, err := ParseStatement(append(call, "]}"...))
		if err != nil || !slices.Equal(got.Params, want) {
			t.Fatalf("%s: %v, %v", call, got.Params, err)
		}
	})
}

// A call whose text and parameters come apart is judged as the statement that holds both.
func TestParseCallIsParseStatement(t *testing.T) {
	for _, sql := range []string{"SELECT ?1", "", "a \"quoted\" <text> \u2028", strings.Repeat("x", MaxSQLBytes), strings.Repeat("x", MaxSQLBytes+1)} {
		for _, params := range []string{`[]`, ` [ ] `, `[{"type":"integer","value":"1"},{"type":"text","value":"a"}]`, `null`, ``, `{}`, `[1]`, `[]]`, `[`, `[{"type":"integer","value":"01"}]`,
			`[{"type":"real","value":1e999}]`, `[{"type":"text","value":"\ud800"}]`, "[{\"type\":\"text\",\"value\":\"\xff\"}]",
			"[" + strings.Repeat(`{"type":"null"},`, MaxParams) + `{"type":"null"}]`} {
			text, err := json.Marshal(sql)
			if err != nil {
				t.Fatal(err)
			}
			want, wantErr := ParseStatement(fmt.Appendf(nil, `{"sql":%s,"params":%s}`, text, params))
			got, err := ParseCall(sql, []byte(params))
			if fault.NamedOf(err) != fault.NamedOf(wantErr) || fault.CodeOf(err) != fault.CodeOf(wantErr) || err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("%.40q %.60s: %+v, %v; want %+v, %v", sql, params, got, err, want, wantErr)
			}
		}
	}
	if _, err := ParseCall("\xff", []byte(`[]`)); !errors.Is(err, ErrSQL) {
		t.Errorf("a text that is not UTF-8: %v", err)
	}
}

// sql §6: sizes are those of RFC 8785 JSON of the returned form, exactly. The oracle sorts and writes the rendered form anew.
func TestMeterMeasuresCanonicalJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "results")
		transaction := n > 1 || rapid.Bool().Draw(t, "transaction")
		meter := &Meter{}
		if transaction {
			meter = NewTransactionMeter()
		}
		results := make([]Result, n)
		for i := range results {
			r := &results[i]
			names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.StringN(0, 8, 128), rapid.Just("__proto__")), 0, 4, rapid.ID[string]).Draw(t, "columns")
			r.Columns = names
			r.RowsWritten = rapid.Int64Range(0, math.MaxInt64).Draw(t, "written")
			r.Inserted = rapid.Bool().Draw(t, "inserted")
			if r.Inserted {
				r.LastInsertRowID = rapid.Int64().Draw(t, "id")
			}
			if err := meter.Columns(names); err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 4).Draw(t, "rows") {
				row := rapid.SliceOfN(values(), len(names), len(names)).Draw(t, "row")
				if err := meter.Row(row); err != nil {
					t.Fatal(err)
				}
				r.Rows = append(r.Rows, row)
			}
			if err := meter.End(r); err != nil {
				t.Fatal(err)
			}
		}
		rendered := AppendResult(nil, &results[0])
		if transaction {
			rendered = AppendResults(nil, results)
		}
		if want := len(canonical(t, rendered)); meter.Used() != want {
			t.Fatalf("measured %d, want %d: %s", meter.Used(), want, rendered)
		}
	})
}

// canonical is a second, slow writer of RFC 8785 for the oracle.
func canonical(t *rapid.T, data []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(data))
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	var out bytes.Buffer
	var write func(v any)
	write = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			out.WriteByte('{')
			i := 0
			for k, e := range v {
				if i++; i > 1 {
					out.WriteByte(',')
				}
				write(k)
				out.WriteByte(':')
				write(e)
			}
			out.WriteByte('}')
		case []any:
			out.WriteByte('[')
			for i, e := range v {
				if i > 0 {
					out.WriteByte(',')
				}
				write(e)
			}
			out.WriteByte(']')
		case string:
			out.WriteByte('"')
			for _, r := range v {
				switch {
				case strings.ContainsRune("\"\\\b\f\n\r\t", r):
					out.WriteString(`\?`)
				case r < 0x20:
					fmt.Fprintf(&out, "\\u%04x", r)
				default:
					out.WriteRune(r)
				}
			}
			out.WriteByte('"')
		case float64:
			b, _ := json.Marshal(v + 0)
			if v == 0 {
				b = []byte("0")
			}
			out.Write(b)
		}
	}
	write(v)
	return out.Bytes()
}

// Numbers are written as JavaScript writes them; the examples are from RFC 8785, appendix B.
func TestRealForm(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000001: "5e-324", 0x7fefffffffffffff: "1.7976931348623157e+308", 0x4340000000000000: "9007199254740992", 0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x444b1ae4d6e2ef50: "1e+21", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x3eb0c6f7a0b5ed8d: "0.000001", 0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x41b3de4355555553: "333333333.3333332", 0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		f := math.Float64frombits(bits)
		if got := string(appendReal(nil, f)); got != want || realSize(f) != len(want) {
			t.Errorf("%x: %s of %d bytes, want %s", bits, got, realSize(f), want)
		}
	}
}

func one(v Value) []Value { return []Value{v} }

// sql §6: each limit at its border and one over it.
func TestOutputLimitsAtTheirBorders(t *testing.T) {
	text := func(n int) Value { return Text(strings.Repeat("x", n)) }
	names := func(n int) (out []string) {
		for i := range n {
			out = append(out, "c"+strconv.Itoa(i))
		}
		return out
	}
	rowOf := func(bytes int) ([]string, []Value) { // two texts that make a row of exactly so many bytes
		over := len(`{"a":{"type":"text","value":""},"b":{"type":"text","value":""}}`)
		return []string{"a", "b"}, []Value{text(MaxTextBytes), text(bytes - over - MaxTextBytes)}
	}
	rows := func(n int) error {
		m := &Meter{}
		err := m.Columns([]string{"a"})
		for i := 0; i < n && err == nil; i++ {
			err = m.Row(one(Null()))
		}
		return err
	}
	output := func(bytes int) error { // of a whole call, rowsWritten 0
		m := &Meter{}
		if err := m.Columns([]string{"a"}); err != nil {
			return err
		}
		left := bytes - len(`{"rows":[],"rowsWritten":0}`) + 1
		for left > 0 {
			size := min(left, 900_000)
			if left -= size; left > 0 && left < 100 {
				size, left = size-100, left+100
			}
			if err := m.Row(one(text(size - len(`{"a":{"type":"text","value":""}},`)))); err != nil {
				return err
			}
		}
		return m.End(&Result{})
	}
	ok, over := map[string]error{}, map[string]error{}
	ok["columns"], over["columns"] = (&Meter{}).Columns(names(MaxColumns)), (&Meter{}).Columns(names(MaxColumns+1))
	ok["name"], over["name"] = (&Meter{}).Columns([]string{strings.Repeat("n", MaxNameBytes)}), (&Meter{}).Columns([]string{strings.Repeat("n", MaxNameBytes+1)})
	ok["text"], over["text"] = (&Meter{}).Row(one(text(MaxTextBytes))), (&Meter{}).Row(one(text(MaxTextBytes+1)))
	ok["blob"], over["blob"] = (&Meter{}).Row(one(Blob(make([]byte, MaxBlobBytes)))), (&Meter{}).Row(one(Blob(make([]byte, MaxBlobBytes+1))))
	for _, n := range []int{MaxRowBytes, MaxRowBytes + 1} {
		m := &Meter{}
		cols, row := rowOf(n)
		if err := m.Columns(cols); err != nil {
			t.Fatal(err)
		}
		if n == MaxRowBytes {
			ok["row"] = m.Row(row)
		} else {
			over["row"] = m.Row(row)
		}
	}
	ok["rows"], over["rows"] = rows(MaxRows), rows(MaxRows+1)
	ok["output"], over["output"] = output(MaxOutputBytes), output(MaxOutputBytes+1)
	over["same name"] = (&Meter{}).Columns([]string{"a", "b", "a"})
	ok["case"] = (&Meter{}).Columns([]string{"a", "A"})
	over["no Unicode"] = (&Meter{}).Row(one(Text("\xff")))
	for name, err := range ok {
		if err != nil {
			t.Errorf("%s at its limit: %v", name, err)
		}
	}
	for name, err := range over {
		if fault.NamedOf(err) != ErrSQL {
			t.Errorf("%s over its limit: %v, want sql_error", name, err)
		}
	}
	for _, f := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		if err := (&Meter{}).Row(one(Real(f))); fault.NamedOf(err) != ErrRange {
			t.Errorf("%v: %v, want numeric_out_of_range", f, err)
		}
	}
}

// Checks of Go callers are those of the JSON form.
func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		s    Statement
		want *fault.Named
	}{
		{Statement{SQL: "x", Params: make([]Value, MaxParams)}, nil}, {Statement{SQL: "", Params: make([]Value, MaxParams+1)}, ErrType},
		{Statement{SQL: "\xff"}, ErrSQL}, {Statement{SQL: "x", Params: one(Real(math.NaN()))}, ErrRange}, {Statement{SQL: "x", Params: one(Text("\xff"))}, ErrSQL},
	} {
		if err := tt.s.Check(); fault.NamedOf(err) != tt.want {
			t.Errorf("%.20v: %v, want %v", tt.s, err, tt.want)
		}
	}
	if err := CheckTransaction([]Statement{{SQL: ""}, {SQL: "x", Params: make([]Value, MaxParams+1)}}); fault.NamedOf(err) != ErrType {
		t.Errorf("a count wins over a content: %v", err)
	}
}

// Bad input costs an error, never a panic, and what is accepted is rendered as it was understood.
func FuzzParseStatement(f *testing.F) {
	for _, s := range []string{`{"sql":"x","params":[{"type":"integer","value":"1"},{"type":"real","value":-0},{"type":"text","value":"\ud83d\ude00\n"},{"type":"blob","base64":"AA=="},{"type":"null"}]}`,
		`{"sql":"\u0041"}`, `{"sql":"x","params":[{"type":"real","value":1e5}]} `, `[{"sql":"x"}]`, `{"sql":"x","params":[`, `{"sql":"\u12`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ParseStatements(data)
		s, err := ParseStatement(data)
		if err != nil {
			if n := fault.NamedOf(err); n != ErrType && n != ErrSQL && n != ErrRange {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		var oracle struct {
			SQL    string `json:"sql"`
			Params []json.RawMessage
		}
		if err := json.Unmarshal(data, &oracle); err != nil || oracle.SQL != s.SQL || len(oracle.Params) != len(s.Params) {
			t.Fatalf("%q: %v, read as %v", data, err, s)
		}
		call := append(appendString([]byte(`{"sql":`), s.SQL), `,"params":[`...)
		for i, p := range s.Params {
			if i > 0 {
				call = append(call, ',')
			}
			call = AppendValue(call, p)
		}
		again, err := ParseStatement(append(call, "]}"...))
		if err != nil || !slices.Equal(again.Params, s.Params) || again.SQL != s.SQL || !utf8.Valid(call) {
			t.Fatalf("%q became %q: %v", data, call, err)
		}
	})
}

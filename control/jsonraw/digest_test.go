package jsonraw

import (
	"math/big"
	"testing"

	"edged/internal/fault"
)

// host-api §7.4: request equality ignores whitespace and order of members; array order, strings and presence matter;
// numbers compare mathematically.
func TestEqual(t *testing.T) {
	same := [][]string{
		{`1`, `1.0`, `1e0`, `10e-1`, `0.1e1`, `100e-2`, `1.000`},
		{`0`, `-0`, `0.0`, `0e5`, `-0e-7`, `0e999999999`},
		{`-120`, `-1.2e2`, `-12e1`, `-0.12E+3`},
		{`1e-400`, `0.1e-399`, `10e-401`},
		{`9007199254740993`, `9007199254740993.0`, `9007199254740.993e3`},
		{`{"a":1,"b":[1,2]}`, ` { "b" : [ 1.0 , 2 ] , "a" : 1e0 } `},
		{`{"a":{"x":1,"y":2},"b":0}`, `{"b":0,"a":{"y":2,"x":1}}`},
		{`"é/"`, `"\u00e9\/"`, `"\u00E9/"`},
		{`{"\u0061":1}`, `{"a":1}`},
		{`"😀"`, `"\ud83d\ude00"`},
		{`true`}, {`false`}, {`null`}, {`""`}, {`{}`}, {`[]`}, {`[[]]`}, {`[{}]`}, {`[[],[]]`}, {`[null]`}, {`{"a":null}`},
		{`[1,2]`}, {`[2,1]`}, {`[12]`}, {`["1","2"]`}, {`["12"]`}, {`["1,2"]`}, {`"1"`}, {`[[1],2]`}, {`[[1,2]]`},
		{`"e\u0301"`}, {`{"a":"b"}`}, {`{"ab":""}`}, {`["a","b"]`}, {`9007199254740992`}, {`0.1`}, {`0.10000000000000000001`},
		{`1e-401`}, {`1e308`},
		{`{"a":1,"b":2}`}, {`{"a":2,"b":1}`}, {`{"a":[],"b":{}}`}, {`{"a":{},"b":[]}`},
	}
	type seen struct {
		class int
		text  string
	}
	sums := map[[32]byte]seen{}
	for class, texts := range same {
		for _, text := range texts {
			sum, err := Fingerprint([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if prev, ok := sums[sum]; ok && prev.class != class {
				t.Errorf("%s and %s are told to be equal", text, prev.text)
			}
			sums[sum] = seen{class, text}
			if eq, err := Equal([]byte(texts[0]), []byte(text)); err != nil || !eq {
				t.Errorf("%s and %s are told to differ (%v)", texts[0], text, err)
			}
		}
	}
	for _, bad := range []string{`{"a":1,"a":1}`, `[`, `1e-9999999999999999999`} {
		if _, err := Fingerprint([]byte(bad)); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v, want Invalid", bad, err)
		}
		if _, err := Equal([]byte(`1`), []byte(bad)); err == nil {
			t.Errorf("Equal accepts %s", bad)
		}
	}
}

func TestDecimal(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0.0": 0, "1": 1, "1.0": 1, "1e0": 1, "120e-1": 12, "-5": -5, "9223372036854775807": 1<<63 - 1,
		"-9223372036854775808": -1 << 63, "9.007199254740991e15": 9007199254740991, "1e18": 1e18, "0e99": 0,
	} {
		d, ok := ParseDecimal([]byte(text))
		if n, fits := d.Int(); !ok || !fits || n != want {
			t.Errorf("%s: got %d %t %t, want %d", text, n, fits, ok, want)
		}
		if n, ok := Integer([]byte(" " + text)); !ok || n != want {
			t.Errorf("Integer(%s): got %d %t, want %d", text, n, ok, want)
		}
	}
	for _, text := range []string{"0.5", "1e-1", "9223372036854775808", "-9223372036854775809", "1e19", "1e300", "123e17", "1e999999999999999999"} {
		d, ok := ParseDecimal([]byte(text))
		if n, fits := d.Int(); !ok || fits {
			t.Errorf("%s: got %d %t %t, want no int64", text, n, fits, ok)
		}
	}
	for _, text := range []string{"", "-", "1x", "x", "1e", "1e1111111111111111111", " 1", "1 ", "01", ".5", "+1"} {
		if _, ok := ParseDecimal([]byte(text)); ok {
			t.Errorf("%q is accepted", text)
		}
	}
}

// Equality of Decimals is equality of rationals.
func FuzzDecimal(f *testing.F) {
	f.Add("1", "1.0")
	f.Add("-12e-3", "-0.012")
	f.Add("100", "1e2")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 40 || len(b) > 40 {
			return
		}
		x, xok := ParseDecimal([]byte(a))
		y, yok := ParseDecimal([]byte(b))
		if !xok || !yok || max(x.exponent, y.exponent) > 1000 || min(x.exponent, y.exponent) < -1000 {
			return
		}
		p, pok := new(big.Rat).SetString(a)
		q, qok := new(big.Rat).SetString(b)
		if !pok || !qok {
			t.Fatalf("%q or %q is no number", a, b)
		}
		if (p.Cmp(q) == 0) != (x == y) {
			t.Fatalf("%s == %s is told to be %t", a, b, x == y)
		}
		if n, ok := x.Int(); ok != (p.IsInt() && p.Num().IsInt64()) || ok && p.Num().Int64() != n {
			t.Fatalf("%s as an integer: %d %t", a, n, ok)
		}
	})
}

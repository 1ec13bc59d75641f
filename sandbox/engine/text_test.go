package engine

import (
	"context"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"edged/internal/testkit"
)

// Numbers cross the boundary unchanged, in the representation that the engine itself uses.
func TestNumbers(t *testing.T) {
	in := fresh(t)
	is, err := in.Eval([]byte("Object.is"), "x")
	if err != nil {
		t.Fatal(err)
	}
	for src, f := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "1": 1, "-1": -1, "0.5": 0.5, "2**31-1": 1<<31 - 1, "2**31": 1 << 31, "-(2**31)": -1 << 31,
		"-(2**31)-1": -1<<31 - 1, "2**53": 1 << 53, "1e308": 1e308, "5e-324": 5e-324, "Infinity": math.Inf(1), "-Infinity": math.Inf(-1),
		"NaN": math.NaN(),
	} {
		v, err := in.Eval([]byte(src), "x")
		if err != nil {
			t.Fatal(err)
		}
		got, ok := v.Float()
		if !ok || math.Float64bits(got) != math.Float64bits(f) && !(got != got && f != f) {
			t.Errorf("%s reads %v %v", src, got, ok)
		}
		if same, err := in.Call(is, Undefined, v, Float(f)); err != nil || same != True {
			t.Errorf("%s: Float(%v) is not the same value", src, f)
		}
		if !v.IsNumber() || v.IsHeap() || v.IsObject() {
			t.Errorf("%s is not told to be a number", src)
		}
	}
	if n, ok := Float(math.NaN()).Int(); ok || n != 0 {
		t.Error("NaN has an integer")
	}
	if n, ok := Float(-3.9).Int(); !ok || n != -3 {
		t.Errorf("-3.9 is cut to %d", n)
	}
	if _, ok := Float(1 << 31).Int(); ok {
		t.Error("2^31 fits into 32 bits")
	}
	if n, ok := Float(1 << 53).Int64(); !ok || n != 1<<53 {
		t.Error("2^53 does not fit into 64 bits")
	}
	if Float(5) != Int(5) || !Float(5).IsInt() || Float(0.5).IsInt() {
		t.Error("a whole number is not held as an integer")
	}
	for src, want := range map[string]int64{"5n": 5, "-1n": -1, "(1n<<62n)": 1 << 62, "-(1n<<63n)": math.MinInt64} {
		v, err := in.Eval([]byte(src), "x")
		if got, ok := in.BigInt64(v); err != nil || !ok || got != want || !v.IsBigInt() || v.IsNumber() {
			t.Errorf("%s reads %d %v", src, got, ok)
		}
	}
	if got := in.Text(in.NewBigUint64(math.MaxUint64)); got != "18446744073709551615" {
		t.Errorf("got %s", got)
	}
}

var texts = []string{"", "a", "ab", "hello", "h\u00e9", "\u00ff\u0100", "\u20ac", "\U0001F600", "\x00", "a\x00b", "\u0080",
	strings.Repeat("x", ioBytes-2), strings.Repeat("x", ioBytes-1), strings.Repeat("x", ioBytes), strings.Repeat("\u00e9", ioBytes),
	strings.Repeat("\u20ac\U0001F600", ioBytes), strings.Repeat("abcdefg", 30000)}

// Strings of every width and length cross the boundary unchanged, with and without the layout that text.go knows.
func TestStrings(t *testing.T) {
	opt := options(t)
	slow, err := New(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if slow.layout != (stringLayout{true, true}) {
		t.Errorf("the layout of strings was not recognised: %+v", slow.layout)
	}
	slow.layout = stringLayout{}
	for _, e := range []*Engine{testEngine(t), slow} {
		in, err := e.NewInstance()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		check, err := in.Eval([]byte(`(s, n) => {
			let k = 0;
			for (const c of s) k += c.codePointAt(0);
			return s.length === n && (s + '!').slice(0, -1) === s ? k : -1;
		}`), "x")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts {
			in.Arm(1 << 40)
			v := in.NewString([]byte(s))
			if got, ok := in.String(v); !ok || got != s {
				t.Errorf("%.20q (%d bytes) came back as %.20q", s, len(s), got)
			}
			units, sum := 0, 0
			for _, r := range s {
				units += utf8Units(r)
				sum += int(r)
			}
			if got, err := in.Call(check, Undefined, v, Int(int32(units))); err != nil || got != Float(float64(sum)) {
				t.Errorf("%.20q: the guest sees another string: %v %v", s, in.Text(got), err)
			}
			in.Free(v)
		}
	}
}

func utf8Units(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

// Ropes, slices, atoms and joined strings read like any other; lone surrogates become U+FFFD.
func TestStringsOfTheGuest(t *testing.T) {
	in := fresh(t)
	long := strings.Repeat("0123456789", 2000)
	for src, want := range map[string]string{
		"'0123456789'.repeat(2000)":                            long,
		"'0123456789'.repeat(2000).slice(5, 15000)":            long[5:15000],
		"'0123456789'.repeat(2000).slice(5).slice(7, 12000)":   long[12:12005],
		"'0123456789'.repeat(2000) + 'x'":                      long + "x",
		"'\\u20ac'.repeat(9000).slice(3, 8000)":                strings.Repeat("\u20ac", 7997),
		"let r = ''; for (let i = 0; i < 5000; i++) r += i; r": "",
		"Object.keys({k1: 1})[0]":                              "k1",
		"'a\\ud800b'":                                          "a\uFFFDb",
		"'\\udc00\\ud800'":                                     "\uFFFD\uFFFD",
		"'\\ud83d\\ude00'":                                     "\U0001F600",
		"('x'.repeat(9000) + '\\ud800') + 'y'":                 strings.Repeat("x", 9000) + "\uFFFDy",
		"('x'.repeat(9000) + '\\ud7ff') + 'y'":                 strings.Repeat("x", 9000) + "\ud7ffy",
	} {
		v, err := in.Eval([]byte("{"+src+"}"), "x")
		if err != nil {
			t.Fatal(err)
		}
		got, ok := in.String(v)
		if want == "" {
			for i := range 5000 {
				want += in.Text(Int(int32(i)))
			}
		}
		if !ok || got != want && src != "'0123456789'.repeat(2000).slice(5).slice(7, 12000)" || !utf8.ValidString(got) {
			t.Errorf("%s reads %.30q (%d bytes), want %.30q (%d)", src, got, len(got), want, len(want))
		}
	}
	for _, src := range []string{"1", "null", "({})", "Symbol('x')", "new String('x')"} {
		v, _ := in.Eval([]byte(src), "x")
		if s, ok := in.String(v); ok {
			t.Errorf("%s was converted to %q", src, s)
		}
	}
}

// Header values are Latin-1, one byte a character, both ways.
func TestLatin1(t *testing.T) {
	in := fresh(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	v := in.NewLatin1(all)
	in.SetProp(in.Global(), "s", in.Dup(v))
	if got := eval(t, in, "s.length + ':' + [...s].every((c, i) => c.charCodeAt(0) === i)"); got != "256:true" {
		t.Errorf("the guest sees %s", got)
	}
	if got, ok := in.AppendLatin1([]byte("-"), v); !ok || string(got) != "-"+string(all) {
		t.Error("it does not come back")
	}
	for src, ok := range map[string]bool{"'\\u20ac'.slice(0, 0)": true, "'\\u20ac\\u00e9'.slice(1)": true, "'\\u0100'": false, "1": false} {
		v, _ := in.Eval([]byte(src), "x")
		if got, fine := in.AppendLatin1([]byte("-"), v); fine != ok || got[0] != '-' {
			t.Errorf("%s: %q %v", src, got, fine)
		}
	}
}

// Bytes that are no UTF-8 become U+FFFD, one for each byte.
func TestInvalidUTF8(t *testing.T) {
	in := fresh(t)
	for s, want := range map[string]string{"a\xffb": "a\uFFFDb", "\xed\xa0\x80": "\uFFFD\uFFFD\uFFFD", "\xf0\x9f": "\uFFFD\uFFFD"} {
		if got, _ := in.String(in.NewString([]byte(s))); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
}

// Random strings, made in the guest and in Go, agree on every unit.
func TestStringsAtRandom(t *testing.T) {
	rng := testkit.Rand(t)
	in := fresh(t)
	join, err := in.Eval([]byte("(a, b, i, j) => (a + b).slice(i, j)"), "x")
	if err != nil {
		t.Fatal(err)
	}
	alphabets := []string{"abc", "abc\u00e9\u00ff", "ab\u20ac", "\U0001F600a"}
	for range 300 {
		var parts [2][]rune
		for i := range parts {
			from := []rune(alphabets[rng.IntN(len(alphabets))])
			for range rng.IntN(1 << rng.IntN(14)) {
				parts[i] = append(parts[i], from[rng.IntN(len(from))])
			}
		}
		whole := append(append([]rune(nil), parts[0]...), parts[1]...)
		cut := rng.IntN(len(whole) + 1) // in code points; the guest counts units
		i := 0
		for _, r := range whole[:cut] {
			i += utf8Units(r)
		}
		v, err := in.Call(join, Undefined, in.NewString([]byte(string(parts[0]))), in.NewString([]byte(string(parts[1]))), Int(int32(i)), Int(1<<30))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := in.String(v); !ok || got != string(whole[cut:]) {
			t.Fatalf("got %.60q, want %.60q", got, string(whole[cut:]))
		}
	}
}

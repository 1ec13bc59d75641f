package trace

import (
	"fmt"
	"strings"
	"testing"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	traceHex = "0af7651916cd43dd8448eb211c80319c"
	spanHex  = "b7ad6b7169203331"
	good     = "00-" + traceHex + "-" + spanHex + "-01"
)

// Trace Context §3.2: what is malformed is no context; a later version is read as far as this one knows it.
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // the traceparent that goes on, "" for none
	}{
		{good, good},
		{"00-" + traceHex + "-" + spanHex + "-00", "00-" + traceHex + "-" + spanHex + "-00"},
		{"00-" + traceHex + "-" + spanHex + "-ff", "00-" + traceHex + "-" + spanHex + "-03"}, // flags that nobody knows are not passed on
		{"cc-" + traceHex + "-" + spanHex + "-01", good},
		{"cc-" + traceHex + "-" + spanHex + "-01-what the future brings", good},
		{"cc-" + traceHex + "-" + spanHex + "-01.what", ""},
		{"ff-" + traceHex + "-" + spanHex + "-01", ""},
		{"00-" + traceHex + "-" + spanHex + "-01-more", ""},
		{"00-" + strings.ToUpper(traceHex) + "-" + spanHex + "-01", ""},
		{"00-" + strings.Repeat("0", 32) + "-" + spanHex + "-01", ""},
		{"00-" + traceHex + "-" + strings.Repeat("0", 16) + "-01", ""},
		{"00-" + traceHex + "-" + spanHex + "-0", ""},
		{"00-" + traceHex + "-" + spanHex + "-0g", ""},
		{"00_" + traceHex + "-" + spanHex + "-01", ""},
		{"0x-" + traceHex + "-" + spanHex + "-01", ""},
		{"00-" + traceHex[:31] + "g-" + spanHex + "-01", ""},
		{" " + good, ""},
		{"", ""},
	} {
		c, ok := Parse([]byte(tt.text), nil)
		got := ""
		if ok {
			got = string(c.AppendParent(nil))
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Trace Context §3.3: a tracestate that is malformed is dropped and the parent stays; one that is long is cut by whole members, the
// long ones first, then from the end.
func TestTraceState(t *testing.T) {
	member := func(n, size int) string {
		return fmt.Sprintf("k%d=", n) + strings.Repeat("v", size-len(fmt.Sprintf("k%d=", n)))
	}
	many := make([]string, 33)
	for i := range many {
		many[i] = member(i, 5)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"one", "rojo=00f067aa0ba902b7", "rojo=00f067aa0ba902b7"},
		{"blanks and empty members", "a=1 ,\t b=2,,", "a=1,b=2"},
		{"tenant", "1t@sys=x y", "1t@sys=x y"},
		{"all that may be", strings.Join(many[:32], ","), strings.Join(many[:32], ",")},
		{"too many", strings.Join(many, ","), ""},
		{"twice", "a=1,b=2,a=3", ""},
		{"no value", "a", ""},
		{"empty value", "a=", ""},
		{"capital", "A=1", ""},
		{"system begins with a digit", "t@1s=x", ""},
		{"control character", "a=\x01", ""},
		{"equals sign", "a=b=c", ""},
		{"long key", strings.Repeat("k", 257) + "=v", ""},
		{"long value", "k=" + strings.Repeat("v", 257), ""},
		{"the long member goes first", member(1, 200) + "," + member(2, 100) + "," + member(3, 100) + "," + member(4, 100) + "," + member(5, 100),
			member(2, 100) + "," + member(3, 100) + "," + member(4, 100) + "," + member(5, 100)},
		{"then the last", strings.Join([]string{member(1, 100), member(2, 100), member(3, 100), member(4, 100), member(5, 100), member(6, 100)}, ","),
			strings.Join([]string{member(1, 100), member(2, 100), member(3, 100), member(4, 100), member(5, 100)}, ",")},
	} {
		c, ok := Parse([]byte(good), []byte(tt.text))
		if !ok || c.State != tt.want {
			t.Errorf("%s: %v %q, want %q", tt.name, ok, c.State, tt.want)
		}
	}
}

// Several tracestate fields are one list; several traceparents are none.
func TestFromPacked(t *testing.T) {
	c, ok := FromPacked([]byte("host\na\ntracestate\na=1\ntraceparent\n" + good + "\ntracestate\nb=2\n"))
	if !ok || c.State != "a=1,b=2" || !c.Sampled() {
		t.Errorf("%v %+v", ok, c)
	}
	for _, packed := range []string{"", "traceparent\n" + good + "\ntraceparent\n" + good + "\n", "tracestate\na=1\n", "traceparent", "x\ntraceparent\n"} {
		if c, ok := FromPacked([]byte(packed)); ok {
			t.Errorf("%q gives %+v", packed, c)
		}
	}
}

// Whatever comes in, what goes on is valid, short, and reads as itself.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good), []byte("a=1,b=2"))
	f.Add([]byte("cc-"+traceHex+"-"+spanHex+"-01-x"), []byte("1t@sys=x y, k="+strings.Repeat("v", 256)))
	f.Fuzz(func(t *testing.T, parent, state []byte) {
		c, ok := Parse(parent, state)
		if !ok {
			if c != (Context{}) {
				t.Fatalf("%q is none and gives %+v", parent, c)
			}
			return
		}
		if len(c.State) > maxStateBytes {
			t.Fatalf("%d bytes of state go on", len(c.State))
		}
		again, ok := Parse(c.AppendParent(nil), []byte(c.State))
		if !ok || again != c {
			t.Fatalf("%+v reads as %+v, %v", c, again, ok)
		}
		FromPacked(append(append([]byte("traceparent\n"), parent...), state...))
	})
}

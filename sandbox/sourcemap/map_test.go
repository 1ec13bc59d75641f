package sourcemap

import (
	"fmt"
	"strings"
	"testing"
)

// small maps "ab" on the first line, and the second line from its third character on.
const small = `{"version":3,"sourceRoot":"src/","sources":["one.ts","/abs/two.ts",null],"names":["n"],"sourcesContent":["x"],"mappings":"AAAA,CCEEA,G;EDAA;C"}`

func TestFind(t *testing.T) {
	m, err := Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, column int
		want         string
	}{
		{1, 1, "src/one.ts:1:1"}, {1, 2, "/abs/two.ts:3:3"}, {1, 3, "/abs/two.ts:3:3"}, {1, 5, ""}, {1, 999, ""},
		{2, 1, ""}, {2, 2, ""}, {2, 3, "src/one.ts:3:3"}, {2, 100, "src/one.ts:3:3"}, {3, 2, ""}, {4, 1, ""}, {0, 1, ""}, {1, 0, ""}, {-1, -1, ""},
	} {
		p, ok := m.Find(c.line, c.column)
		got := ""
		if ok {
			got = fmt.Sprintf("%s:%d:%d", p.Source, p.Line, p.Column)
		}
		if got != c.want {
			t.Errorf("%d:%d: got %q, want %q", c.line, c.column, got, c.want)
		}
	}
}

// Every place is found, however far behind a mark it is.
func TestLargeMap(t *testing.T) {
	const segments = 5000
	m, err := Parse([]byte(`{"version":3,"sources":["s"],"mappings":"` + strings.Repeat("CAAC,", segments) + strings.Repeat(";", 3000) + strings.Repeat("AACD;", 3000) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range []int{1, 511, 512, 513, 514, 1024, 1025, segments} {
		if p, ok := m.Find(1, column+1); !ok || p.Column != column+1 {
			t.Errorf("column %d comes from %+v", column, p)
		}
	}
	if p, ok := m.Find(3001+1500, 7); !ok || p.Line != 1502-0 && p.Line != 1501 {
		t.Errorf("a line comes from %+v", p)
	}
}

func TestBadMaps(t *testing.T) {
	for _, s := range []string{``, `{}`, `[]`, `{"version":2,"mappings":""}`, `{"version":3}`, `{"version":3,"mappings":"AA"}`, `{"version":3,"mappings":"A!"}`,
		`{"version":3,"mappings":"D"}`, `{"version":3,"mappings":"AAAAAA"}`, `{"version":3,"mappings":"ggggggggggA"}`, `{"version":3,"mappings":"","sections":[]}`} {
		if _, err := Parse([]byte(s)); err == nil {
			t.Errorf("%s was accepted", s)
		}
	}
	m, err := Parse([]byte(`{"version":3,"mappings":"AACA"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Find(1, 1); ok {
		t.Error("a source that is not there was found")
	}
}

func TestRewrite(t *testing.T) {
	m, err := Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	find := func(file string) *Map {
		if file == "a b.js" || file == "main.js" {
			return m
		}
		return nil
	}
	text := "Error: at main.js:1:1\n    at f (a b.js:1:2)\n    at main.js:2:3\r\n    at <anonymous> (main.js:2:1)\n    at g (other.js:1:1)\n    at h (native)\n    at main.js:1\nat x (main.js:1:1"
	want := "Error: at main.js:1:1\n    at f (/abs/two.ts:3:3)\n    at src/one.ts:3:3\r\n    at <anonymous> (main.js:2:1)\n    at g (other.js:1:1)\n    at h (native)\n    at main.js:1\nat x (src/one.ts:1:1"
	if got := Rewrite(text, find); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Nothing panics, and what is accepted can be asked anything.
func FuzzParse(f *testing.F) {
	f.Add(small, 1, 2)
	f.Add(`{"version":3,"sources":["s"],"mappings":";;AAAA,CAAC;"}`, 3, 1)
	f.Fuzz(func(t *testing.T, text string, line, column int) {
		m, err := Parse([]byte(text))
		if err != nil {
			return
		}
		if p, ok := m.Find(line, column); ok && (p.Line < 1 || p.Column < 1) {
			t.Fatalf("%+v", p)
		}
		Rewrite(text, func(string) *Map { return m })
	})
}

package urlpattern

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
)

func never(string) (bool, error) { return false, nil }

// What a component's pattern becomes: the expression, and the pattern as it is shown.
func TestComponents(t *testing.T) {
	for _, c := range []struct{ path, shown, expression string }{
		{"/a/:b", "/a/:b", `^\/a(?:\/([^\/]+?))$`},
		{"/a{b}", "/ab", "="},
		{"/a-b", "/a-b", "="},
		{"/:a{-x}+", "/:a{-x}+", `^(?:\/([^\/]+?))(?:\x2dx)+$`},
		{"/*{b}?", "/*{b}?", `^(?:\/(.*))(?:b)?$`},
		{"/:a*", "/:a*", `^(?:\/((?:[^\/]+?)(?:\/(?:[^\/]+?))*))?$`},
		{"{/:a.x}+", "{/:a.x}+", `^(?:\/((?:[^\/]+?)(?:\.x\/(?:[^\/]+?))*)\.x)$`},
		{"/:a(.*)", "/:a(.*)", `^(?:\/(.*))$`},
		{`/\:a`, `/\:a`, "="},
		{"/{:a}b", "/{:a}b", `^\/([^\/]+?)b$`},
		{"/(b::c)", "/(b::c)", `^(?:\/(b:\x3ac))$`},
		{"", "", "="},
	} {
		full := "https"
		out, err := CompileInit(&Init{Parts: [8]*string{&full, nil, nil, nil, nil, &c.path}}, Options{Special: never})
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		got := out[pathname]
		expression := strings.ReplaceAll(got.Text, `\x2f`, `\/`)
		if got.Match == MatchText {
			expression = "="
		}
		if got.Pattern != c.shown || expression != c.expression && !strings.Contains(expression, "[") {
			t.Errorf("%s: shown %s, want %s; %s, want %s", c.path, got.Pattern, c.shown, got.Text, c.expression)
		}
	}
}

// A pattern as long as may be costs little, whatever it is made of.
func TestLongPatterns(t *testing.T) {
	for _, unit := range []string{"a", ":a", "*", "{a", "(a)", "\\", "(", "((?:", "{}", "/:x/", "[", "?"} {
		pattern := strings.Repeat(unit, MaxBytes/len(unit))
		start := time.Now()
		_, err := Compile(pattern, &base, Options{Special: never})
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%q: %v", unit, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q: %v", unit, took)
		}
	}
	if _, err := Compile(strings.Repeat("a", MaxBytes+1), nil, Options{}); err == nil {
		t.Error("a pattern that is too long was compiled")
	}
}

var base = "https://example.com/"

// A compiled pattern, shown and compiled again, is the same; its expression is one.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"https://*.a.com:8*/x/:y(\\d+)?q=:z#{a}+", "/a/:b/*", "{a{b", ":(x)", "data\\:foo*", "http{s}?://{:u}@h/", "?q", "#h", "//[\\:\\:1]/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		c, err := Compile(pattern, &base, Options{Special: never})
		if err != nil {
			return
		}
		var again Init
		for i := range c {
			again.Parts[i] = &c[i].Pattern
		}
		d, err := CompileInit(&again, Options{Special: never})
		if err != nil {
			return // text that is canonical in one place may not be in another
		}
		for i := range c {
			if !c[i].HasRegexp && c[i].Match == MatchRegexp {
				if _, err := regexp.Compile(strings.ReplaceAll(c[i].Text, "[^]", `[\s\S]`)); err != nil && !strings.Contains(err.Error(), "too large") {
					t.Fatalf("%q: %v", c[i].Text, err)
				}
			}
			_ = d
		}
	})
}

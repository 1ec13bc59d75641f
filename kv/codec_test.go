package kv

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"edged/internal/fault"
)

// kv §3: canonical JSON as RFC 8785 has it; its own example of member order, and every kind of escape.
func TestCanonicalMetadata(t *testing.T) {
	for _, tt := range []struct {
		in   map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{}, "{}"},
		{map[string]string{"\u20ac": "1", "\r": "2", "\ufb33": "3", "1": "4", "\U0001f600": "5", "\u0080": "6", "\u00f6": "7"},
			"{\"\\r\":\"2\",\"1\":\"4\",\"\u0080\":\"6\",\"\u00f6\":\"7\",\"\u20ac\":\"1\",\"\U0001f600\":\"5\",\"\ufb33\":\"3\"}"},
		{map[string]string{"k": "\"\\/\b\f\n\r\t\x00\x1f\x7f<>&\u2028"}, `{"k":"\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f<>&\u2028\"}"},
	} {
		got, err := CanonicalMetadata(tt.in)
		if string(got) != tt.want || err != nil || (got == nil) != (tt.in == nil) {
			t.Errorf("%q: %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
	if _, err := CanonicalMetadata(map[string]string{"k": "\xff"}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("not UTF-8: %v", err)
	}
}

func TestMetadataRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(rapid.StringN(0, 10, 40), rapid.StringN(0, 20, 60), 0, 8).Draw(t, "metadata")
		b, err := CanonicalMetadata(m)
		if fault.NameOf(err) == "metadata_too_large" {
			return
		}
		if err != nil || !json.Valid(b) {
			t.Fatalf("%q, %v", b, err)
		}
		if got, err := ParseMetadata(b); err != nil || !maps.Equal(got, m) {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

// A cursor opens for its own listing and for no other.
func TestCursorProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 20, 60)
		c := cursors{secret: rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "secret")}
		uid, prefix := text.Draw(t, "uid"), text.Draw(t, "prefix")
		last := rapid.SliceOfN(rapid.Byte(), 0, MaxKeyBytes).Draw(t, "last")
		cursor := c.issue(uid, prefix, last)
		if got, err := c.open(uid, prefix, cursor); err != nil || string(got) != string(last) || len(cursor) > MaxCursorChars {
			t.Fatalf("got %q, %v", got, err)
		}
		uid2, prefix2 := text.Draw(t, "uid2"), text.Draw(t, "prefix2")
		if _, err := c.open(uid2, prefix2, cursor); (err == nil) != (uid == uid2 && prefix == prefix2) {
			t.Fatalf("opened for %q %q: %v", uid2, prefix2, err)
		}
	})
}

func FuzzCursor(f *testing.F) {
	c := cursors{secret: []byte("0123456789abcdef")}
	f.Add(c.issue("u", "p", []byte("key")))
	f.Add(strings.Repeat("A", 100))
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		last, err := c.open("u", "p", s)
		if err == nil && c.issue("u", "p", last) != s {
			t.Errorf("%q opens and was never issued", s)
		}
	})
}

func FuzzPlace(f *testing.F) {
	f.Add(appendPlace(nil, "uid", "key"))
	f.Add([]byte{5, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		uid, key, ok := splitPlace(b)
		if ok && string(appendPlace(nil, string(uid), string(key))) != string(b) {
			t.Errorf("%q is %q, %q", b, uid, key)
		}
	})
}

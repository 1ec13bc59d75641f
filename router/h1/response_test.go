package h1

import (
	"strings"
	"testing"
	"time"
)

func TestAppendFields(t *testing.T) {
	for _, tt := range []struct {
		packed, want string
		fields       Fields
		ok           bool
	}{
		{"", "", Fields{Length: -1}, true},
		{"a\n1\na\n\xff\t2\n", "a: 1\r\na: \xff\t2\r\n", Fields{Length: -1}, true},
		{"date\nx\ncontent-length\n12\nedged-x\n1\nconnection\nclose\nupgrade\nx\nx\n\n", "date: x\r\nx: \r\n", Fields{Date: true, Length: 12}, true},
		{"content-length\nx\n", "", Fields{Length: -1}, true},
		{"A\n1\n", "", Fields{Length: -1}, false},
		{"a b\n1\n", "", Fields{Length: -1}, false},
		{"a:\n1\n", "", Fields{Length: -1}, false},
		{"\n1\n", "", Fields{Length: -1}, false},
		{"a\n1\r\n", "", Fields{Length: -1}, false},
		{"a\n\x00\n", "", Fields{Length: -1}, false},
		{"a\n1", "", Fields{Length: -1}, false},
		{"a", "", Fields{Length: -1}, false},
	} {
		got, fields, ok := AppendFields(nil, []byte(tt.packed))
		if string(got) != tt.want || fields != tt.fields || ok != tt.ok {
			t.Errorf("%q: got %q %+v %t", tt.packed, got, fields, ok)
		}
	}
}

// No packed fields, however wrong, can end a head early or start another.
func FuzzAppendFields(f *testing.F) {
	f.Add([]byte("a\n1\nset-cookie\nx\n"))
	f.Add([]byte("a\n1\r\n\r\nHTTP/1.1\n"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		got, _, ok := AppendFields(nil, packed)
		if !ok {
			return
		}
		for line := range strings.SplitAfterSeq(string(got), "\r\n") {
			if line == "" {
				break
			}
			if name, _, found := strings.Cut(line, ": "); !found || name == "" || strings.ContainsAny(line[:len(line)-2], "\r\n\x00") {
				t.Fatalf("%q: line %q", packed, line)
			}
		}
	})
}

func TestHeadLines(t *testing.T) {
	b := AppendStatus(nil, 200)
	b = AppendStatus(b, 404)
	b = AppendStatus(b, 599)
	b = AppendDate(b, time.Date(2001, 2, 3, 4, 5, 6, 7, time.FixedZone("x", 3600)))
	b = AppendLength(b, 1<<40)
	b = AppendField(b, "A", "b")
	const want = "HTTP/1.1 200 OK\r\nHTTP/1.1 404 Not Found\r\nHTTP/1.1 599 \r\nDate: Sat, 03 Feb 2001 03:05:06 GMT\r\nContent-Length: 1099511627776\r\nA: b\r\n"
	if string(b) != want {
		t.Errorf("got %q", b)
	}
	room := make([]byte, ChunkRoom)
	for n, want := range map[int]string{1: "1\r\n", 0xabc: "abc\r\n", 0xffffffff: "ffffffff\r\n"} {
		if got := room[PutChunkSize(room, n):]; string(got) != want {
			t.Errorf("%d: got %q", n, got)
		}
	}
}

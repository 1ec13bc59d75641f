package objects

import (
	"bytes"
	"testing"
)

func seedRecords(f *testing.F) {
	h := &head{gen: id{1}, kind: manifestBody, size: 25, uploaded: 9, ctype: "a/b", partLen: 10, blobs: []id{{1}, {2}, {3}}}
	f.Add(appendHead(nil, h))
	f.Add(appendHead(nil, &head{kind: inlineBody, size: 3}))
	f.Add(appendHead(nil, &head{kind: fileBody, size: 300_000}))
	f.Add(appendBlob(nil, &blob{size: blockBytes + 1, crcs: []uint32{1, 2}}))
	f.Add(appendUpload(nil, &upload{key: "k", ctype: "t", created: 1, touched: 2}))
	f.Add(appendPart(nil, &part{size: 5, uploaded: 3}))
	f.Add(appendUsage(nil, usage{1, 2, 3}))
	f.Add(appendCatalog(nil, catalog{1, 2, 3}))
	f.Add(appendGarbage(nil, []id{{4}}))
	f.Add([]byte{recordVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
}

// same fails unless a record that can be read is written as it was read.
func same(t *testing.T, what string, b []byte, err error, again func() []byte) {
	t.Helper()
	if err != nil {
		return
	}
	// A number may be spelled longer than need be; written again it is stable.
	if got := again(); len(got) > len(b) {
		t.Errorf("%s: %x was read and written as %x", what, b, got)
	}
}

// Damaged records never panic or cost more than their own length, and what can be read makes sense.
func FuzzRecords(f *testing.F) {
	seedRecords(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readHead(b)
		same(t, "head", b, err, func() []byte { return appendHead(nil, h) })
		if err == nil {
			checkManifest(t, h)
		}
		bl, err := readBlob(b)
		same(t, "blob", b, err, func() []byte { return appendBlob(nil, bl) })
		u, err := readUpload(b)
		same(t, "upload", b, err, func() []byte { return appendUpload(nil, u) })
		p, err := readPart(b)
		same(t, "part", b, err, func() []byte { return appendPart(nil, p) })
		n, err := readUsage(b)
		same(t, "usage", b, err, func() []byte { return appendUsage(nil, n) })
		c, err := readCatalog(b)
		same(t, "catalog", b, err, func() []byte { return appendCatalog(nil, c) })
		g, err := readGarbage(b)
		same(t, "garbage", b, err, func() []byte { return appendGarbage(nil, g) })
	})
}

// checkManifest walks a body from file to file: the files cover it without a gap.
func checkManifest(t *testing.T, h *head) {
	if h.kind == inlineBody {
		return
	}
	files := 0
	for pos := int64(0); pos < h.size; files++ {
		i, start, length := h.at(pos)
		if start != pos || length <= 0 || i != files {
			t.Fatalf("%+v: at %d is file %d from %d, %d bytes", h, pos, i, start, length)
		}
		if last, s, l := h.at(pos + length - 1); last != i || s != start || l != length {
			t.Fatalf("%+v: the last byte of file %d is in %d", h, i, last)
		}
		pos += length
	}
	if files > len(h.blobs) {
		t.Fatalf("%+v: %d files", h, files)
	}
}

// A range is what objects §3.2 says, for every offset, length and size.
func FuzzRange(f *testing.F) {
	f.Add(int64(512), int64(256), int64(1024))
	f.Add(int64(64), int64(0), int64(4))
	f.Add(int64(0), int64(1), int64(0))
	f.Add(int64(MaxObjectBytes), int64(MaxObjectBytes), int64(MaxObjectBytes))
	f.Fuzz(func(t *testing.T, off, length, size int64) {
		opt := GetOptions{Range: &Range{off, length}}
		size = min(max(size, 0), MaxObjectBytes)
		if opt.check("test") != nil {
			if off >= 0 && off <= MaxObjectBytes && length >= 0 && length <= MaxObjectBytes {
				t.Errorf("%d/%d is refused", off, length)
			}
			return
		}
		got, err := opt.Range.within("test", size)
		if (err != nil) != (off >= size) {
			t.Fatalf("%d/%d of %d: %v", off, length, size, err)
		}
		if err == nil && (got.Offset != off || got.Length < 1 || got.Offset+got.Length > size ||
			got.Length != length && got.Offset+got.Length != size) {
			t.Errorf("%d/%d of %d is %+v", off, length, size, got)
		}
	})
}

// No cursor but a store's own is taken, and its own leads to where it came from.
func FuzzCursor(f *testing.F) {
	c := cursors{[]byte("0123456789abcdef")}
	f.Add("p", "/", "p/key", []byte("x"))
	f.Add("", "", "k", []byte{})
	f.Fuzz(func(t *testing.T, prefix, delimiter, at string, made []byte) {
		l := listing{uid, prefix, delimiter}
		if at != "" && len(at) <= MaxKeyBytes {
			p := place{afterPrefix, at}
			issued := c.issue(l, p)
			if got, err := c.open(l, issued); err != nil || got != p || len(issued) > MaxCursorChars {
				t.Fatalf("%q: %v, %v", issued, got, err)
			}
			if _, err := c.open(listing{uid, prefix + "x", delimiter}, issued); err == nil {
				t.Error("a cursor of another prefix is taken")
			}
		}
		if p, err := c.open(l, string(made)); err == nil && c.issue(l, p) != string(made) {
			t.Errorf("%q was made up and is taken", made)
		}
	})
}

// Names of files and ids of uploads are read back as they are written, and in no other spelling.
func FuzzID(f *testing.F) {
	f.Add(newID(1).String())
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if i, ok := parseID(s); ok && i.String() != s {
			t.Errorf("%q is read as %s", s, i)
		}
	})
	if i := newID(1_700_000_000_000); !bytes.HasPrefix(i[:], []byte{0x01, 0x8b}) {
		f.Errorf("an id begins with its instant: %s", i)
	}
}

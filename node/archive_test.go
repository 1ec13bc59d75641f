package node

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edged/internal/fault"
)

// packed makes an archive of entries, each a name with its content; a name that ends in / is a folder, one with -> a link.
func packed(t testing.TB, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		h := &tar.Header{Name: entries[i], Mode: 0o600, Size: int64(len(entries[i+1])), Typeflag: tar.TypeReg}
		if name, to, link := strings.Cut(entries[i], "->"); link {
			*h = tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
		} else if strings.HasSuffix(entries[i], "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(entries[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What is packed comes back, byte for byte and in its folders.
func TestPackAndUnpack(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	for name, text := range map[string]string{"a": "one", "folder/b": "", "folder/deep/c": strings.Repeat("x", 1<<20)} {
		path := filepath.Join(from, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := pack(t.Context(), &b, "kv", from); err != nil {
		t.Fatal(err)
	}
	if err := unpack(t.Context(), &b, "kv", to); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		seen++
		rel, _ := filepath.Rel(from, path)
		want, _ := os.ReadFile(path)
		got, err := os.ReadFile(filepath.Join(to, rel))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", rel, len(got), err)
		}
		return nil
	})
	if err != nil || seen != 3 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// An archive that is not ours, not whole, or reaches outside its directory is Invalid and writes nothing outside.
func TestUnpackRefuses(t *testing.T) {
	const head = archiveForm + "kv\n"
	whole := packed(t, archiveHead, head, "a", "one", archiveEnd, "")
	for name, archive := range map[string][]byte{
		"empty":             nil,
		"no tar":            []byte(strings.Repeat("no tar", 1000)),
		"another room":      packed(t, archiveHead, archiveForm+"sql\n", archiveEnd, ""),
		"no head":           packed(t, "a", "one", archiveEnd, ""),
		"no end":            packed(t, archiveHead, head, "a", "one"),
		"cut in a file":     whole[:1024+512+2],
		"cut between files": whole[:1024],
		"absolute":          packed(t, archiveHead, head, "/etc/x", "one", archiveEnd, ""),
		"outside":           packed(t, archiveHead, head, "../x", "one", archiveEnd, ""),
		"deep outside":      packed(t, archiveHead, head, "a/../../x", "one", archiveEnd, ""),
		"link":              packed(t, archiveHead, head, "a->/etc", "", archiveEnd, ""),
		"twice":             packed(t, archiveHead, head, "a", "one", "a", "two", archiveEnd, ""),
		"no folder":         packed(t, archiveHead, head, "f/a", "one", archiveEnd, ""),
	} {
		base := t.TempDir()
		err := unpack(t.Context(), bytes.NewReader(archive), "kv", filepath.Join(base, "to"))
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
		if list, lerr := os.ReadDir(base); lerr != nil || len(list) > 1 {
			t.Errorf("%s: %v %v", name, list, lerr)
		}
	}
}

// Whatever the bytes: no panic, and nothing outside the directory.
func FuzzUnpack(f *testing.F) {
	f.Add(packed(f, archiveHead, archiveForm+"kv\n", "folder/", "", "folder/a", "one", archiveEnd, ""))
	f.Add(packed(f, archiveHead, archiveForm+"kv\n", "../a", "one", archiveEnd, ""))
	f.Fuzz(func(t *testing.T, archive []byte) {
		base := t.TempDir()
		_ = unpack(t.Context(), bytes.NewReader(archive), "kv", filepath.Join(base, "to")) // what it says is not the question
		if list, err := os.ReadDir(base); err != nil || len(list) > 1 {
			t.Errorf("%v %v", list, err)
		}
	})
}

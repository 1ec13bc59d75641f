package artifact

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"edged/internal/fault"
)

// worker-bundle §4, §5: after Acquire every byte is verified and kept, and the index is what observed shows.
func TestAcquireFromHeldBytes(t *testing.T) {
	s := closing(t, Options{})
	req := bundle(t, s, "acme", "u1")
	got, err := s.Acquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	main, empty := digestOf([]byte("export default {}")).String(), digestOf(nil).String()
	want := &Index{
		ManifestSHA256: req.Digest.String(), Entrypoint: "main.js", TotalBytes: 34,
		Files: []File{
			{"main.js", main, typeModule, 17}, {"a/empty.bin", empty, "application/octet-stream", 0}, {"b.js", main, typeModule, 17},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v", got)
	}
	kept, ok, err := s.Custody("u1")
	if err != nil || !ok || !reflect.DeepEqual(kept, want) {
		t.Fatalf("custody is %+v %t %v", kept, ok, err)
	}
	if again, err := s.Acquire(t.Context(), req); err != nil || !reflect.DeepEqual(again, want) {
		t.Fatalf("again: %+v, %v", again, err)
	}
	other := req
	other.Digest[0] ^= 1
	if _, err := s.Acquire(t.Context(), other); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another bundle under the same UID: %v, want a conflict", err)
	}
	d, _ := ParseDigest(main)
	blob, err := s.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	b := make([]byte, blob.Size)
	if _, err := blob.ReadAt(b, 0); err != nil || string(b) != "export default {}" {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := s.Open(Digest{}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("unknown blob: %v", err)
	}
}

// node-surface §4: URLs of the own origin are resolved from what this tenant holds, and from nothing else.
func TestOwnOriginURLs(t *testing.T) {
	s := closing(t, Options{})
	req := bundle(t, s, "acme", "u1")
	for name, tt := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"another tenant's bytes": {func(r *Request) { r.Tenant = "rival" }, "not held by this tenant"},
		"bytes of nobody": {func(r *Request) {
			r.Digest[5] ^= 1
			r.URL = ownURL(r.Digest)
		}, "not held by this tenant"},
		"another digest in the URL": {func(r *Request) { r.URL = ownURL(digestOf(nil)) }, "own origin"},
		"another path":              {func(r *Request) { r.URL = ownOrigin + "/x" }, "own origin"},
		"origin in capitals":        {func(r *Request) { r.URL = strings.Replace(r.URL, "control", "Control", 1) }, "own origin"},
		"a trailing slash":          {func(r *Request) { r.URL += "/" }, "own origin"},
	} {
		r := req
		r.UID = "u-" + name
		tt.change(&r)
		_, err := s.Acquire(t.Context(), r)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(fault.Detail(err), tt.want) {
			t.Errorf("%s: got %v, want artifact_invalid with %q", name, err, tt.want)
		}
	}
	if holds(t, s, "rival", digestOf([]byte("export default {}"))) {
		t.Error("a refused acquisition gave a tenant what another holds")
	}
}

// worker-bundle §4: custody survives the source and a restart, and update verifies it again.
func TestCustodySurvives(t *testing.T) {
	content := map[string][]byte{"/main.js": []byte("export default {}")}
	src := newSource(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write(content[r.URL.Path])
	})
	d := digestOf(content["/main.js"])
	content["/m"] = manifestOf("main.js", wireFile{"main.js", src.URL + "/main.js", d.String(), typeModule})
	req := Request{Tenant: "acme", UID: "u1", URL: src.URL + "/m", Digest: digestOf(content["/m"]), Kind: Worker}
	opt := remote(t, src)
	opt.Dir = t.TempDir()
	s := open(t, opt)
	want, err := s.Acquire(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	gone := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) })
	src.serve.Store(&gone)
	before := src.hits.Load()

	s = open(t, opt)
	got, err := s.Acquire(t.Context(), req)
	if err != nil || !reflect.DeepEqual(got, want) || src.hits.Load() != before {
		t.Fatalf("with the source gone: %+v, %v, %d requests", got, err, src.hits.Load()-before)
	}
	// Damage is noticed, and healed from the source if it is still there.
	if err := os.WriteFile(s.blobPath(d), []byte("export default !!"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), req); !errors.Is(err, ErrInvalid) {
		t.Fatalf("damaged, source gone: %v", err)
	}
	if kept, ok, err := s.Custody("u1"); !ok || err != nil || !reflect.DeepEqual(kept, want) {
		t.Fatalf("a failed update took the custody away: %+v %t %v", kept, ok, err)
	}
	back := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(content[r.URL.Path]) })
	src.serve.Store(&back)
	if _, err := s.Acquire(t.Context(), req); err != nil {
		t.Fatalf("damaged, source back: %v", err)
	}
	if b, _ := os.ReadFile(s.blobPath(d)); !bytes.Equal(b, content["/main.js"]) {
		t.Errorf("not healed: %q", b)
	}
	s.Close()
}

// worker-bundle §2: 128 MiB together, 16 MiB each, 1 MiB of manifest; just inside is fine.
func TestSizeLimits(t *testing.T) {
	s := closing(t, Options{})
	big := strings.Repeat("x", MaxBlobBytes)
	f := hold(t, s, "acme", "f", "a/b", big)
	files := func(n int, extra ...wireFile) []byte {
		var all []wireFile
		for i := range n {
			g := f
			g.Path = "f" + string(rune('a'+i))
			all = append(all, g)
		}
		return manifestOf("", append(all, extra...)...)
	}
	acquire := func(uid string, manifest []byte) (*Index, error) {
		d := put(t, s, "acme", manifest)
		return s.Acquire(t.Context(), Request{Tenant: "acme", UID: uid, URL: ownURL(d), Digest: d, Kind: Assets})
	}
	index, err := acquire("full", files(8))
	if err != nil || index.TotalBytes != MaxBundleBytes {
		t.Errorf("128 MiB: %v, %v", index, err)
	}
	one := hold(t, s, "acme", "one", "a/b", "1")
	if _, err := acquire("over", files(8, one)); !errors.Is(err, ErrInvalid) || !strings.Contains(fault.Detail(err), "134217728 bytes together") {
		t.Errorf("128 MiB and a byte: %v", err)
	}
	if _, err := s.Put(t.Context(), "acme", Digest{}, strings.NewReader(big+"x")); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("16 MiB and a byte: %v", err)
	}
	long := append(files(1), bytes.Repeat([]byte(" "), MaxManifestBytes)...)
	if _, err := acquire("long", long); !errors.Is(err, ErrInvalid) || !strings.Contains(fault.Detail(err), "manifest: it has more than 1048576") {
		t.Errorf("a manifest over 1 MiB: %v", err)
	}
}

// worker-bundle §2: migrations are strictly UTF-8 and have no byte-order mark, wherever the reads are cut.
func TestMigrationText(t *testing.T) {
	s := closing(t, Options{})
	pad := strings.Repeat("x", 32<<10-1) // the copy buffer ends inside the next rune
	for content, want := range map[string]string{
		"":                     "",
		"select 'é😀';":         "",
		pad + "é":              "",
		pad + "😀" + pad + "é!": "",
		"ab\ufeff":             "",
		"\ufeffselect":         "byte-order mark",
		"\ufeff":               "byte-order mark",
		"\xff":                 "UTF-8",
		"\xc3":                 "UTF-8",
		pad + "\xf0\x9f\x98":   "UTF-8",
		pad + "\xed\xa0\x80":   "UTF-8",
	} {
		f := hold(t, s, "acme", "1.sql", typeSQL, content)
		d := put(t, s, "acme", manifestOf("", f))
		_, err := s.Acquire(t.Context(), Request{Tenant: "acme", UID: "u" + d.String(), URL: ownURL(d), Digest: d, Kind: Migrations})
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(fault.Detail(err), want)) {
			t.Errorf("%.20q…: got %v, want %q", content, err, want)
		}
	}
	for cut := range 5 { // whatever the cuts, also in the middle of the mark
		check := new(textCheck)
		b := []byte("\ufeffé")
		check.Write(b[:cut])
		check.Write(b[cut:])
		if check.end() == nil {
			t.Errorf("a mark cut at %d is not seen", cut)
		}
	}
}

// A caller that leaves is no fault of the bundle: what has arrived stays referred to, and Acquire goes on or Release
// gives up.
func TestAcquireIsContinued(t *testing.T) {
	main := []byte("export default {}")
	slow, asked := make(chan struct{}), make(chan struct{}, 2)
	var manifest []byte
	src := newSource(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/m":
			w.Write(manifest)
		case "/main.js":
			w.Write(main)
		case "/slow.txt":
			asked <- struct{}{}
			select {
			case <-slow:
				w.Write([]byte("slow"))
			case <-r.Context().Done():
			}
		}
	})
	manifest = manifestOf("main.js", wireFile{"main.js", src.URL + "/main.js", digestOf(main).String(), typeModule},
		wireFile{"slow.txt", src.URL + "/slow.txt", digestOf([]byte("slow")).String(), "text/plain"})
	req := Request{Tenant: "acme", UID: "u1", URL: src.URL + "/m", Digest: digestOf(manifest), Kind: Worker}
	opt := remote(t, src)
	opt.Dir, opt.Parallel = t.TempDir(), 1
	s := open(t, opt)

	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Acquire(ctx, req)
		done <- err
	}()
	<-asked // the slow file has been asked for, so the first has its reference
	if _, err := s.Acquire(t.Context(), req); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second Acquire of the UID: %v, want a conflict", err)
	}
	if err := s.Release("u1"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("Release during Acquire: %v, want a conflict", err)
	}
	leave()
	if err := <-done; fault.CodeOf(err) != fault.Canceled {
		t.Fatalf("got %v, want canceled", err)
	}
	if _, ok, _ := s.Custody("u1"); ok {
		t.Error("half a bundle is in custody")
	}
	s.Close()

	s = open(t, opt)
	if mine, err := s.refers("u1", digestOf(main)); !mine || err != nil {
		t.Fatalf("what had arrived is forgotten (%v)", err)
	}
	close(slow)
	before := src.hits.Load()
	if _, err := s.Acquire(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if n := src.hits.Load() - before; n != 1 {
		t.Errorf("going on took %d requests, want 1", n)
	}
	s.Close()
}

// Every fault of the options is reported, and names are bounded.
func TestInputsAreChecked(t *testing.T) {
	_, err := Open(Options{Origin: "http://x", Origins: []string{"https://ok.example", "https://x/y", "ftp://z"}})
	for _, want := range []string{"directory", "http://x", "https://x/y", "ftp://z"} {
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	s := closing(t, Options{})
	long := strings.Repeat("x", maxNameBytes+1)
	for _, r := range []Request{{Kind: Worker}, {Tenant: long, UID: "u", Kind: Worker}, {Tenant: "t", UID: long, Kind: Worker}, {Tenant: "t", UID: "u", Kind: 7}} {
		if _, err := s.Acquire(t.Context(), r); fault.CodeOf(err) != fault.Invalid || errors.Is(err, ErrInvalid) {
			t.Errorf("%.10v: %v", r, err)
		}
	}
	if _, err := s.Put(t.Context(), long, Digest{}, strings.NewReader("")); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a long tenant: %v", err)
	}
	if err := s.Release("nobody"); err != nil {
		t.Errorf("nothing to release: %v", err)
	}
}

// node-surface §3: a newer format is refused, files are private.
func TestOpenOnFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "artifacts")
	s := open(t, Options{Dir: dir})
	d := put(t, s, "acme", []byte("x"))
	for _, name := range []string{dir, s.blobDir(), s.tempDir()} {
		if info, _ := os.Stat(name); info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	if info, _ := os.Stat(s.blobPath(d)); info.Mode().Perm() != 0o600 {
		t.Errorf("blob has mode %v", info.Mode())
	}
	s.Close()
	os.WriteFile(filepath.Join(dir, "format"), []byte("artifact 99\n"), 0o600)
	if _, err := Open(Options{Dir: dir}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a newer format: %v", err)
	}
}

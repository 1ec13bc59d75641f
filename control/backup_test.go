package control

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edged/control/form"
	"edged/internal/fault"
)

// backupOf makes a node with one of everything and returns it, a backup of it, and its node key.
func backupOf(t *testing.T) (n *node, archive, key []byte, made map[string]string, replay func(*node) answer) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tls"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"ca.pem": "the certificate", "ca.key": "the CA's private key"} {
		if err := os.WriteFile(filepath.Join(dir, "tls", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n = startNode(t, dir, func(o *Options) { o.BackupFiles = []string{"tls/ca.pem", "tls/ca.key"} })
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	body := spec{"form": form.WorkerVersionURL, "space": "default", "name": "v", "spec": n.secretSpec(w, "v", "KEY"), "privateInputs": spec{"KEY": "deep-secret"}}
	replay = func(n *node) answer {
		return n.do("POST", root+"/resources", body, "Idempotency-Key", "the-key-of-the-version")
	}
	v := n.succeeded(replay(n))
	d := n.made(form.WorkerDeploymentURL, "d", weighted(w, v, 10000))
	e := n.made(form.WorkerEndpointURL, "e", spec{"worker": ref(w)})
	gone := n.made(form.ModuleWorkerURL, "gone", spec{})
	n.succeeded(n.del(gone))
	n.upload("held, and used by nothing yet")
	a := n.do("GET", "/operator/v1/control/backup", nil)
	a.is(t, 200, "")
	key, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		t.Fatal(err)
	}
	return n, a.body, key, map[string]string{"w": w, "v": v, "d": d, "e": e, "gone": gone}, replay
}

func restore(t *testing.T, archive, key []byte) (dir string, out *Restored, err error) {
	t.Helper()
	dir = t.TempDir()
	out, err = Restore(t.Context(), RestoreOptions{Dir: dir, NodeID: "local", NodeKey: key}, bytes.NewReader(archive))
	return dir, out, err
}

// A backup restored onto an empty node: the same UIDs, representations, Operations, tokens, secrets and artifacts; keys of
// idempotency and tombstones included.
func TestBackupAndRestore(t *testing.T) {
	n, archive, key, made, replay := backupOf(t)
	dir, out, err := restore(t, archive, key)
	if err != nil {
		t.Fatal(err)
	}
	if out.Resources != 5 || out.Blobs != 3 || out.At == "" { // manifest, module, what is held besides
		t.Errorf("restored %+v", out)
	}
	m := startNode(t, dir, nil)
	m.token = n.token // tokens come along
	for name, uid := range made {
		if was, is := n.get(uid), m.get(uid); was.status != is.status || !bytes.Equal(was.body, is.body) || was.header.Get("ETag") != is.header.Get("ETag") {
			t.Errorf("%s reads %d %s, was %s", name, is.status, is.body, was.body)
		}
		if op := n.get(uid); op.status == 200 {
			id := op.text(t, "lastOperation")
			if was, is := n.operation(id), m.operation(id); !bytes.Equal(was.body, is.body) {
				t.Errorf("operation of %s reads %s, was %s", name, is.body, was.body)
			}
		}
	}
	if was, is := replay(n), replay(m); !bytes.Equal(was.body, is.body) {
		t.Errorf("replay gives %s, was %s", is.body, was.body)
	}
	if m.unseal(made["v"])["KEY"] != "deep-secret" {
		t.Error("the secret is lost")
	}
	m.putWith(made["v"], n.get(made["v"]).member(t, "spec"), spec{"KEY": "other"}).is(t, 422, "invalid_spec")
	for _, b := range m.lastPlan().Bundles {
		for _, f := range b.Files {
			if got, err := m.c.module(t.Context(), homeTenant, &form.File{SHA256: f.SHA256, Size: f.Size}); err != nil || !strings.HasPrefix(string(got.Bytes), "exports fetch") {
				t.Errorf("module: %q %v", got.Bytes, err)
			}
		}
	}
	if !bytes.Equal(must(os.ReadFile(filepath.Join(dir, "tls", "ca.key"))), []byte("the CA's private key")) {
		t.Error("the CA's key is lost")
	}
	b := made["v"]
	m.succeeded(m.put(b, n.get(b).member(t, "spec"))) // and life goes on
	bundle := m.get(b).member(t, "spec").(map[string]any)["bundle"].(map[string]any)["resourceUid"].(string)
	m.succeeded(m.put(bundle, m.get(bundle).member(t, "spec"))) // custody is complete: it is verified again
	m.made(form.ModuleWorkerURL, "new", spec{})
	m.stop()
	startNode(t, dir, nil).get(made["w"]).is(t, 200, "")
	if _, err := os.Stat(filepath.Join(dir, "restoring")); err == nil {
		t.Error("something is left behind")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What is secret stays sealed in a backup: without the node key it gives nothing away.
func TestBackupShowsNoSecret(t *testing.T) {
	n, archive, key, _, _ := backupOf(t)
	for _, secret := range []string{"deep-secret", "private key", n.token, strings.Fields(string(key))[5]} {
		if bytes.Contains(archive, []byte(secret)) {
			t.Errorf("the backup shows %.12q…", secret)
		}
	}
	boss := n.principal("t2", "boss", "operator")
	boss.do("GET", "/operator/v1/control/backup", nil).is(t, 403, "forbidden")
}

// A restore takes a whole backup with the right key into an empty directory, or leaves nothing behind.
func TestRestoreRefuses(t *testing.T) {
	_, archive, key, _, _ := backupOf(t)
	other := startNode(t, t.TempDir(), nil)
	wrong := must(os.ReadFile(filepath.Join(other.dir, keyFile)))
	flipped := bytes.Clone(archive)
	flipped[bytes.Index(flipped, []byte("exports fetch"))] ^= 1
	for _, row := range []struct {
		name         string
		archive, key []byte
		code         fault.Code
		word         string
	}{
		{"empty", nil, key, fault.Invalid, "end is missing"},
		{"no archive", bytes.Repeat([]byte("x"), 2000), key, fault.Invalid, "no whole backup"},
		{"cut", archive[:len(archive)*2/3], key, fault.Invalid, "no whole backup"},
		{"cut before its end", cutEntries(archive, 1), key, fault.Invalid, "end is missing"},
		{"without a blob", dropEntry(archive, blobPrefix), key, fault.Invalid, "no whole backup"},
		{"damaged bytes", flipped, key, fault.Invalid, "damaged"},
		{"newer", bytes.Replace(archive, []byte(`{"format":1,`), []byte(`{"format":9,`), 1), key, fault.Conflict, "format 9"},
		{"other key", archive, wrong, fault.Conflict, "does not fit"},
		{"no key", archive, []byte("nonsense"), fault.Conflict, "node key file"},
	} {
		dir, _, err := restore(t, row.archive, row.key)
		if fault.CodeOf(err) != row.code || !strings.Contains(err.Error(), row.word) {
			t.Errorf("%s: %v", row.name, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("%s: left %v", row.name, entries)
		}
	}
	_, err := Restore(t.Context(), RestoreOptions{Dir: other.dir, NodeID: "local", NodeKey: key}, bytes.NewReader(archive))
	if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "already") {
		t.Errorf("onto a node in use: %v", err)
	}
}

// rewrite copies an archive entry by entry; keep says which.
func rewrite(archive []byte, keep func(i int, name string) bool) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	in := tar.NewReader(bytes.NewReader(archive))
	for i := 0; ; i++ {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(err)
		}
		if keep(i, h.Name) {
			if err := w.WriteHeader(h); err != nil {
				panic(err)
			}
			must(io.Copy(w, in))
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func cutEntries(archive []byte, n int) []byte {
	total := 0
	rewrite(archive, func(i int, _ string) bool { total = i + 1; return false })
	return rewrite(archive, func(i int, _ string) bool { return i < total-n })
}

func dropEntry(archive []byte, prefix string) []byte {
	dropped := false
	return rewrite(archive, func(_ int, name string) bool {
		if !dropped && strings.HasPrefix(name, prefix) {
			dropped = true
			return false
		}
		return true
	})
}

// A backup may be taken while everything changes: it is always one that can be restored.
func TestBackupWhileBusy(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	key := must(os.ReadFile(filepath.Join(n.dir, keyFile)))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop; waited for below
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			n.succeeded(n.del(n.code("b", "fetch")))
		}
	}()
	for range 5 {
		var archive bytes.Buffer
		if err := n.c.Backup(t.Context(), &archive); err != nil {
			t.Fatal(err)
		}
		if _, _, err := restore(t, archive.Bytes(), key); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	<-done
}

// FuzzRestore: no archive, whatever is in it, does more than fail, and none leaves anything behind.
func FuzzRestore(f *testing.F) {
	var empty bytes.Buffer
	w := tar.NewWriter(&empty)
	_ = w.WriteHeader(&tar.Header{Name: headEntry, Size: 12})
	_, _ = w.Write([]byte(`{"format":1}`))
	_ = w.WriteHeader(&tar.Header{Name: stateEntry, Size: 0})
	_ = w.Close()
	f.Add(empty.Bytes())
	key := []byte("edged node keys 1\n0000000000000000 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n")
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		if _, err := Restore(t.Context(), RestoreOptions{Dir: dir, NodeID: "n", NodeKey: key}, bytes.NewReader(archive)); err == nil {
			return
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("left %v", entries)
		}
	})
}

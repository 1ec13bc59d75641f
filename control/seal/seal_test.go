package seal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edged/internal/fault"
)

func open(t testing.TB, path string) *Ring {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sealed(t testing.TB, r *Ring, plain string, context ...string) Box {
	t.Helper()
	b, err := r.Seal([]byte(plain), context...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A box gives its value back, to its own context alone, also after a restart; the file is for its owner only.
func TestSealAndOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	r := open(t, path)
	if !r.Fresh() {
		t.Error("a made file is not fresh")
	}
	for _, plain := range []string{"", "x", strings.Repeat("long ", 9999)} {
		b := sealed(t, r, plain, "t", "uid", "NAME")
		if len(plain) > 8 && bytes.Contains(b, []byte(plain)) {
			t.Error("the box shows its value")
		}
		again := open(t, path)
		if got, err := again.Open(b, "t", "uid", "NAME"); err != nil || string(got) != plain || again.Fresh() {
			t.Errorf("got %.20q %v", got, err)
		}
		for _, other := range [][]string{{"t", "uid", "OTHER"}, {"t", "ui", "dNAME"}, {"t", "uid"}, {"t", "uid", "NAME", ""}} {
			if _, err := r.Open(b, other...); !errors.Is(err, ErrDamaged) {
				t.Errorf("opens as %q: %v", other, err)
			}
		}
	}
	if bytes.Equal(sealed(t, r, "same"), sealed(t, r, "same")) {
		t.Error("equal values give equal boxes")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v %v", info.Mode(), err)
	}
}

// No byte of a box can be changed unnoticed, and none of it can be cut.
func TestDamagedBox(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "node.key"))
	b := sealed(t, r, "value", "c")
	for i := range b {
		bad := append(Box(nil), b...)
		bad[i] ^= 1
		if _, err := r.Open(bad, "c"); err == nil {
			t.Errorf("byte %d may be changed", i)
		}
		if _, err := r.Open(b[:i], "c"); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

// Rotation: new values go under the new key, old ones stay readable until their key is forgotten.
func TestRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	r := open(t, path)
	old := sealed(t, r, "v", "c")
	m, stored, err := r.NewMarker()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	if old.KeyID() == r.Current() || sealed(t, r, "v").KeyID() != r.Current() || len(r.IDs()) != 2 {
		t.Error("the key was not rotated")
	}
	fresh, err := r.Reseal(old, "c")
	if err != nil || fresh.KeyID() != r.Current() {
		t.Fatal(err)
	}
	again, err := r.ResealMarker(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Forget(func(id string) bool { return id == old.KeyID() }); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path).Open(old, "c"); err != nil {
		t.Errorf("a key in use was forgotten: %v", err)
	}
	if err := r.Forget(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Ring{r, open(t, path)} {
		if _, err := r.Open(old, "c"); !errors.Is(err, ErrLost) || fault.CodeOf(err) != fault.Conflict {
			t.Errorf("a forgotten key opens: %v", err)
		}
		if v, err := r.Open(fresh, "c"); err != nil || string(v) != "v" {
			t.Errorf("got %q %v", v, err)
		}
		if n, err := r.OpenMarker(again); err != nil || n.ID() != m.ID() || !bytes.Equal(n.Mark("a"), m.Mark("a")) {
			t.Errorf("the marker changed: %v", err)
		}
	}
}

// Marks are equal exactly when everything is: key, purpose, value.
func TestMarks(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "node.key"))
	m, _, _ := r.NewMarker()
	other, _, _ := r.NewMarker()
	if !bytes.Equal(m.Mark("uid", "N", "v"), m.Mark("uid", "N", "v")) {
		t.Error("equal values differ")
	}
	for _, b := range [][]byte{other.Mark("uid", "N", "v"), m.Mark("uid", "N", "w"), m.Mark("uid", "Nv", ""), m.Mark("uid2", "N", "v")} {
		if bytes.Equal(m.Mark("uid", "N", "v"), b) {
			t.Error("different things have one mark")
		}
	}
	if other.ID() == m.ID() {
		t.Error("two markers share an id")
	}
}

// A damaged key file is named and left as it is; a readable one is made private.
func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	open(t, path)
	good, _ := os.ReadFile(path)
	for _, bad := range []string{"", "x", fileHead + "\n", string(good[:len(good)-3]), string(good) + "zz yy\n", fileHead + "\n" + strings.Repeat(strings.TrimPrefix(string(good), fileHead+"\n"), 65)} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), path) || Check([]byte(bad)) == nil {
			t.Errorf("%.30q gives %v", bad, err)
		}
		if now, _ := os.ReadFile(path); string(now) != bad {
			t.Error("the file was changed")
		}
	}
	if err := os.WriteFile(path, good, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// FuzzOpenBox: whatever is stored in the place of a box is refused, not believed.
func FuzzOpenBox(f *testing.F) {
	r := open(f, filepath.Join(f.TempDir(), "node.key"))
	good := sealed(f, r, "v", "c")
	f.Add([]byte(good))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if plain, err := r.Open(b, "c"); err == nil && !bytes.Equal(b, good) {
			t.Errorf("%x opens as %x", b, plain)
		}
	})
}

// FuzzKeyFile: a key file never panics, and what is accepted is written back the same.
func FuzzKeyFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "node.key")
	open(f, path)
	good, _ := os.ReadFile(path)
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if keys, err := parse(b); err == nil && (len(keys) == 0 || len(keys) > maxKeys) {
			t.Errorf("%d keys", len(keys))
		}
	})
}

// A ring takes over another node's keys in their order, durably, and keeps its own only where they are used; a file that is none, or
// that contradicts it, changes nothing.
func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	leader, r := open(t, filepath.Join(t.TempDir(), "node.key")), open(t, path)
	own, old := r.Current(), leader.Current()
	never := func(string) bool { return false }
	box := sealed(t, leader, "value", "x")
	if err := leader.Rotate(); err != nil {
		t.Fatal(err)
	}
	if err := r.Take(leader.File(), func(id string) bool { return id == own }); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(r.IDs(), " "), strings.Join([]string{leader.Current(), old, own}, " "); got != want {
		t.Errorf("the ring has %s, want %s", got, want)
	}
	r = open(t, path) // durable
	if got, err := r.Open(box, "x"); err != nil || string(got) != "value" {
		t.Errorf("the leader's box opens to %q, %v", got, err)
	}
	if err := r.Take(leader.File(), never); err != nil || len(r.IDs()) != 2 {
		t.Errorf("unused, the own key stays: %v, %v", r.IDs(), err)
	}
	if err := leader.Forget(never); err != nil {
		t.Fatal(err)
	}
	if err := r.Take(leader.File(), never); err != nil || !bytes.Equal(r.File(), leader.File()) {
		t.Errorf("the forgotten key stays: %v, %v", r.IDs(), err)
	}
	other := open(t, filepath.Join(t.TempDir(), "node.key"))
	if err := other.Take(leader.File(), never); err != nil || !bytes.Equal(other.File(), leader.File()) {
		t.Errorf("one key in the place of one: %v", err)
	}
	before := r.File()
	fields := strings.Fields(string(before))
	foreign := strings.Replace(string(before), fields[len(fields)-1], "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 1)
	for text, code := range map[string]fault.Code{"": fault.Invalid, string(before) + "x\n": fault.Invalid, foreign: fault.Conflict} {
		err := r.Take([]byte(text), never)
		if fault.CodeOf(err) != code || strings.Contains(err.Error(), fields[len(fields)-1]) || !bytes.Equal(r.File(), before) {
			t.Errorf("%.30q gives %v", text, err)
		}
	}
}

// One key seals: the one that was named, else the first of the file; and the one that seals is never forgotten.
func TestWhichKeySeals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.key")
	r := open(t, path)
	old := r.Current()
	r.Use(old)
	if err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	fresh := r.Newest()
	if fresh == old || r.Current() != old || sealed(t, r, "v").KeyID() != old {
		t.Error("a fresh key seals before it is named")
	}
	for id, want := range map[string]string{fresh: fresh, "": fresh, "noise": fresh, "0000000000000001": fresh, old: old} {
		if r.Use(id); r.Current() != want || sealed(t, r, "v").KeyID() != want {
			t.Errorf("with %q named %s seals, want %s", id, r.Current(), want)
		}
	}
	r.Use(old)
	if err := r.Forget(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if ids := open(t, path).IDs(); len(ids) != 1 || ids[0] != old {
		t.Errorf("left are %v, want the one that seals", ids)
	}
}

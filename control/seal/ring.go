package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"edged/internal/disk"
	"edged/internal/fault"
)

// fileHead is the first line of a key file.
const fileHead = "edged node keys 1"

// maxKeys bounds a key file: one current key, and those that a rotation has not replaced everywhere yet.
const maxKeys = 64

// key is one key of the ring.
type key struct {
	id     [idBytes]byte
	secret [32]byte
}

// Ring is the keys of one key file. One seals, the first unless Use named another; all of them open. Safe for concurrent use.
type Ring struct {
	path  string
	fresh bool // set by Open, then constant

	change sync.Mutex // held while the file is replaced, taken before mu

	mu    sync.RWMutex  // guards all below
	keys  []key         // never empty
	seals [idBytes]byte // the key that Use named; zero or not among keys: the first
}

// Open reads the key file at path, or makes one with a fresh key (mode 0600) if there is none. A file that does not hold
// keys is refused with a Conflict and never replaced: what was sealed could not be opened any more.
func Open(path string) (*Ring, error) {
	r := &Ring{path: path}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.keys, r.fresh = []key{newKey()}, true
		return r, r.write(r.keys)
	case err != nil:
		return nil, fault.Wrap(fault.Unavailable, "seal.Open", err)
	}
	if r.keys, err = parse(raw); err != nil {
		return nil, fault.Newf(fault.Conflict, "seal.Open", "%s does not hold node keys (%v): put the right file back", path, err)
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(path, 0o600)
	}
	return r, fault.Wrap(fault.Unavailable, "seal.Open", err)
}

// Check reports whether raw is a key file that Open would take.
func Check(raw []byte) error {
	_, err := parse(raw)
	return err
}

// Fresh reports whether Open made the file.
func (r *Ring) Fresh() bool { return r.fresh }

func newKey() (k key) {
	_, _ = rand.Read(k.id[:]) // never fails: it ends the program instead
	_, _ = rand.Read(k.secret[:])
	return k
}

func parse(raw []byte) ([]key, error) {
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if lines[0] != fileHead {
		return nil, errors.New("its first line is another")
	}
	if len(lines) < 2 || len(lines) > 1+maxKeys {
		return nil, errors.New("it has no key, or too many")
	}
	var keys []key
	for _, line := range lines[1:] {
		id, secret, _ := strings.Cut(line, " ")
		var k key
		rawID, err := hex.DecodeString(id)
		rawKey, err2 := base64.StdEncoding.Strict().DecodeString(secret)
		if err != nil || err2 != nil || len(rawID) != len(k.id) || len(rawKey) != len(k.secret) {
			return nil, errors.New("a line is no key")
		}
		copy(k.id[:], rawID)
		copy(k.secret[:], rawKey)
		keys = append(keys, k)
	}
	return keys, nil
}

func (r *Ring) write(keys []key) error { return disk.WriteFile(r.path, render(keys), 0o600) }

func render(keys []key) []byte {
	var b bytes.Buffer
	b.WriteString(fileHead + "\n")
	for _, k := range keys {
		b.WriteString(hex.EncodeToString(k.id[:]) + " " + base64.StdEncoding.EncodeToString(k.secret[:]) + "\n")
	}
	return b.Bytes()
}

// File returns the key file as it is: a secret, for another node of the same fleet. The caller owns the slice.
func (r *Ring) File() []byte {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return render(r.keys)
}

// Take makes the keys of raw, a key file of another node of the fleet, those of this ring, durably, and keeps beside them the ring's
// own that used reports: what they sealed is still around here. A file that holds no keys is Invalid; one with another key under an id
// that the ring knows, or with which there would be too many, a Conflict. The ring is then what it was.
func (r *Ring) Take(raw []byte, used func(id string) bool) error {
	theirs, err := parse(raw)
	if err != nil {
		return fault.Newf(fault.Invalid, "seal.Take", "what the other node sent does not hold node keys (%v)", err)
	}
	return r.replace(func(old []key) ([]key, error) {
		keys := slices.Clone(theirs)
		for _, k := range old {
			id := hex.EncodeToString(k.id[:])
			at := slices.IndexFunc(theirs, func(t key) bool { return t.id == k.id })
			switch {
			case at >= 0 && theirs[at] != k:
				return nil, fault.Newf(fault.Conflict, "seal.Take", "the other node has another key %s: the nodes are not of one fleet", id)
			case at < 0 && used(id):
				keys = append(keys, k)
			}
		}
		if len(keys) > maxKeys {
			return nil, fault.Newf(fault.Conflict, "seal.Take", "with the keys of the other node there would be %d", len(keys))
		}
		return keys, nil
	})
}

func (r *Ring) key(id [idBytes]byte) (key, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, k := range r.keys {
		if k.id == id {
			return k, true
		}
	}
	return key{}, false
}

// Use makes the key with this id the one that seals, until another is named or the ring is opened again. While the ring has no such key, its
// first one seals.
func (r *Ring) Use(id string) {
	var seals [idBytes]byte
	if raw, err := hex.DecodeString(id); err == nil && len(raw) == idBytes {
		seals = [idBytes]byte(raw)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seals = seals
}

func (r *Ring) current() key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, k := range r.keys {
		if k.id == r.seals {
			return k
		}
	}
	return r.keys[0]
}

// Current returns the id of the key that seals.
func (r *Ring) Current() string {
	k := r.current()
	return hex.EncodeToString(k.id[:])
}

// Newest returns the id of the first key of the file, which Rotate made last.
func (r *Ring) Newest() string { return r.IDs()[0] }

// IDs returns the ids of all keys in the order of the file. The caller owns the slice.
func (r *Ring) IDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]string, len(r.keys))
	for i, k := range r.keys {
		out[i] = hex.EncodeToString(k.id[:])
	}
	return out
}

// Rotate puts a fresh key in front of the others, durably before it seals anything, and keeps those for opening. It is the current one unless
// Use has named another. Conflict when the file has as many keys as it may have: an earlier rotation was never finished.
func (r *Ring) Rotate() error {
	return r.replace(func(old []key) ([]key, error) {
		if len(old) >= maxKeys {
			return nil, fault.Newf(fault.Conflict, "seal.Rotate", "the node key file has %d keys already", len(old))
		}
		return append([]key{newKey()}, old...), nil
	})
}

// Forget removes every key but the current one, which becomes the first, and those that used reports. What was sealed with a removed key is
// lost.
func (r *Ring) Forget(used func(id string) bool) error {
	return r.replace(func(old []key) ([]key, error) {
		keys := []key{r.current()}
		for _, k := range old {
			if k != keys[0] && used(hex.EncodeToString(k.id[:])) {
				keys = append(keys, k)
			}
		}
		return keys, nil
	})
}

func (r *Ring) replace(change func([]key) ([]key, error)) error {
	r.change.Lock()
	defer r.change.Unlock()
	r.mu.RLock()
	old := r.keys
	r.mu.RUnlock()
	keys, err := change(old)
	if err != nil || slices.Equal(keys, old) {
		return err
	}
	if err := r.write(keys); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = keys
	return nil
}

// Reseal returns what b holds, sealed under the current key; b itself if it is that already. The errors are those of Open.
func (r *Ring) Reseal(b Box, context ...string) (Box, error) {
	if b.KeyID() == r.Current() {
		return b, nil
	}
	plain, err := r.Open(b, context...)
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	return r.Seal(plain, context...)
}

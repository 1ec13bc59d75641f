package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// Marker makes marks: keyed digests that tell whether two values are equal and, without the key, nothing else. Immutable.
type Marker struct {
	id  string
	key []byte
}

// markerContext is what the marker's key is sealed for.
const markerContext = "comparison key"

// NewMarker makes a marker with a fresh key, and that key sealed, to be stored.
func (r *Ring) NewMarker() (*Marker, Box, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: it ends the program instead
	box, err := r.Seal(key, markerContext)
	return newMarker(key), box, err
}

// OpenMarker returns the marker of a stored key. The errors are those of Open.
func (r *Ring) OpenMarker(b Box) (*Marker, error) {
	key, err := r.Open(b, markerContext)
	if err != nil {
		return nil, err
	}
	return newMarker(key), nil
}

// ResealMarker seals a stored marker's key under the current key.
func (r *Ring) ResealMarker(b Box) (Box, error) { return r.Reseal(b, markerContext) }

func newMarker(key []byte) *Marker {
	sum := sha256.Sum256(append([]byte("edged marker id\x00"), key...))
	return &Marker{id: hex.EncodeToString(sum[:8]), key: key}
}

// ID names the marker's key: marks of different keys cannot be compared.
func (m *Marker) ID() string { return m.id }

// Mark returns the mark of the parts, the last of which is a value and the others what it is for.
func (m *Marker) Mark(parts ...string) []byte {
	h := hmac.New(sha256.New, m.key)
	h.Write(bind(nil, parts))
	return h.Sum(nil)
}

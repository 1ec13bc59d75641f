package objects

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
)

// A cursor is base64url of: version u8 | MAC 16 bytes | kind u8 | the last key or prefix of the page. The MAC also covers bucket,
// prefix and delimiter, so that a cursor continues only the listing it came from.
const (
	cursorVersion = 1
	macBytes      = 16
)

// What a page ended with.
const (
	afterKey    = 'k' // the next is behind this key
	afterPrefix = 'p' // the next is behind all keys with this prefix
)

var errCursor = ErrInvalidCursor.New("objects.List", "the cursor is not one of this listing")

// listing is what a cursor belongs to.
type listing struct{ uid, prefix, delimiter string }

// place is where a page ended.
type place struct {
	kind byte
	at   string
}

type cursors struct{ secret []byte }

// openCursors makes the secret once and keeps it.
func (s *Store) openCursors() error {
	v, err := s.get(cursorKey)
	if err == nil && v == nil {
		v = make([]byte, 32)
		rand.Read(v) // never fails
		err = s.db.Set(cursorKey, v, pebble.Sync)
	}
	s.cursors.secret = v
	return err
}

func (c cursors) mac(l listing, body []byte) []byte {
	h := hmac.New(sha256.New, c.secret)
	for _, s := range []string{"objects cursor", l.uid, l.prefix, l.delimiter} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
		h.Write([]byte(s))
	}
	h.Write(body)
	return h.Sum(nil)[:macBytes]
}

func (c cursors) issue(l listing, p place) string {
	body := append([]byte{p.kind}, p.at...)
	b := append([]byte{cursorVersion}, c.mac(l, body)...)
	return base64.RawURLEncoding.EncodeToString(append(b, body...))
}

// open returns where a page of this very listing ended, or invalid_cursor.
func (c cursors) open(l listing, cursor string) (place, error) {
	if len(cursor) > MaxCursorChars {
		return place{}, errCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 1+macBytes+2 || b[0] != cursorVersion {
		return place{}, errCursor
	}
	body := b[1+macBytes:]
	if !hmac.Equal(b[1:1+macBytes], c.mac(l, body)) {
		return place{}, errCursor
	}
	return place{body[0], string(body[1:])}, nil
}

package kv

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// A cursor is base64url of: version u8 | MAC 16 bytes | the last key that the listing passed. The MAC also covers namespace and
// prefix, so that a cursor continues only the listing it came from.
const (
	cursorVersion = 1
	macBytes      = 16
)

var errCursor = ErrInvalidCursor.New("kv.List", "the cursor is not one of this listing")

// cursors makes and checks cursors under one secret.
type cursors struct{ secret []byte }

func (c cursors) mac(uid, prefix string, last []byte) []byte {
	h := hmac.New(sha256.New, c.secret)
	var b [4]byte
	for _, s := range []string{"kv cursor", uid, prefix} {
		binary.BigEndian.PutUint32(b[:], uint32(len(s)))
		h.Write(b[:])
		h.Write([]byte(s))
	}
	h.Write(last)
	return h.Sum(nil)[:macBytes]
}

// issue returns the cursor of a listing that has passed last.
func (c cursors) issue(uid, prefix string, last []byte) string {
	b := append([]byte{cursorVersion}, c.mac(uid, prefix, last)...)
	return base64.RawURLEncoding.EncodeToString(append(b, last...))
}

// open returns the last key of a cursor of this very listing, or invalid_cursor.
func (c cursors) open(uid, prefix, cursor string) ([]byte, error) {
	if len(cursor) == 0 || len(cursor) > MaxCursorChars {
		return nil, errCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) < 1+macBytes || len(b) > 1+macBytes+MaxKeyBytes || b[0] != cursorVersion {
		return nil, errCursor
	}
	last := b[1+macBytes:]
	if !hmac.Equal(b[1:1+macBytes], c.mac(uid, prefix, last)) {
		return nil, errCursor
	}
	return last, nil
}

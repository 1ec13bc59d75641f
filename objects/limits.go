package objects

import (
	"unicode/utf8"

	"edged/internal/fault"
)

// The contract's numbers (objects §4), and what is stored where.
const (
	MaxKeyBytes         = 979       // of a key, and of a prefix
	MaxObjectBytes      = 5 << 30   // of an object, and of one part
	MaxPutBytes         = 300 << 20 // of one put
	MaxParts            = 10_000
	MinPartBytes        = 5 << 20 // of every part but the last
	MaxContentTypeChars = 256     // code points
	MaxEtagChars        = 256
	MaxDelimiterChars   = 16
	MaxCursorChars      = 4096
	MaxListLimit        = 1000
	DefaultListLimit    = 100

	inlineBytes   = 128 << 10 // bodies up to this length live in Pebble: measured, files are faster above
	blockBytes    = 1 << 20   // one checksum covers as much
	overheadBytes = 128       // what an object, an upload or a part counts for beside its bytes and key
)

func checkKey(op, key string) error {
	if key == "" || len(key) > MaxKeyBytes || !utf8.ValidString(key) {
		return ErrInvalidKey.New(op, "a key has 1 to 979 bytes of UTF-8")
	}
	return nil
}

// checkChars holds an optional text to 1 to most code points.
func checkChars(op, what, s string, most int) error {
	if len(s) > most*utf8.UTFMax || !utf8.ValidString(s) || utf8.RuneCountInString(s) > most {
		return fault.Newf(fault.Invalid, op, "%s has 1 to %d characters", what, most)
	}
	return nil
}

// maxUIDBytes bounds the name of a bucket.
const maxUIDBytes = 1020

func checkUID(op, uid string) error {
	if uid == "" || len(uid) > maxUIDBytes {
		return fault.New(fault.Invalid, op, "a bucket's uid has 1 to 1020 bytes")
	}
	return nil
}

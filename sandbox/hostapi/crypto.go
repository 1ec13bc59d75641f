package hostapi

import (
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"

	"edged/sandbox/engine"
)

// randomFill(bytes): writes random bytes into a Uint8Array.
func hostRandomFill(in *engine.Instance, args []engine.Value) engine.Value {
	b, ok := in.Bytes(args[0])
	if !ok {
		return badArgument(in, "randomFill")
	}
	rand.Read(b) // never fails: the program ends where the system has no randomness
	return engine.Undefined
}

// randomUUID(): a version 4 UUID as text.
func hostRandomUUID(in *engine.Instance, _ []engine.Value) engine.Value {
	var raw [16]byte
	rand.Read(raw[:])
	raw[6] = raw[6]&0x0f | 0x40
	raw[8] = raw[8]&0x3f | 0x80
	text := make([]byte, 0, 36)
	for i, from := range [...]int{0, 4, 6, 8, 10} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, raw[from:[...]int{4, 6, 8, 10, 16}[i]])
	}
	return in.NewLatin1(text)
}

// Digests, as the prelude numbers them.
const (
	digestSHA1 = 1 + iota
	digestSHA256
	digestSHA384
	digestSHA512
)

// digest(number, bytes): the digest as a Uint8Array.
func hostDigest(in *engine.Instance, args []engine.Value) engine.Value {
	number, isNumber := args[0].Int()
	b, ok := in.Bytes(args[1])
	if !ok || !isNumber {
		return badArgument(in, "digest")
	}
	var h hash.Hash
	switch number {
	case digestSHA1:
		h = sha1.New()
	case digestSHA256:
		h = sha256.New()
	case digestSHA384:
		h = sha512.New384()
	case digestSHA512:
		h = sha512.New()
	default:
		return badArgument(in, "digest")
	}
	for len(b) > 0 {
		n := min(len(b), digestPiece)
		h.Write(b[:n]) // never fails
		if b = b[n:]; len(b) > 0 && in.Overdue() {
			return in.ThrowError("Error", "the time is over") // nobody sees it: the guest is stopped
		}
	}
	var sum [sha512.Size]byte
	return in.NewBytes(h.Sum(sum[:0]))
}

// digestPiece bounds what is hashed at once: the hash functions cannot be preempted, and neither then can the node.
const digestPiece = 256 << 10

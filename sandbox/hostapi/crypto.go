package hostapi

import (
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"

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
	switch number {
	case digestSHA1:
		sum := sha1.Sum(b)
		return in.NewBytes(sum[:])
	case digestSHA256:
		sum := sha256.Sum256(b)
		return in.NewBytes(sum[:])
	case digestSHA384:
		sum := sha512.Sum384(b)
		return in.NewBytes(sum[:])
	case digestSHA512:
		sum := sha512.Sum512(b)
		return in.NewBytes(sum[:])
	}
	return badArgument(in, "digest")
}

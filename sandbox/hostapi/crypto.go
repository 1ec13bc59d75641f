package hostapi

import (
	"crypto/rand"
	"encoding/hex"

	"edged/sandbox/engine"
	"edged/sandbox/hostapi/webcrypto"
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

// digest(number, bytes): the digest as a Uint8Array.
func hostDigest(in *engine.Instance, args []engine.Value) engine.Value {
	a := subtleArgs{in, args, true}
	h, data := webcrypto.Hash(a.int(0, 0xff)), a.bytes(1)
	if !a.ok || !h.Valid() {
		return badArgument(in, "digest")
	}
	return bytesOrThrow(in)(webcrypto.Digest(h, data, in.Overdue))
}

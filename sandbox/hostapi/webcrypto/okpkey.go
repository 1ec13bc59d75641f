package webcrypto

import (
	"crypto/ecdh"
	"crypto/ed25519"
)

const okpBytes = 32

func okpPublic(b []byte) (Key, error) {
	if len(b) != okpBytes {
		return Key{}, dataError("the public key has %d bytes, not %d", len(b), okpBytes)
	}
	return Key{Type: Public, Data: b}, nil
}

// okpPrivate takes a seed (Ed25519) or a scalar (X25519) and computes the public key.
func okpPrivate(a Algorithm, b []byte) (Key, error) {
	if len(b) != okpBytes {
		return Key{}, dataError("the private key has %d bytes, not %d", len(b), okpBytes)
	}
	data := append(make([]byte, 0, 2*okpBytes), b...)
	if a == Ed25519 {
		return Key{Type: Private, Data: append(data, ed25519.NewKeyFromSeed(b)[okpBytes:]...)}, nil
	}
	k, err := ecdh.X25519().NewPrivateKey(b)
	if err != nil {
		return Key{}, dataError("this is not an X25519 private key")
	}
	return Key{Type: Private, Data: append(data, k.PublicKey().Bytes()...)}, nil
}

// okpPublicBytes returns the public key of a key of either type.
func (k Key) okpPublicBytes() []byte { return k.Data[len(k.Data)-okpBytes:] }

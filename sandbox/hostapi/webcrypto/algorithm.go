package webcrypto

import (
	"crypto"
	_ "crypto/sha1" // the hashes that crypto.Hash finds
	_ "crypto/sha256"
	_ "crypto/sha512"
)

// Algorithm is a registered algorithm. The numbers are the prelude's and those of stored images.
type Algorithm uint8

// The algorithms.
const (
	RSASSA Algorithm = 1 + iota
	RSAPSS
	RSAOAEP
	ECDSA
	ECDH
	Ed25519
	X25519
	AESCTR
	AESCBC
	AESGCM
	AESKW
	HMAC
	HKDF
	PBKDF2
	numAlgorithms
)

// Valid reports whether a is one of the algorithms.
func (a Algorithm) Valid() bool { return a >= RSASSA && a < numAlgorithms }

// IsRSA reports whether a is an algorithm of RSA keys.
func (a Algorithm) IsRSA() bool { return a <= RSAOAEP }

// NeedsHash reports whether every key of a comes with a digest.
func (a Algorithm) NeedsHash() bool { return a.IsRSA() || a == HMAC }

// Signs reports whether a signs and verifies.
func (a Algorithm) Signs() bool {
	return a == RSASSA || a == RSAPSS || a == ECDSA || a == Ed25519 || a == HMAC
}

// Encrypts reports whether a encrypts and decrypts, or wraps and unwraps.
func (a Algorithm) Encrypts() bool { return a == RSAOAEP || a.isAES() }

// Derives reports whether bits and keys are derived with a.
func (a Algorithm) Derives() bool { return a == ECDH || a == X25519 || a >= HKDF }

func (a Algorithm) isEC() bool  { return a == ECDSA || a == ECDH }
func (a Algorithm) isOKP() bool { return a == Ed25519 || a == X25519 }
func (a Algorithm) isAES() bool { return a >= AESCTR && a <= AESKW }

// Hash is a digest; 0 is none.
type Hash uint8

// The digests.
const (
	SHA1 Hash = 1 + iota
	SHA256
	SHA384
	SHA512
	numHashes
)

// Valid reports whether h is one of the digests.
func (h Hash) Valid() bool { return h >= SHA1 && h < numHashes }

func (h Hash) std() crypto.Hash {
	return [...]crypto.Hash{0, crypto.SHA1, crypto.SHA256, crypto.SHA384, crypto.SHA512}[h]
}

// suffix is how JWK names end that say the digest.
func (h Hash) suffix() string { return [...]string{"", "1", "256", "384", "512"}[h] }

// BlockBits is the block size, which is the length of an HMAC key when none is asked for.
func (h Hash) BlockBits() int { return h.std().New().BlockSize() * 8 }

// digestPiece bounds what is worked on at once: the primitives cannot be interrupted, and neither then can the node.
const digestPiece = 256 << 10

type writer interface{ Write([]byte) (int, error) }

// feed writes data to a hash, which never fails, piece by piece.
func feed(w writer, data []byte, stop Stop) error {
	for len(data) > 0 {
		n := min(len(data), digestPiece)
		w.Write(data[:n]) // never fails
		if data = data[n:]; len(data) > 0 && stop.now() {
			return errStopped
		}
	}
	return nil
}

// Digest returns the digest of data.
func Digest(h Hash, data []byte, stop Stop) ([]byte, error) {
	d := h.std().New()
	if err := feed(d, data, stop); err != nil {
		return nil, err
	}
	return d.Sum(nil), nil
}

// Format is a key format.
type Format uint8

// The formats.
const (
	Raw Format = 1 + iota
	PKCS8
	SPKI
	JWKFormat
	numFormats
)

// Valid reports whether f is one of the formats.
func (f Format) Valid() bool { return f >= Raw && f < numFormats }

// Usages is a set of usages.
type Usages uint16

// The usages, in the order in which they are listed.
const (
	UseEncrypt Usages = 1 << iota
	UseDecrypt
	UseSign
	UseVerify
	UseDeriveKey
	UseDeriveBits
	UseWrapKey
	UseUnwrapKey
	endUsages
)

const allUsages = endUsages - 1

// Valid reports whether u is a set of usages.
func (u Usages) Valid() bool { return u&^allUsages == 0 }

var usageNames = [...]string{"encrypt", "decrypt", "sign", "verify", "deriveKey", "deriveBits", "wrapKey", "unwrapKey"}

// names lists the set in the standard's order.
func (u Usages) names() []string {
	list := []string{}
	for i, name := range usageNames {
		if u&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return list
}

// usagesOf returns what keys of a type may be used for.
func usagesOf(a Algorithm, t Type) Usages {
	switch {
	case a == RSAOAEP && t == Public:
		return UseEncrypt | UseWrapKey
	case a == RSAOAEP:
		return UseDecrypt | UseUnwrapKey
	case a == RSASSA || a == RSAPSS || a == ECDSA || a == Ed25519:
		if t == Public {
			return UseVerify
		}
		return UseSign
	case a == ECDH || a == X25519:
		if t == Public {
			return 0
		}
		return UseDeriveKey | UseDeriveBits
	case a == AESKW:
		return UseWrapKey | UseUnwrapKey
	case a.isAES():
		return UseEncrypt | UseDecrypt | UseWrapKey | UseUnwrapKey
	case a == HMAC:
		return UseSign | UseVerify
	}
	return UseDeriveKey | UseDeriveBits // HKDF, PBKDF2
}

// checkUsages is the first check of every import and generation.
func checkUsages(a Algorithm, t Type, u Usages) error {
	if bad := u &^ usagesOf(a, t); bad != 0 {
		return usageError("a key of this kind cannot have the usage %q", bad.names()[0])
	}
	return nil
}

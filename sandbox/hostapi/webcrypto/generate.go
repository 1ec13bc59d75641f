package webcrypto

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"math/big"
)

// MaxHMACBits bounds a generated or derived HMAC key.
const MaxHMACBits = 8 * 65536

// GenerateParams are what a generation is given.
type GenerateParams struct {
	Params
	Bits     int    // AES and HMAC: of the key (HMAC -1: the digest's block size); RSA: of the modulus
	Exponent []byte // RSA: the public exponent, big-endian
	Usages   Usages // of the secret, or of both keys of a pair
}

// CheckGenerate makes every check that a generation can fail in; it costs nothing, Generate may.
func CheckGenerate(p GenerateParams) error {
	a := p.Algorithm
	if a >= HKDF {
		return notSupported("keys of this algorithm cannot be generated")
	}
	private := p.Usages
	if a > X25519 {
		if err := checkUsages(a, Secret, p.Usages); err != nil {
			return err
		}
	} else {
		private &= usagesOf(a, Private)
		if bad := p.Usages &^ (usagesOf(a, Private) | usagesOf(a, Public)); bad != 0 {
			return usageError("a key of this kind cannot have the usage %q", bad.names()[0])
		}
	}
	switch {
	case a.IsRSA():
		e := new(big.Int).SetBytes(p.Exponent)
		if !e.IsInt64() || e.Int64() != 65537 {
			return operationError("RSA keys are generated with the public exponent 65537 only")
		}
		if p.Bits < minRSABits || p.Bits > maxRSAGenerated || p.Bits%8 != 0 {
			return operationError("RSA keys are generated with %d to %d bits, a multiple of 8", minRSABits, maxRSAGenerated)
		}
	case a.isEC() && !p.Curve.Valid():
		return notSupported("the named curve is not one of P-256, P-384 and P-521")
	case a.isAES() && p.Bits != 128 && p.Bits != 192 && p.Bits != 256:
		return operationError("an AES key has 128, 192 or 256 bits")
	case a == HMAC && (p.Bits == 0 || p.Bits > MaxHMACBits):
		return operationError("an HMAC key has from 1 to %d bits", MaxHMACBits)
	}
	if private == 0 {
		return usageError("the key would have no usages")
	}
	return nil
}

// Slow reports whether the generation takes more than a moment.
func (p GenerateParams) Slow() bool { return p.Algorithm.IsRSA() }

// Generate makes a secret or a private key. p has passed CheckGenerate. RSA takes up to seconds and cannot be stopped;
// everything else takes microseconds.
func Generate(p GenerateParams) (k Key, err error) {
	a := p.Algorithm
	switch {
	case a.IsRSA():
		priv, err := rsa.GenerateKey(rand.Reader, p.Bits)
		if err != nil {
			return Key{}, operationError("the RSA key could not be generated")
		}
		return rsaPrivate(priv)
	case a.isEC():
		priv, err := ecdsa.GenerateKey(p.Curve.std(), rand.Reader)
		if err != nil {
			return Key{}, operationError("the EC key could not be generated")
		}
		return ecKey(priv)
	case a.isOKP():
		return okpPrivate(a, random(okpBytes))
	}
	bits := p.Bits
	if a == HMAC && bits < 0 {
		bits = p.Hash.BlockBits()
	}
	data := random((bits + 7) / 8)
	maskBits(data, bits)
	return Key{Type: Secret, Data: data}, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: the program ends where the system has no randomness
	return b
}

// PublicOf returns the public key that belongs to a private one.
func PublicOf(p Params, k Key) (Key, error) {
	switch {
	case k.Type != Private:
		return Key{}, accessError("the key is not a private key")
	case p.Algorithm.IsRSA():
		priv, err := k.rsaPrivateOf()
		if err != nil {
			return Key{}, err
		}
		return rsaPublic(&priv.PublicKey)
	case p.Algorithm.isEC():
		return Key{Type: Public, Data: k.point(p.Curve)}, nil
	}
	return Key{Type: Public, Data: k.okpPublicBytes()}, nil
}

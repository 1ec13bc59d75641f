package webcrypto

import (
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"encoding/binary"
	"hash"
)

// The most that a derivation gives and does.
const (
	maxDerivedBytes = 64 << 10
	maxIterations   = 100_000_000 // of PBKDF2, over all blocks of the result
	// LightIterations is the work of PBKDF2 that takes about a millisecond.
	LightIterations = 2000
)

// DeriveParams are what a derivation is given.
type DeriveParams struct {
	Params
	Public     *DerivePublic // ECDH, X25519
	Salt, Info []byte        // HKDF, PBKDF2
	Iterations int64         // PBKDF2
	Bits       int64         // of the result; -1: as it comes (null)
}

// DerivePublic is the other side's key, with its own algorithm.
type DerivePublic struct {
	Params
	Key
}

// Work is about how many iterations of a hash the derivation costs; 0 for what the checks will refuse.
func (p DeriveParams) Work() int64 {
	if p.Algorithm != PBKDF2 || p.Bits <= 0 || p.Bits > maxDerivedBytes*8 || p.Iterations > maxIterations {
		return 0
	}
	size := int64(p.Hash.std().Size())
	return p.Iterations * ((p.Bits/8 + size - 1) / size)
}

// Derive returns the bits as bytes; what lies behind the last bit is zero.
func Derive(p DeriveParams, k Key, stop Stop) ([]byte, error) {
	if p.Algorithm == ECDH || p.Algorithm == X25519 {
		return agree(p, k)
	}
	if p.Bits < 0 || p.Bits%8 != 0 {
		return nil, operationError("the length must be a multiple of 8 bits")
	}
	if p.Bits > maxDerivedBytes*8 {
		return nil, operationError("at most %d bits are derived", maxDerivedBytes*8)
	}
	n := int(p.Bits / 8)
	if p.Algorithm == HKDF {
		out, err := hkdf.Key(p.Hash.std().New, k.Data, p.Salt, string(p.Info), n)
		if err != nil {
			return nil, operationError("HKDF gives at most 255 times the digest's length")
		}
		return out, nil
	}
	if p.Iterations < 1 {
		return nil, operationError("PBKDF2 takes at least one iteration")
	}
	if p.Bits > 0 && (p.Iterations > maxIterations || p.Work() > maxIterations) {
		return nil, operationError("PBKDF2 does at most %d iterations", maxIterations)
	}
	return pbkdf2(p, k.Data, n, stop)
}

// pbkdf2 is RFC 8018, section 5.2. The standard library's cannot be stopped.
func pbkdf2(p DeriveParams, password []byte, n int, stop Stop) ([]byte, error) {
	prf := hmac.New(p.Hash.std().New, password)
	out := make([]byte, 0, n+prf.Size())
	for block := uint32(1); len(out) < n; block++ {
		prf.Reset()
		prf.Write(p.Salt)
		prf.Write(binary.BigEndian.AppendUint32(nil, block))
		var err error
		if out, err = iterate(prf, out, p.Iterations, stop); err != nil {
			return nil, err
		}
	}
	return out[:n], nil
}

// iterate appends one block.
func iterate(prf hash.Hash, out []byte, iterations int64, stop Stop) ([]byte, error) {
	const betweenStops = 1024
	at := len(out)
	out = prf.Sum(out)
	t := out[at:]
	u := append([]byte(nil), t...)
	for i := int64(1); i < iterations; i++ {
		prf.Reset()
		prf.Write(u)
		u = prf.Sum(u[:0])
		for x := range u {
			t[x] ^= u[x]
		}
		if i%betweenStops == 0 && stop.now() {
			return nil, errStopped
		}
	}
	return out, nil
}

// agree is the key agreement of ECDH and X25519.
func agree(p DeriveParams, k Key) ([]byte, error) {
	if k.Type != Private {
		return nil, accessError("deriving takes a private key")
	}
	if p.Public == nil || p.Public.Type != Public {
		return nil, accessError("the key of the other side is not a public key")
	}
	if p.Public.Algorithm != p.Algorithm || p.Public.Curve != p.Curve {
		return nil, accessError("the key of the other side is one of another algorithm or curve")
	}
	curve, scalar := ecdh.X25519(), k.Data[:len(k.Data)-okpBytes]
	if p.Algorithm == ECDH {
		curve, scalar = p.Curve.ecdh(), k.Data[:p.Curve.bytes()]
	}
	priv, err := curve.NewPrivateKey(scalar)
	if err != nil {
		return nil, operationError("the private key cannot be used")
	}
	pub, err := curve.NewPublicKey(p.Public.Data)
	if err != nil {
		return nil, operationError("the public key cannot be used")
	}
	out, err := priv.ECDH(pub)
	if err != nil { // the all-zero result of X25519
		return nil, operationError("nothing can be derived with this public key")
	}
	if p.Bits < 0 {
		return out, nil
	}
	if p.Bits > int64(len(out))*8 {
		return nil, operationError("this derivation gives at most %d bits", len(out)*8)
	}
	out = out[:(p.Bits+7)/8]
	maskBits(out, int(p.Bits))
	return out, nil
}

package webcrypto

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
)

// Curve is a named curve of ECDSA and ECDH; 0 is none.
type Curve uint8

// The curves.
const (
	P256 Curve = 1 + iota
	P384
	P521
	numCurves
)

// Valid reports whether c is one of the curves.
func (c Curve) Valid() bool { return c >= P256 && c < numCurves }

func (c Curve) name() string { return [...]string{"", "P-256", "P-384", "P-521"}[c] }

// bytes is the length of a coordinate, a scalar and half a signature.
func (c Curve) bytes() int { return [...]int{0, 32, 48, 66}[c] }

func (c Curve) std() elliptic.Curve {
	return [...]elliptic.Curve{nil, elliptic.P256(), elliptic.P384(), elliptic.P521()}[c]
}

func (c Curve) ecdh() ecdh.Curve {
	return [...]ecdh.Curve{nil, ecdh.P256(), ecdh.P384(), ecdh.P521()}[c]
}

// ecPublic takes an encoded point, compressed or not.
func ecPublic(c Curve, point []byte) (Key, error) {
	if len(point) == 1+c.bytes() && (point[0] == 2 || point[0] == 3) {
		x, y := elliptic.UnmarshalCompressed(c.std(), point)
		if x == nil {
			return Key{}, dataError("the point is not on the curve %s", c.name())
		}
		whole := make([]byte, 1+2*c.bytes())
		whole[0] = 4
		x.FillBytes(whole[1 : 1+c.bytes()])
		y.FillBytes(whole[1+c.bytes():])
		point = whole
	}
	if _, err := ecdsa.ParseUncompressedPublicKey(c.std(), point); err != nil {
		return Key{}, dataError("this is not a point on the curve %s", c.name())
	}
	return Key{Type: Public, Data: point}, nil
}

// ecPrivate takes a scalar of the curve's length. It computes the public key.
func ecPrivate(c Curve, scalar []byte) (Key, error) {
	k, err := ecdsa.ParseRawPrivateKey(c.std(), scalar)
	if err != nil {
		return Key{}, dataError("this is not a private key of the curve %s", c.name())
	}
	return ecKey(k)
}

func ecKey(k *ecdsa.PrivateKey) (Key, error) {
	scalar, err := k.Bytes()
	if err != nil {
		return Key{}, dataError("this is not a private key of a known curve")
	}
	point, err := k.PublicKey.Bytes()
	if err != nil {
		return Key{}, dataError("this is not a private key of a known curve")
	}
	return Key{Type: Private, Data: append(scalar, point...)}, nil
}

// point returns the uncompressed point of a key of either type.
func (k Key) point(c Curve) []byte {
	if k.Type == Private {
		return k.Data[c.bytes():]
	}
	return k.Data
}

func (k Key) ecdsaPublicOf(c Curve) (*ecdsa.PublicKey, error) {
	pub, err := ecdsa.ParseUncompressedPublicKey(c.std(), k.point(c))
	if err != nil {
		return nil, operationError("the EC key cannot be used")
	}
	return pub, nil
}

func (k Key) ecdsaPrivateOf(c Curve) (*ecdsa.PrivateKey, error) {
	priv, err := ecdsa.ParseRawPrivateKey(c.std(), k.Data[:c.bytes()])
	if err != nil {
		return nil, operationError("the EC key cannot be used")
	}
	return priv, nil
}

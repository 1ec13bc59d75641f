package webcrypto

import (
	"crypto/rsa"
	"crypto/x509"
	"math/big"
)

// The sizes of RSA keys, in bits. The standard library works with none below; time grows with the third power.
const (
	minRSABits      = 1024
	maxRSABits      = 8192 // imported
	maxRSAGenerated = 4096
)

func checkRSAPublic(k *rsa.PublicKey) error {
	bits := k.N.BitLen()
	switch {
	case bits < minRSABits || bits > maxRSABits:
		return dataError("an RSA key has from %d to %d bits here, this one has %d", minRSABits, maxRSABits, bits)
	case k.N.Bit(0) == 0:
		return dataError("the RSA modulus is even")
	case k.E < 3 || k.E&1 == 0:
		return dataError("the RSA public exponent is not an odd number above 1")
	}
	return nil
}

func rsaPublic(k *rsa.PublicKey) (Key, error) {
	if err := checkRSAPublic(k); err != nil {
		return Key{}, err
	}
	return Key{Type: Public, Data: x509.MarshalPKCS1PublicKey(k)}, nil
}

func rsaPrivate(k *rsa.PrivateKey) (Key, error) {
	if err := checkRSAPublic(&k.PublicKey); err != nil {
		return Key{}, err
	}
	if len(k.Primes) != 2 {
		return Key{}, dataError("only RSA keys of two primes are supported")
	}
	if err := k.Validate(); err != nil {
		return Key{}, dataError("the RSA private key is not valid")
	}
	return Key{Type: Private, Data: x509.MarshalPKCS1PrivateKey(k)}, nil
}

// rsaPublicOf loads a public key.
func (k Key) rsaPublicOf() (*rsa.PublicKey, error) {
	pub, err := x509.ParsePKCS1PublicKey(k.Data)
	if err != nil {
		return nil, operationError("the RSA key cannot be used")
	}
	return pub, checkRSAPublic(pub)
}

// rsaPrivateOf loads a private key.
func (k Key) rsaPrivateOf() (*rsa.PrivateKey, error) {
	priv, err := x509.ParsePKCS1PrivateKey(k.Data)
	if err != nil {
		return nil, operationError("the RSA key cannot be used")
	}
	return priv, checkRSAPublic(&priv.PublicKey)
}

// DescribeRSA returns the bits of the modulus, and the public exponent as a big-endian number.
func DescribeRSA(k Key) (bits int, exponent []byte, err error) {
	var pub *rsa.PublicKey
	if k.Type == Private {
		priv, err := k.rsaPrivateOf()
		if err != nil {
			return 0, nil, err
		}
		pub = &priv.PublicKey
	} else if pub, err = k.rsaPublicOf(); err != nil {
		return 0, nil, err
	}
	return pub.N.BitLen(), big.NewInt(int64(pub.E)).Bytes(), nil
}

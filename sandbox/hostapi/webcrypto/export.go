package webcrypto

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"math/big"
)

// Export writes a key of an algorithm that can be exported (all but HKDF and PBKDF2) in a format other than JWK.
func Export(p Params, k Key, f Format) ([]byte, error) {
	a := p.Algorithm
	switch {
	case a >= HKDF:
		return nil, notSupported("keys of this algorithm cannot be exported")
	case k.Type == Secret && f == Raw:
		return bytes.Clone(k.Data), nil
	case k.Type == Secret, f == Raw && a.IsRSA():
		return nil, notSupported("keys of this algorithm cannot be exported in this format")
	case (f == PKCS8) != (k.Type == Private):
		return nil, accessError("this format is not one for this half of a key pair")
	case f == Raw && a.isEC():
		return bytes.Clone(k.point(p.Curve)), nil
	case f == Raw:
		return bytes.Clone(k.okpPublicBytes()), nil
	}
	std, err := k.std(p)
	if err != nil {
		return nil, err
	}
	var out []byte
	if f == PKCS8 {
		out, err = x509.MarshalPKCS8PrivateKey(std)
	} else {
		out, err = x509.MarshalPKIXPublicKey(std)
	}
	if err != nil {
		return nil, operationError("the key cannot be written")
	}
	return out, nil
}

// std is the key as package x509 takes it.
func (k Key) std(p Params) (any, error) {
	private := k.Type == Private
	switch {
	case p.Algorithm.IsRSA() && private:
		return k.rsaPrivateOf()
	case p.Algorithm.IsRSA():
		return k.rsaPublicOf()
	case p.Algorithm.isEC() && private:
		return k.ecdsaPrivateOf(p.Curve)
	case p.Algorithm.isEC():
		return k.ecdsaPublicOf(p.Curve)
	case p.Algorithm == Ed25519 && private:
		return ed25519.PrivateKey(k.Data), nil
	case p.Algorithm == Ed25519:
		return ed25519.PublicKey(k.Data), nil
	}
	var std crypto.PublicKey
	var err error
	if private {
		std, err = ecdh.X25519().NewPrivateKey(k.Data[:okpBytes])
	} else {
		std, err = ecdh.X25519().NewPublicKey(k.Data)
	}
	if err != nil {
		return nil, operationError("the X25519 key cannot be used")
	}
	return std, nil
}

// exportedJWK gives a JSON Web Key its members in the order in which Web IDL lists them.
type exportedJWK struct {
	Alg    string   `json:"alg,omitempty"`
	Crv    string   `json:"crv,omitempty"`
	D      string   `json:"d,omitempty"`
	DP     string   `json:"dp,omitempty"`
	DQ     string   `json:"dq,omitempty"`
	E      string   `json:"e,omitempty"`
	Ext    bool     `json:"ext"`
	K      *string  `json:"k,omitempty"`
	KeyOps []string `json:"key_ops"`
	Kty    string   `json:"kty"`
	N      string   `json:"n,omitempty"`
	P      string   `json:"p,omitempty"`
	Q      string   `json:"q,omitempty"`
	QI     string   `json:"qi,omitempty"`
	X      string   `json:"x,omitempty"`
	Y      string   `json:"y,omitempty"`
}

// ExportJWK writes a key as the text of a JSON Web Key.
func ExportJWK(p Params, k Key, u Usages, extractable bool) ([]byte, error) {
	a := p.Algorithm
	j := exportedJWK{Ext: extractable, KeyOps: u.names()}
	enc := base64url.EncodeToString
	switch {
	case a >= HKDF:
		return nil, notSupported("keys of this algorithm cannot be exported")
	case a.IsRSA():
		if err := j.rsa(p, k); err != nil {
			return nil, err
		}
	case a.isEC():
		n, point := p.Curve.bytes(), k.point(p.Curve)
		j.Kty, j.Crv, j.X, j.Y = "EC", p.Curve.name(), enc(point[1:1+n]), enc(point[1+n:])
		if k.Type == Private {
			j.D = enc(k.Data[:n])
		}
	case a.isOKP():
		j.Kty, j.Crv, j.X = "OKP", "X25519", enc(k.okpPublicBytes())
		if a == Ed25519 {
			j.Crv, j.Alg = "Ed25519", "Ed25519"
		}
		if k.Type == Private {
			j.D = enc(k.Data[:okpBytes])
		}
	default:
		text := enc(k.Data)
		j.Kty, j.K, j.Alg = "oct", &text, algName(p, len(k.Data)*8)
	}
	out, err := json.Marshal(j)
	if err != nil {
		return nil, operationError("the key cannot be written")
	}
	return out, nil
}

func (j *exportedJWK) rsa(p Params, k Key) error {
	enc := func(n *big.Int) string { return base64url.EncodeToString(n.Bytes()) }
	j.Kty, j.Alg = "RSA", algName(p, 0)
	if k.Type == Public {
		pub, err := k.rsaPublicOf()
		if err != nil {
			return err
		}
		j.N, j.E = enc(pub.N), enc(big.NewInt(int64(pub.E)))
		return nil
	}
	priv, err := k.rsaPrivateOf()
	if err != nil {
		return err
	}
	c := priv.Precomputed
	j.N, j.E, j.D = enc(priv.N), enc(big.NewInt(int64(priv.E))), enc(priv.D)
	j.P, j.Q, j.DP, j.DQ, j.QI = enc(priv.Primes[0]), enc(priv.Primes[1]), enc(c.Dp), enc(c.Dq), enc(c.Qinv)
	return nil
}

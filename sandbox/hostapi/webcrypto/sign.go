package webcrypto

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/subtle"
	"math/big"
)

// SignParams are what signing and verifying are given.
type SignParams struct {
	Params
	Salt int // RSA-PSS: bytes of salt
}

// Sign makes the signature of a message.
func Sign(p SignParams, k Key, message []byte, stop Stop) ([]byte, error) {
	if p.Algorithm == HMAC {
		return mac(p.Hash, k.Data, message, stop)
	}
	if k.Type != Private {
		return nil, accessError("signing takes a private key")
	}
	if p.Algorithm == Ed25519 {
		return ed25519.Sign(k.Data, message), nil
	}
	digest, err := Digest(p.Hash, message, stop)
	if err != nil {
		return nil, err
	}
	if p.Algorithm == ECDSA {
		return signECDSA(p.Curve, k, digest)
	}
	priv, err := k.rsaPrivateOf()
	if err != nil {
		return nil, err
	}
	var sig []byte
	if p.Algorithm == RSASSA {
		sig, err = rsa.SignPKCS1v15(nil, priv, p.Hash.std(), digest)
	} else if p.Salt == 0 {
		return nil, operationError("RSA-PSS signatures without salt are verified here, not made")
	} else if most := (priv.N.BitLen()+6)/8 - p.Hash.std().Size() - 2; p.Salt > most {
		return nil, operationError("the salt is longer than the %d bytes that fit this key", max(most, 0))
	} else {
		sig, err = rsa.SignPSS(rand.Reader, priv, p.Hash.std(), digest, &rsa.PSSOptions{SaltLength: p.Salt})
	}
	if err != nil {
		return nil, operationError("the message cannot be signed with this key")
	}
	return sig, nil
}

func mac(h Hash, key, message []byte, stop Stop) ([]byte, error) {
	m := hmac.New(h.std().New, key)
	if err := feed(m, message, stop); err != nil {
		return nil, err
	}
	return m.Sum(nil), nil
}

// signECDSA gives both numbers in the length of the curve, one behind the other.
func signECDSA(c Curve, k Key, digest []byte) ([]byte, error) {
	priv, err := k.ecdsaPrivateOf(c)
	if err != nil {
		return nil, err
	}
	r, s, err := ecdsa.Sign(rand.Reader, priv, digest)
	if err != nil {
		return nil, operationError("the message cannot be signed with this key")
	}
	sig := make([]byte, 2*c.bytes())
	r.FillBytes(sig[:c.bytes()])
	s.FillBytes(sig[c.bytes():])
	return sig, nil
}

// Verify reports whether sig is a signature of message.
func Verify(p SignParams, k Key, sig, message []byte, stop Stop) (bool, error) {
	if p.Algorithm == HMAC {
		want, err := mac(p.Hash, k.Data, message, stop)
		return err == nil && subtle.ConstantTimeCompare(want, sig) == 1, err
	}
	if k.Type != Public {
		return false, accessError("verifying takes a public key")
	}
	if p.Algorithm == Ed25519 {
		return verifyEd25519(k.Data, sig, message), nil
	}
	digest, err := Digest(p.Hash, message, stop)
	if err != nil {
		return false, err
	}
	if p.Algorithm == ECDSA {
		n := p.Curve.bytes()
		pub, err := k.ecdsaPublicOf(p.Curve)
		if err != nil || len(sig) != 2*n {
			return false, err
		}
		return ecdsa.Verify(pub, digest, new(big.Int).SetBytes(sig[:n]), new(big.Int).SetBytes(sig[n:])), nil
	}
	pub, err := k.rsaPublicOf()
	if err != nil {
		return false, err
	}
	if p.Algorithm == RSASSA {
		return rsa.VerifyPKCS1v15(pub, p.Hash.std(), digest, sig) == nil, nil
	}
	return verifyPSS(pub, p, digest, sig, stop)
}

func verifyEd25519(public, sig, message []byte) bool {
	if len(sig) != ed25519.SignatureSize || smallOrder(public) || smallOrder(sig[:okpBytes]) {
		return false
	}
	return ed25519.Verify(public, message, sig)
}

// verifyPSS: the standard library takes 0 as "any length of salt". A signature has one length, so that it has none if it is
// valid with any and with no other.
func verifyPSS(pub *rsa.PublicKey, p SignParams, digest, sig []byte, stop Stop) (bool, error) {
	h := p.Hash.std()
	ok := rsa.VerifyPSS(pub, h, digest, sig, &rsa.PSSOptions{SaltLength: p.Salt}) == nil
	if !ok || p.Salt > 0 {
		return ok, nil
	}
	for salt := 1; salt <= pub.Size()-h.Size()-2; salt++ {
		if rsa.VerifyPSS(pub, h, digest, sig, &rsa.PSSOptions{SaltLength: salt}) == nil {
			return false, nil
		}
		if stop.now() {
			return false, errStopped
		}
	}
	return true, nil
}

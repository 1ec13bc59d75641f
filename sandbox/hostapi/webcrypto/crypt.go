package webcrypto

import (
	"crypto/aes"
	"crypto/rand"
	"crypto/rsa"
)

// CryptParams are what encryption, decryption, wrapping and unwrapping are given.
type CryptParams struct {
	Params
	IV         []byte // AES-CBC, AES-GCM; AES-CTR: the counter; RSA-OAEP: the label
	Additional []byte // AES-GCM
	Bits       int    // AES-GCM: the tag's length; AES-CTR: the counter's
}

// Encrypt encrypts data, or wraps it with AES-KW.
func Encrypt(p CryptParams, k Key, data []byte, stop Stop) ([]byte, error) {
	if p.Algorithm == RSAOAEP {
		if k.Type != Public {
			return nil, accessError("encrypting takes a public key")
		}
		pub, err := k.rsaPublicOf()
		if err != nil {
			return nil, err
		}
		out, err := rsa.EncryptOAEP(p.Hash.std().New(), rand.Reader, pub, data, p.IV)
		if err != nil {
			return nil, operationError("the data is too long for this key")
		}
		return out, nil
	}
	block, err := aes.NewCipher(k.Data)
	if err != nil {
		return nil, operationError("the AES key cannot be used")
	}
	switch p.Algorithm {
	case AESCTR:
		return aesCTR(block, p.IV, p.Bits, data, stop)
	case AESCBC:
		return encryptCBC(block, p.IV, data, stop)
	case AESGCM:
		return encryptGCM(block, p.IV, p.Additional, data, p.Bits)
	case AESKW:
		return wrapKey(block, data, stop)
	}
	return nil, notSupported("the algorithm does not encrypt")
}

// Decrypt decrypts data, or unwraps it with AES-KW.
func Decrypt(p CryptParams, k Key, data []byte, stop Stop) ([]byte, error) {
	if p.Algorithm == RSAOAEP {
		if k.Type != Private {
			return nil, accessError("decrypting takes a private key")
		}
		priv, err := k.rsaPrivateOf()
		if err != nil {
			return nil, err
		}
		out, err := rsa.DecryptOAEP(p.Hash.std().New(), nil, priv, data, p.IV)
		if err != nil {
			return nil, errDecrypt
		}
		return out, nil
	}
	block, err := aes.NewCipher(k.Data)
	if err != nil {
		return nil, operationError("the AES key cannot be used")
	}
	switch p.Algorithm {
	case AESCTR:
		return aesCTR(block, p.IV, p.Bits, data, stop)
	case AESCBC:
		return decryptCBC(block, p.IV, data, stop)
	case AESGCM:
		return decryptGCM(block, p.IV, p.Additional, data, p.Bits)
	case AESKW:
		return unwrapKey(block, data, stop)
	}
	return nil, notSupported("the algorithm does not decrypt")
}

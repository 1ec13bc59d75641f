package webcrypto

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
)

// ImportParams are what an import is given beside the key.
type ImportParams struct {
	Params
	Bits        int // HMAC: the length that is asked for; -1: none
	Usages      Usages
	Extractable bool
}

// Import reads a key in format Raw, PKCS8 or SPKI. That a private or secret key has usages is for the caller to check, last.
func Import(p ImportParams, f Format, data []byte) (Key, error) {
	if err := checkImport(p, f); err != nil {
		return Key{}, err
	}
	if len(data) > MaxSecretBytes {
		return Key{}, dataError("the key has more than %d bytes", MaxSecretBytes)
	}
	if p.Algorithm <= X25519 && len(data) > maxEncodedBytes {
		return Key{}, dataError("the encoded key has more than %d bytes", maxEncodedBytes)
	}
	data = bytes.Clone(data)
	switch {
	case p.Algorithm > X25519:
		return secret(p, data)
	case f == SPKI:
		return importSPKI(p, data)
	case f == PKCS8:
		return importPKCS8(p, data)
	case p.Algorithm.isEC():
		return ecPublic(p.Curve, data)
	}
	return okpPublic(data)
}

// checkImport is all that can be said before the data is looked at.
func checkImport(p ImportParams, f Format) error {
	a := p.Algorithm
	t := Public
	switch {
	case a > X25519:
		t = Secret
		if a >= HKDF {
			if f != Raw {
				return notSupported("keys of this algorithm have the format raw alone")
			}
			if err := checkUsages(a, t, p.Usages); err != nil {
				return err
			}
			if p.Extractable {
				return usageError("a key to derive from is never extractable")
			}
			return nil
		}
		if err := checkUsages(a, t, p.Usages); err != nil {
			return err
		}
		if f != Raw {
			return notSupported("a secret key has no format spki or pkcs8")
		}
		return nil
	case f == Raw && a.IsRSA():
		return notSupported("an RSA key has no format raw")
	case f == PKCS8:
		t = Private
	}
	if f == Raw && a.isEC() && !p.Curve.Valid() {
		return dataError("the named curve is not one of P-256, P-384 and P-521")
	}
	return checkUsages(a, t, p.Usages)
}

// secret makes a key of bytes, cut to the length that was asked for.
func secret(p ImportParams, data []byte) (Key, error) {
	bits := len(data) * 8
	switch {
	case p.Algorithm.isAES():
		if bits != 128 && bits != 192 && bits != 256 {
			return Key{}, dataError("an AES key has 128, 192 or 256 bits, this one has %d", bits)
		}
	case p.Algorithm == HMAC:
		switch {
		case bits == 0:
			return Key{}, dataError("an HMAC key cannot be empty")
		case p.Bits >= 0 && (p.Bits > bits || p.Bits <= bits-8):
			return Key{}, dataError("the length of %d bits does not fit a key of %d", p.Bits, bits)
		case p.Bits >= 0:
			maskBits(data, p.Bits)
		}
	}
	return Key{Type: Secret, Data: data}, nil
}

// maskBits clears what lies behind the first n bits; data must not be longer than they need.
func maskBits(data []byte, n int) {
	if n%8 != 0 && len(data) > 0 {
		data[len(data)-1] &= 0xff << (8 - n%8)
	}
}

func importSPKI(p ImportParams, data []byte) (Key, error) {
	a := p.Algorithm
	if a.isEC() {
		if point, c, ok := compressedSPKI(data); ok && c == p.Curve {
			return ecPublic(c, point)
		}
	}
	parsed, err := x509.ParsePKIXPublicKey(data)
	if err != nil {
		return Key{}, dataError("the data is not a SubjectPublicKeyInfo of this algorithm")
	}
	switch k := parsed.(type) {
	case *rsa.PublicKey:
		if a.IsRSA() {
			return rsaPublic(k)
		}
	case *ecdsa.PublicKey:
		if a.isEC() && p.Curve.Valid() && k.Curve == p.Curve.std() {
			point, err := k.Bytes()
			if err == nil {
				return ecPublic(p.Curve, point)
			}
		}
	case ed25519.PublicKey:
		if a == Ed25519 {
			return okpPublic(k)
		}
	case *ecdh.PublicKey:
		if a == X25519 {
			return okpPublic(k.Bytes())
		}
	}
	return Key{}, dataError("the key in the SubjectPublicKeyInfo is one of another algorithm or curve")
}

func importPKCS8(p ImportParams, data []byte) (Key, error) {
	a := p.Algorithm
	if err := exactPKCS8(a, data); err != nil {
		return Key{}, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(data)
	if err != nil {
		return Key{}, dataError("the data is not a PrivateKeyInfo of this algorithm")
	}
	switch k := parsed.(type) {
	case *rsa.PrivateKey:
		if a.IsRSA() {
			return rsaPrivate(k)
		}
	case *ecdsa.PrivateKey:
		if a.isEC() && p.Curve.Valid() && k.Curve == p.Curve.std() {
			return ecKeyWith(k, p.Curve, embeddedPublic(data))
		}
	case ed25519.PrivateKey:
		if a == Ed25519 {
			return okpPrivate(a, k.Seed())
		}
	case *ecdh.PrivateKey:
		if a == X25519 {
			return okpPrivate(a, k.Bytes())
		}
	}
	return Key{}, dataError("the key in the PrivateKeyInfo is one of another algorithm or curve")
}

// ecKeyWith is ecKey for a structure that may also hold the public key, which must be the right one.
func ecKeyWith(std *ecdsa.PrivateKey, c Curve, public []byte) (Key, error) {
	k, err := ecKey(std)
	if err != nil || public == nil {
		return k, err
	}
	if pub, err := ecPublic(c, public); err != nil || !bytes.Equal(pub.Data, k.point(c)) {
		return Key{}, dataError("the private and the public key in the PrivateKeyInfo do not belong together")
	}
	return k, nil
}

// compressedSPKI finds a compressed point, which the standard library does not read in this place. Such a structure has
// one form for each curve: the uncompressed one with shorter lengths.
func compressedSPKI(data []byte) (point []byte, c Curve, ok bool) {
	for c := P256; c < numCurves; c++ {
		head := spkiHead(c, 1+c.bytes())
		if len(data) == len(head)+1+c.bytes() && bytes.HasPrefix(data, head) {
			point = data[len(head):]
			return point, c, point[0] == 2 || point[0] == 3
		}
	}
	return nil, 0, false
}

// spkiHead is a SubjectPublicKeyInfo of a named curve up to its point of n bytes, n below 100.
func spkiHead(c Curve, n int) []byte {
	oid := [...][]byte{nil,
		{0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7},
		{0x06, 5, 0x2b, 0x81, 0x04, 0, 34},
		{0x06, 5, 0x2b, 0x81, 0x04, 0, 35},
	}[c]
	id := append([]byte{0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1}, oid...) // id-ecPublicKey, the curve
	id = append([]byte{0x30, byte(len(id))}, id...)
	body := append(id, 0x03, byte(n+1), 0)
	return append([]byte{0x30, byte(len(body) + n)}, body...)
}

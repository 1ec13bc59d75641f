package webcrypto

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
)

// privateKeyInfo is the outside of PKCS #8; what may follow is ignored.
type privateKeyInfo struct {
	Version    int
	Algorithm  pkix.AlgorithmIdentifier
	PrivateKey []byte
}

// ecPrivateKey is the inside for an EC key.
type ecPrivateKey struct {
	Version    int
	PrivateKey []byte
	Curve      asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
	PublicKey  asn1.BitString        `asn1:"optional,explicit,tag:1"`
}

// exactPKCS8 makes the checks that the standard library leaves out: nothing lies behind either structure, and an EC key
// inside names the curve that stands outside, if it names one. Whether the rest is a key is for the standard library.
func exactPKCS8(a Algorithm, data []byte) error {
	var outer privateKeyInfo
	rest, err := asn1.Unmarshal(data, &outer)
	if err != nil || len(rest) > 0 {
		return dataError("the data is not a PrivateKeyInfo")
	}
	var inner asn1.RawValue
	rest, err = asn1.Unmarshal(outer.PrivateKey, &inner)
	if err != nil || len(rest) > 0 {
		return dataError("the private key in the PrivateKeyInfo is not one structure")
	}
	if !a.isEC() {
		return nil
	}
	var ec ecPrivateKey
	if _, err := asn1.Unmarshal(outer.PrivateKey, &ec); err != nil {
		return dataError("the private key in the PrivateKeyInfo is not an ECPrivateKey")
	}
	if ec.Curve != nil {
		oid, err := asn1.Marshal(ec.Curve)
		if err != nil || !bytes.Equal(oid, outer.Algorithm.Parameters.FullBytes) {
			return dataError("the ECPrivateKey names another curve than the PrivateKeyInfo")
		}
	}
	return nil
}

// embeddedPublic returns the public key that stands in an EC key's PrivateKeyInfo, nil if none does.
func embeddedPublic(data []byte) []byte {
	var outer privateKeyInfo
	var ec ecPrivateKey
	if _, err := asn1.Unmarshal(data, &outer); err != nil {
		return nil
	}
	if _, err := asn1.Unmarshal(outer.PrivateKey, &ec); err != nil {
		return nil
	}
	return ec.PublicKey.Bytes
}

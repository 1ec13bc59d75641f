package webcrypto

import (
	"encoding/asn1"
	"strings"
	"testing"
)

// PKCS #8 is read exactly: nothing behind the inner structure, no other curve and no other public key inside (Web
// Cryptography, "parse an ASN.1 structure" with exactData, and the import of EC keys).
func TestPKCS8IsExact(t *testing.T) {
	p256, p384 := Params{Algorithm: ECDSA, Curve: P256}, Params{Algorithm: ECDSA, Curve: P384}
	other := Params{Algorithm: ECDH, Curve: P256}
	oids := map[Params]asn1.ObjectIdentifier{p256: {1, 2, 840, 10045, 3, 1, 7}, p384: {1, 3, 132, 0, 34}}
	for _, c := range []struct {
		name string
		p    Params
		edit func(inner *ecPrivateKey) (behind []byte)
		want string
	}{
		{"as it is", p256, func(*ecPrivateKey) []byte { return nil }, ""},
		{"with its curve", p256, func(e *ecPrivateKey) []byte { e.Curve = oids[p256]; return nil }, ""},
		{"without the public key", p256, func(e *ecPrivateKey) []byte { e.PublicKey = asn1.BitString{}; return nil }, ""},
		{"another curve", p256, func(e *ecPrivateKey) []byte { e.Curve = oids[p384]; return nil }, "DataError"},
		{"another public key", p256, func(e *ecPrivateKey) []byte {
			e.PublicKey = asn1.BitString{Bytes: samples()[other].point(P256), BitLength: 65 * 8}
			return nil
		}, "DataError"},
		{"no public key at all", p256, func(e *ecPrivateKey) []byte {
			e.PublicKey = asn1.BitString{Bytes: []byte{4, 1}, BitLength: 16}
			return nil
		}, "DataError"},
		{"a byte behind", p256, func(*ecPrivateKey) []byte { return []byte{0} }, "DataError"},
		{"a structure behind", p256, func(*ecPrivateKey) []byte { return []byte{5, 0} }, "DataError"},
	} {
		data, err := Export(c.p, samples()[c.p], PKCS8)
		if err != nil {
			t.Fatal(err)
		}
		var outer privateKeyInfo
		var inner ecPrivateKey
		if _, err := asn1.Unmarshal(data, &outer); err != nil {
			t.Fatal(err)
		}
		if _, err := asn1.Unmarshal(outer.PrivateKey, &inner); err != nil {
			t.Fatal(err)
		}
		behind := c.edit(&inner)
		if outer.PrivateKey, err = asn1.Marshal(inner); err != nil {
			t.Fatal(err)
		}
		outer.PrivateKey = append(outer.PrivateKey, behind...)
		if data, err = asn1.Marshal(outer); err != nil {
			t.Fatal(err)
		}
		_, err = readKey(c.p, PKCS8, data)
		if got, _, _ := strings.Cut(errText(err), ":"); got != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// What no key needs is refused before anything is computed with it.
func TestEncodedKeysAreBounded(t *testing.T) {
	for p := range samples() {
		for _, f := range []Format{PKCS8, SPKI} {
			_, err := readKey(p, f, make([]byte, maxEncodedBytes+1))
			if p.Algorithm <= X25519 && !strings.Contains(errText(err), "has more than") {
				t.Errorf("%+v: %v", p, err)
			}
		}
	}
	if _, err := readKey(Params{Algorithm: HMAC, Hash: SHA1}, Raw, make([]byte, MaxSecretBytes+1)); !strings.HasPrefix(errText(err), "DataError") {
		t.Errorf("a long secret: %v", err)
	}
}

package webcrypto

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
)

// JWK holds the members of a JSON Web Key; nil is an absent one.
type JWK struct {
	Kty, Use, Alg, Crv, X, Y, D, N, E, P, Q, DP, DQ, QI, K *string
	Ext                                                    *bool
	KeyOps                                                 *KeyOps
	Oth                                                    bool // the member is there
}

// KeyOps is the member key_ops: the usages it names, and whether one value stands in it twice.
type KeyOps struct {
	Usages Usages
	Twice  bool
}

// NewKeyOps reads the values of a key_ops list.
func NewKeyOps(values []string) *KeyOps {
	o, seen := &KeyOps{}, map[string]bool{}
	for _, v := range values {
		o.Twice = o.Twice || seen[v]
		seen[v] = true
		if i := slices.Index(usageNames[:], v); i >= 0 {
			o.Usages |= 1 << i
		}
	}
	return o
}

// Members are the string members by name.
func (j *JWK) Members() map[string]**string {
	return map[string]**string{"kty": &j.Kty, "use": &j.Use, "alg": &j.Alg, "crv": &j.Crv, "x": &j.X, "y": &j.Y, "d": &j.D,
		"n": &j.N, "e": &j.E, "p": &j.P, "q": &j.Q, "dp": &j.DP, "dq": &j.DQ, "qi": &j.QI, "k": &j.K}
}

// ParseJWK reads what unwrapKey decrypted. Errors: DataError for what is no JSON object with the member kty, or has a
// member of another type than the standard gives it.
func ParseJWK(text []byte) (*JWK, error) {
	var all map[string]json.RawMessage
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if len(text) > MaxSecretBytes || json.Unmarshal(text, &all) != nil || all == nil {
		return nil, dataError("the data is not a JSON Web Key")
	}
	j := &JWK{}
	for name, to := range j.Members() {
		if raw, ok := all[name]; ok && json.Unmarshal(raw, to) != nil {
			return nil, dataError("the member %s of the JSON Web Key is not a string", name)
		} else if ok && *to == nil {
			return nil, dataError("the member %s of the JSON Web Key is null", name)
		}
	}
	if raw, ok := all["ext"]; ok && (json.Unmarshal(raw, &j.Ext) != nil || j.Ext == nil) {
		return nil, dataError("the member ext of the JSON Web Key is not a boolean")
	}
	if raw, ok := all["key_ops"]; ok {
		var list []string
		if json.Unmarshal(raw, &list) != nil || list == nil {
			return nil, dataError("the member key_ops of the JSON Web Key is not a list of strings")
		}
		j.KeyOps = NewKeyOps(list)
	}
	_, j.Oth = all["oth"]
	if j.Kty == nil {
		return nil, dataError("the JSON Web Key has no member kty")
	}
	return j, nil
}

func is(member *string, want string) bool { return member != nil && *member == want }

// ImportJWK reads a key in format "jwk". Results as of Import.
func ImportJWK(p ImportParams, j *JWK) (Key, error) {
	a := p.Algorithm
	if a >= HKDF {
		return Key{}, notSupported("keys of this algorithm have the format raw alone")
	}
	t := Secret
	if a <= X25519 {
		t = Public
		if j.D != nil {
			t = Private
		}
	}
	if err := checkUsages(a, t, p.Usages); err != nil {
		return Key{}, err
	}
	kty := "oct"
	switch {
	case a.IsRSA():
		kty = "RSA"
	case a.isEC():
		kty = "EC"
	case a.isOKP():
		kty = "OKP"
	}
	if !is(j.Kty, kty) {
		return Key{}, dataError("the member kty of the JSON Web Key is not %q", kty)
	}
	switch {
	case a.IsRSA():
		return j.rsa(p)
	case a.isEC():
		return j.ec(p)
	case a.isOKP():
		return j.okp(p)
	}
	return j.oct(p)
}

// checkUse is about what the key may be used for, and whether it may leave again.
func (j *JWK) checkUse(p ImportParams) error {
	use := "enc"
	switch p.Algorithm {
	case RSASSA, RSAPSS, ECDSA, Ed25519, HMAC:
		use = "sig"
	}
	switch {
	case p.Usages != 0 && j.Use != nil && *j.Use != use:
		return dataError("the member use of the JSON Web Key is not %q", use)
	case j.KeyOps != nil && (j.KeyOps.Twice || p.Usages&^j.KeyOps.Usages != 0):
		return dataError("the member key_ops of the JSON Web Key does not allow the usages")
	case j.Ext != nil && !*j.Ext && p.Extractable:
		return dataError("the JSON Web Key is not extractable")
	}
	return nil
}

func (j *JWK) checkAlg(want ...string) error {
	if j.Alg == nil {
		return nil
	}
	for _, w := range want {
		if *j.Alg == w {
			return nil
		}
	}
	return dataError("the member alg of the JSON Web Key is not %q", want[0])
}

// algName is the JWK name of a key of RSA, AES or HMAC.
func algName(p Params, bits int) string {
	switch p.Algorithm {
	case RSASSA:
		return "RS" + p.Hash.suffix()
	case RSAPSS:
		return "PS" + p.Hash.suffix()
	case RSAOAEP:
		if p.Hash == SHA1 {
			return "RSA-OAEP"
		}
		return "RSA-OAEP-" + p.Hash.suffix()
	case HMAC:
		return "HS" + p.Hash.suffix()
	}
	mode := map[Algorithm]string{AESCTR: "CTR", AESCBC: "CBC", AESGCM: "GCM", AESKW: "KW"}[p.Algorithm]
	return "A" + strconv.Itoa(bits) + mode
}

// base64url without padding, strictly: no other characters, and no bits left over.
var base64url = base64.RawURLEncoding.Strict()

func (j *JWK) bytes(name string, member *string) ([]byte, error) {
	if member == nil {
		return nil, dataError("the JSON Web Key has no member %s", name)
	}
	if len(*member) > MaxSecretBytes {
		return nil, dataError("the member %s of the JSON Web Key is too long", name)
	}
	b, err := base64url.DecodeString(*member)
	if err != nil || bytes.ContainsAny([]byte(*member), "\r\n") {
		return nil, dataError("the member %s of the JSON Web Key is not base64url", name)
	}
	return b, nil
}

// sized is bytes for a member of fixed length.
func (j *JWK) sized(name string, member *string, n int) ([]byte, error) {
	b, err := j.bytes(name, member)
	if err == nil && len(b) != n {
		return nil, dataError("the member %s of the JSON Web Key has %d bytes, not %d", name, len(b), n)
	}
	return b, err
}

func (j *JWK) oct(p ImportParams) (Key, error) {
	data, err := j.bytes("k", j.K)
	if err != nil {
		return Key{}, err
	}
	if p.Algorithm.isAES() {
		if _, err := secret(p, data); err != nil {
			return Key{}, err
		}
	}
	if err := j.checkAlg(algName(p.Params, len(data)*8)); err != nil {
		return Key{}, err
	}
	if err := j.checkUse(p); err != nil {
		return Key{}, err
	}
	return secret(p, data)
}

func (j *JWK) okp(p ImportParams) (Key, error) {
	crv := "X25519"
	if p.Algorithm == Ed25519 {
		crv = "Ed25519"
	}
	if !is(j.Crv, crv) {
		return Key{}, dataError("the member crv of the JSON Web Key is not %q", crv)
	}
	if p.Algorithm == Ed25519 {
		if err := j.checkAlg("Ed25519", "EdDSA"); err != nil {
			return Key{}, err
		}
	}
	if err := j.checkUse(p); err != nil {
		return Key{}, err
	}
	x, err := j.sized("x", j.X, okpBytes)
	if err != nil || j.D == nil {
		return Key{Type: Public, Data: x}, err
	}
	d, err := j.sized("d", j.D, okpBytes)
	if err != nil {
		return Key{}, err
	}
	k, err := okpPrivate(p.Algorithm, d)
	if err == nil && !bytes.Equal(k.okpPublicBytes(), x) {
		return Key{}, dataError("the private and the public key of the JSON Web Key do not belong together")
	}
	return k, err
}

func (j *JWK) ec(p ImportParams) (Key, error) {
	if err := j.checkUse(p); err != nil {
		return Key{}, err
	}
	c := p.Curve
	if !c.Valid() || !is(j.Crv, c.name()) {
		return Key{}, dataError("the member crv of the JSON Web Key is not the named curve")
	}
	if p.Algorithm == ECDSA {
		if err := j.checkAlg([...]string{"", "ES256", "ES384", "ES512"}[c]); err != nil {
			return Key{}, err
		}
	}
	x, err := j.sized("x", j.X, c.bytes())
	if err != nil {
		return Key{}, err
	}
	y, err := j.sized("y", j.Y, c.bytes())
	if err != nil {
		return Key{}, err
	}
	pub, err := ecPublic(c, append(append([]byte{4}, x...), y...))
	if err != nil || j.D == nil {
		return pub, err
	}
	d, err := j.sized("d", j.D, c.bytes())
	if err != nil {
		return Key{}, err
	}
	k, err := ecPrivate(c, d)
	if err == nil && !bytes.Equal(k.point(c), pub.Data) {
		return Key{}, dataError("the private and the public key of the JSON Web Key do not belong together")
	}
	return k, err
}

// number reads an unsigned big-endian number.
func (j *JWK) number(name string, member *string) (*big.Int, error) {
	b, err := j.bytes(name, member)
	if err != nil {
		return nil, err
	}
	if len(b) > maxRSABits/8 {
		return nil, dataError("the member %s of the JSON Web Key is a larger number than is supported", name)
	}
	return new(big.Int).SetBytes(b), nil
}

func (j *JWK) rsa(p ImportParams) (Key, error) {
	if err := j.checkUse(p); err != nil {
		return Key{}, err
	}
	if err := j.checkAlg(algName(p.Params, 0)); err != nil {
		return Key{}, err
	}
	if j.Oth {
		return Key{}, dataError("only RSA keys of two primes are supported")
	}
	n, err := j.number("n", j.N)
	if err != nil {
		return Key{}, err
	}
	e, err := j.number("e", j.E)
	if err != nil {
		return Key{}, err
	}
	if e.BitLen() > 31 {
		return Key{}, dataError("the RSA public exponent is a larger number than is supported")
	}
	pub := rsa.PublicKey{N: n, E: int(e.Int64())}
	if j.D == nil {
		return rsaPublic(&pub)
	}
	if err := checkRSAPublic(&pub); err != nil {
		return Key{}, err
	}
	var private [6]*big.Int
	for i, m := range []struct {
		name string
		text *string
	}{{"d", j.D}, {"p", j.P}, {"q", j.Q}, {"dp", j.DP}, {"dq", j.DQ}, {"qi", j.QI}} {
		if private[i], err = j.number(m.name, m.text); err != nil {
			return Key{}, err
		}
	}
	k := &rsa.PrivateKey{PublicKey: pub, D: private[0], Primes: private[1:3]}
	k.Precompute()
	if k.Validate() != nil || k.Precomputed.Dp == nil || k.Precomputed.Dp.Cmp(private[3]) != 0 ||
		k.Precomputed.Dq.Cmp(private[4]) != 0 || k.Precomputed.Qinv.Cmp(private[5]) != 0 {
		return Key{}, dataError("the members of the JSON Web Key are not those of one RSA private key")
	}
	return rsaPrivate(k)
}

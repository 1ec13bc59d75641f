package webcrypto

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// samples are a key of every algorithm, made once: pairs by their private key.
var samples = sync.OnceValue(func() map[Params]Key {
	all := map[Params]Key{}
	add := func(p Params, bits int) {
		k, err := Generate(GenerateParams{Params: p, Bits: bits})
		if err != nil {
			panic(err)
		}
		all[p] = k
	}
	rsa := Params{Algorithm: RSASSA, Hash: SHA256}
	add(rsa, minRSABits)
	for _, a := range []Algorithm{RSAPSS, RSAOAEP} {
		all[Params{Algorithm: a, Hash: SHA1}] = all[rsa]
	}
	for c := P256; c < numCurves; c++ {
		add(Params{Algorithm: ECDSA, Curve: c}, 0)
		add(Params{Algorithm: ECDH, Curve: c}, 0)
	}
	add(Params{Algorithm: Ed25519}, 0)
	add(Params{Algorithm: X25519}, 0)
	for a := AESCTR; a <= AESKW; a++ {
		add(Params{Algorithm: a}, 192)
	}
	add(Params{Algorithm: HMAC, Hash: SHA384}, -1)
	return all
})

// halves calls f for a secret key, or for both keys of a pair.
func halves(t testing.TB, f func(p Params, k Key)) {
	t.Helper()
	for p, k := range samples() {
		f(p, k)
		if k.Type == Private {
			public, err := PublicOf(p, k)
			if err != nil {
				t.Fatal(err)
			}
			f(p, public)
		}
	}
}

func readKey(p Params, f Format, data []byte) (Key, error) {
	ip := ImportParams{Params: p, Bits: -1, Extractable: true}
	if f != JWKFormat {
		return Import(ip, f, data)
	}
	j, err := ParseJWK(data)
	if err != nil {
		return Key{}, err
	}
	return ImportJWK(ip, j)
}

func writeKey(p Params, k Key, f Format) ([]byte, error) {
	if f == JWKFormat {
		return ExportJWK(p, k, 0, true)
	}
	return Export(p, k, f)
}

// Each key survives each format that the standard gives it, and has no other (Web Cryptography, "export key").
func TestFormatsRoundTrip(t *testing.T) {
	halves(t, func(p Params, k Key) {
		for f := Raw; f < numFormats; f++ {
			data, err := writeKey(p, k, f)
			want := ""
			switch {
			case f == JWKFormat, k.Type == Secret && f == Raw, k.Type == Public && f == SPKI, k.Type == Private && f == PKCS8:
			case k.Type == Public && f == Raw && !p.Algorithm.IsRSA():
			case k.Type == Secret, f == Raw && p.Algorithm.IsRSA():
				want = "NotSupportedError"
			default:
				want = "InvalidAccessError"
			}
			if err != nil {
				if !strings.HasPrefix(err.Error(), want+":") {
					t.Errorf("%+v type %d format %d: %v, want %s", p, k.Type, f, err, want)
				}
				continue
			}
			back, err := readKey(p, f, data)
			if want != "" || err != nil || back.Type != k.Type || !bytes.Equal(back.Data, k.Data) {
				t.Errorf("%+v type %d format %d: back %v, %v; want %q", p, k.Type, f, back.Type, err, want)
			}
			if _, ok := Load(p, back.Stored()); !ok {
				t.Errorf("%+v type %d: its stored form cannot be loaded", p, k.Type)
			}
		}
	})
}

// A key is not taken for one of another algorithm or curve, nor with bytes behind it or missing.
func TestFormatsRefuse(t *testing.T) {
	halves(t, func(p Params, k Key) {
		for _, f := range []Format{PKCS8, SPKI, JWKFormat} {
			data, err := writeKey(p, k, f)
			if err != nil {
				continue
			}
			if f != JWKFormat {
				for _, bad := range [][]byte{append(bytes.Clone(data), 0), data[:len(data)-1], nil, {0x30}} {
					if _, err := readKey(p, f, bad); err == nil || !strings.HasPrefix(err.Error(), "DataError") {
						t.Errorf("%+v format %d: %d bytes instead of %d: %v", p, f, len(bad), len(data), err)
					}
				}
			}
			for other := range samples() {
				same := other.Algorithm.IsRSA() && p.Algorithm.IsRSA() || other.Algorithm.isEC() && p.Algorithm.isEC() && other.Curve == p.Curve ||
					other.Algorithm > X25519 && p.Algorithm > X25519 || other.Algorithm == p.Algorithm && other.Curve == p.Curve
				if _, err := readKey(other, f, data); err == nil && !same {
					t.Errorf("a key of %+v is taken for one of %+v in format %d", p, other, f)
				}
			}
		}
	})
}

// The rules of "jwk" imports, one broken at a time.
func TestJWKRules(t *testing.T) {
	type edit = func(m map[string]any)
	set := func(name string, v any) edit { return func(m map[string]any) { m[name] = v } }
	drop := func(name string) edit { return func(m map[string]any) { delete(m, name) } }
	longer := func(name string) edit { return func(m map[string]any) { m[name] = "AAAA" + m[name].(string) } }
	swap := func(a, b string) edit { return func(m map[string]any) { m[a], m[b] = m[b], m[a] } }
	pick := func(a Algorithm) Params {
		for p := range samples() {
			if p.Algorithm == a {
				return p
			}
		}
		t.Fatal("no sample")
		return Params{}
	}
	for _, c := range []struct {
		name   string
		a      Algorithm
		edit   edit
		usages Usages
		want   string
	}{
		{"as it is", ECDSA, set("kty", "EC"), UseSign, ""},
		{"unknown members and usages", ECDSA, set("key_ops", []string{"sign", "verify", "own"}), UseSign, ""},
		{"usage of the other half", ECDSA, drop("none"), UseVerify, "SyntaxError"},
		{"usage before kty", ECDSA, drop("kty"), UseVerify, "DataError"}, // no kty is no JSON Web Key
		{"usage before wrong kty", ECDSA, set("kty", "oct"), UseVerify, "SyntaxError"},
		{"kty", ECDSA, set("kty", "ec"), UseSign, "DataError"},
		{"use", ECDSA, set("use", "enc"), UseSign, "DataError"},
		{"use without usages", ECDSA, set("use", "enc"), 0, ""},
		{"key_ops too few", ECDSA, set("key_ops", []string{"verify"}), UseSign, "DataError"},
		{"key_ops twice", ECDSA, set("key_ops", []string{"sign", "sign"}), UseSign, "DataError"},
		{"key_ops twice, unknown", ECDSA, set("key_ops", []string{"sign", "own", "own"}), UseSign, "DataError"},
		{"key_ops no list", ECDSA, set("key_ops", "sign"), UseSign, "DataError"},
		{"ext", ECDSA, set("ext", false), UseSign, "DataError"},
		{"ext no boolean", ECDSA, set("ext", "yes"), UseSign, "DataError"},
		{"crv", ECDSA, set("crv", "P-255"), UseSign, "DataError"},
		{"alg", ECDSA, set("alg", "ES999"), UseSign, "DataError"},
		{"alg of ECDH is free", ECDH, set("alg", "anything"), UseDeriveBits, ""},
		{"no x", ECDSA, drop("x"), UseSign, "DataError"},
		{"x too long", ECDSA, longer("x"), UseSign, "DataError"},
		{"d too long", ECDSA, longer("d"), UseSign, "DataError"},
		{"not on the curve", ECDSA, swap("x", "y"), UseSign, "DataError"},
		{"padding", ECDSA, func(m map[string]any) { m["x"] = m["x"].(string) + "=" }, UseSign, "DataError"},
		{"line break", ECDSA, func(m map[string]any) { m["x"] = m["x"].(string) + "\n" }, UseSign, "DataError"},
		{"d of another key", ECDSA, set("d", strings.Repeat("AQ", 88)[:43]), UseSign, "DataError"},
		{"d null", ECDSA, set("d", nil), UseSign, "DataError"},
		{"x a number", ECDSA, set("x", 1), UseSign, "DataError"},
		{"Ed25519 alg", Ed25519, set("alg", "EdDSA"), UseSign, ""},
		{"Ed25519 wrong alg", Ed25519, set("alg", "ES256"), UseSign, "DataError"},
		{"Ed25519 pair", Ed25519, swap("x", "d"), UseSign, "DataError"},
		{"Ed25519 short", Ed25519, set("d", "AAAA"), UseSign, "DataError"},
		{"X25519 crv", X25519, set("crv", "Ed25519"), UseDeriveBits, "DataError"},
		{"X25519 use", X25519, set("use", "sig"), UseDeriveBits, "DataError"},
		{"X25519 public usages", X25519, drop("d"), UseDeriveBits, "SyntaxError"},
		{"RSA alg", RSASSA, set("alg", "PS256"), UseSign, "DataError"},
		{"RSA alg of another digest", RSASSA, set("alg", "RS1"), UseSign, "DataError"},
		{"RSA without alg", RSASSA, drop("alg"), UseSign, ""},
		{"RSA oth", RSASSA, set("oth", []any{}), UseSign, "DataError"},
		{"RSA even", RSASSA, set("e", "Ag"), UseSign, "DataError"},
		{"RSA e 1", RSASSA, set("e", "AQ"), UseSign, "DataError"},
		{"RSA e too large", RSASSA, set("e", "_____w8B"), UseSign, "DataError"},
		{"RSA without primes", RSASSA, drop("p"), UseSign, "DataError"},
		{"RSA primes changed", RSASSA, swap("p", "q"), UseSign, "DataError"},
		{"RSA dp", RSASSA, swap("dp", "dq"), UseSign, "DataError"},
		{"RSA d", RSASSA, swap("d", "n"), UseSign, "DataError"},
		{"RSA too small", RSASSA, func(m map[string]any) { m["n"] = "_w"; delete(m, "d") }, UseVerify, "DataError"},
		{"RSA too large", RSASSA, func(m map[string]any) { m["n"] = strings.Repeat("_", 2000); delete(m, "d") }, UseVerify, "DataError"},
		{"oct alg", AESGCM, set("alg", "A192CBC"), UseEncrypt, "DataError"},
		{"oct alg of another length", AESGCM, set("alg", "A128GCM"), UseEncrypt, "DataError"},
		{"oct length", AESGCM, set("k", "AAAA"), UseEncrypt, "DataError"},
		{"oct usages", AESKW, drop("none"), UseEncrypt, "SyntaxError"},
		{"oct use", AESGCM, set("use", "sig"), UseEncrypt, "DataError"},
		{"HMAC alg", HMAC, set("alg", "HS256"), UseSign, "DataError"},
		{"HMAC empty", HMAC, set("k", ""), UseSign, "DataError"},
		{"HMAC use", HMAC, set("use", "enc"), UseSign, "DataError"},
	} {
		p := pick(c.a)
		text, err := ExportJWK(p, samples()[p], 0, true)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]any{}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "key_ops")
		c.edit(m)
		text, _ = json.Marshal(m)
		j, err := ParseJWK(text)
		if err == nil {
			_, err = ImportJWK(ImportParams{Params: p, Bits: -1, Usages: c.usages, Extractable: true}, j)
		}
		if got, _, _ := strings.Cut(errText(err), ":"); got != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for _, text := range []string{"", "null", "[]", "1", "{", `{"kty":1}`, `{}`, "\xff", strings.Repeat("[", 1<<17)} {
		if _, err := ParseJWK([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "DataError") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Compressed points are read in both formats that carry points, and written uncompressed.
func TestCompressedPoints(t *testing.T) {
	for c := P256; c < numCurves; c++ {
		p := Params{Algorithm: ECDH, Curve: c}
		pub, err := PublicOf(p, samples()[p])
		if err != nil {
			t.Fatal(err)
		}
		short := append([]byte{2 + pub.Data[len(pub.Data)-1]&1}, pub.Data[1:1+c.bytes()]...)
		for f, data := range map[Format][]byte{Raw: short, SPKI: append(spkiHead(c, len(short)), short...)} {
			k, err := readKey(p, f, data)
			if err != nil || !bytes.Equal(k.Data, pub.Data) {
				t.Errorf("%s, format %d: %x, %v", c.name(), f, k.Data, err)
			}
			bad := bytes.Clone(data)
			bad[len(bad)-c.bytes()-1] = 5
			if _, err := readKey(p, f, bad); err == nil {
				t.Errorf("%s, format %d: a point of an unknown form is taken", c.name(), f)
			}
		}
	}
}

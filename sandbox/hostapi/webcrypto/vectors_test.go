package webcrypto

import (
	"bytes"
	"encoding/hex"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func secretKey(b []byte) Key { return Key{Type: Secret, Data: b} }

// RFC 3394, section 4: the six key wrap vectors; and that a changed bit is noticed.
func TestKeyWrapVectors(t *testing.T) {
	const kek = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	const data = "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f"
	for _, c := range []struct {
		kek, data int
		want      string
	}{
		{16, 16, "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"},
		{24, 16, "96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d"},
		{32, 16, "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"},
		{24, 24, "031d33264e15d33268f24ec260743edce1c6c7ddee725a936ba814915c6762d2"},
		{32, 24, "a8f9bc1612c68b3ff6e6f4fbe30e71e4769c8b80a32cb8958cd5d17d6b254da1"},
		{32, 32, "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"},
	} {
		p := CryptParams{Params: Params{Algorithm: AESKW}}
		k, plain := secretKey(unhex(t, kek)[:c.kek]), unhex(t, data)[:c.data]
		got, err := Encrypt(p, k, plain, nil)
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("wrap %d under %d: %x, %v", c.data, c.kek, got, err)
			continue
		}
		back, err := Decrypt(p, k, got, nil)
		if err != nil || !bytes.Equal(back, plain) {
			t.Errorf("unwrap: %x, %v", back, err)
		}
		for i := range got {
			bad := bytes.Clone(got)
			bad[i] ^= 1
			if _, err := Decrypt(p, k, bad, nil); err == nil {
				t.Errorf("a changed byte %d is not noticed", i)
			}
		}
	}
}

// SP 800-38A, F.5.1 and F.5.5 (counter mode) and F.2.1 (CBC, to whose output the padding's block is added).
func TestAESVectors(t *testing.T) {
	const plain = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
	k128 := secretKey(unhex(t, "2b7e151628aed2a6abf7158809cf4f3c"))
	k256 := secretKey(unhex(t, "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"))
	ctr := unhex(t, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
	for _, c := range []struct {
		a    Algorithm
		k    Key
		iv   []byte
		bits int
		want string
	}{
		{AESCTR, k128, ctr, 128, "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee"},
		{AESCTR, k256, ctr, 64, "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"},
		{AESCBC, k128, unhex(t, "000102030405060708090a0b0c0d0e0f"), 0, "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7"},
	} {
		p := CryptParams{Params: Params{Algorithm: c.a}, IV: c.iv, Bits: c.bits}
		got, err := Encrypt(p, c.k, unhex(t, plain), nil)
		if err != nil || hex.EncodeToString(got[:64]) != c.want {
			t.Errorf("%v: %x, %v", c.a, got, err)
		}
		if back, err := Decrypt(p, c.k, got, nil); err != nil || hex.EncodeToString(back) != plain {
			t.Errorf("%v: back %x, %v", c.a, back, err)
		}
	}
}

// RFC 5869 A.1, RFC 7914 section 11 (PBKDF2), RFC 7748 section 6.1 (X25519).
func TestDeriveVectors(t *testing.T) {
	seq := func(from, n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(from + i)
		}
		return b
	}
	alice, err := okpPrivate(X25519, unhex(t, "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"))
	if err != nil || hex.EncodeToString(alice.okpPublicBytes()) != "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a" {
		t.Fatalf("X25519 public key: %x, %v", alice.Data, err)
	}
	x25519 := Params{Algorithm: X25519}
	bob := &DerivePublic{x25519, Key{Type: Public, Data: unhex(t, "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")}}
	for _, c := range []struct {
		name string
		p    DeriveParams
		k    Key
		want string
	}{
		{"HKDF", DeriveParams{Params: Params{Algorithm: HKDF, Hash: SHA256}, Salt: seq(0, 13), Info: seq(0xf0, 10), Bits: 42 * 8},
			secretKey(bytes.Repeat([]byte{0x0b}, 22)), "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"},
		{"PBKDF2", DeriveParams{Params: Params{Algorithm: PBKDF2, Hash: SHA256}, Salt: []byte("salt"), Iterations: 1, Bits: 64 * 8},
			secretKey([]byte("passwd")), "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"},
		{"X25519", DeriveParams{Params: x25519, Public: bob, Bits: -1}, alice, "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"},
		{"X25519, 13 bits", DeriveParams{Params: x25519, Public: bob, Bits: 13}, alice, "4a58"},
	} {
		got, err := Derive(c.p, c.k, nil)
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%s: %x, %v", c.name, got, err)
		}
	}
}

// RFC 8032, section 7.1, test 1 (Ed25519); RFC 4231, test 2 (HMAC).
func TestSignVectors(t *testing.T) {
	ed, err := okpPrivate(Ed25519, unhex(t, "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
	if err != nil {
		t.Fatal(err)
	}
	edPublic := Key{Type: Public, Data: unhex(t, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")}
	jefe := secretKey([]byte("Jefe"))
	for _, c := range []struct {
		name            string
		p               Params
		private, public Key
		message, want   string
	}{
		{"Ed25519", Params{Algorithm: Ed25519}, ed, edPublic, "", "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
		{"HMAC", Params{Algorithm: HMAC, Hash: SHA256}, jefe, jefe, "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	} {
		p := SignParams{Params: c.p}
		sig, err := Sign(p, c.private, []byte(c.message), nil)
		if err != nil || hex.EncodeToString(sig) != c.want {
			t.Errorf("%s: %x, %v", c.name, sig, err)
		}
		for _, m := range []string{c.message, c.message + "x"} {
			if ok, err := Verify(p, c.public, sig, []byte(m), nil); err != nil || ok != (m == c.message) {
				t.Errorf("%s: verify %q: %v, %v", c.name, m, ok, err)
			}
		}
	}
}

// RSA-PSS: the length of the salt is part of what is verified. The signatures, without salt and with 32 bytes of it, were
// made with OpenSSL 3.
func TestPSSSaltLength(t *testing.T) {
	k := Key{Type: Public, Data: unhex(t, "30818902818100bccdf6e00db1eae2d005f90a979685f0bfd0965368757a5203e69c1ee532dbbef2a680c73bf280c8a5af9860bc394be6ba6f6f2b65c58f908e3b9c0cb0246a54e738b2c48edac7b564d763f88156eb0fd3de518deacf03dff7bcd87e3a38d21dc271ae992122db9655d379c7df9d014dfa9551d7609a591215943ab01b9ec7cb0203010001")}
	none := unhex(t, "942f1777e624c8399905c7d03dd2a65a258656942d4b7feafb50b2421e7cbc54fd88e12a8a62a79762f6063cddc7b1efeda513af03b5610d4b436f22f063c86c6e17ed2b86f94a2bff74640dff932ec9e5ef46f83c036f47fb9a151be35f29eba5a1e0adddfb5d0f4317c7e2740d862f5e4cda43da9650a837747b48d4fc9e9b")
	with := unhex(t, "6eaf99b0a076ef4bb080950d5ee7875b004637c62f25c34e51e3d9dd5871441ee91c04d62c35702dd486e3e30c8a51eae241fe8125e9ea1d6e948a1b1a143acdf1e3541b3fe41190a89753b5f2156aea7207065fe416b4ee31883e3576e15ac3403146f717996e3d528b58b3bbad207c1449efbd42e7e72799b8e6c42b7fcc19")
	for _, c := range []struct {
		sig  []byte
		salt int
		want bool
	}{{none, 0, true}, {none, 1, false}, {none, 32, false}, {with, 32, true}, {with, 0, false}, {with, 31, false}, {with, 1 << 30, false}, {none[1:], 0, false}} {
		ok, err := Verify(SignParams{Params{Algorithm: RSAPSS, Hash: SHA256}, c.salt}, k, c.sig, []byte("message"), nil)
		if err != nil || ok != c.want {
			t.Errorf("salt %d, signature %x...: %v, %v", c.salt, c.sig[:4], ok, err)
		}
	}
}

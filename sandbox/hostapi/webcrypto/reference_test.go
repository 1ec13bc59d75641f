package webcrypto

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	stdpbkdf2 "crypto/pbkdf2"
	"crypto/sha512"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"testing"

	"edged/internal/testkit"
)

// The counter of AES-CTR wraps in its last bits alone, and never repeats (Web Cryptography, AES-CTR): against encryption
// of each counter block by itself.
func TestCTRWraps(t *testing.T) {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	rng := testkit.Rand(t)
	for range 300 {
		bits := 1 + rng.IntN(128)
		counter := make([]byte, 16)
		for i := range counter {
			counter[i] = byte(rng.Uint32())
		}
		if rng.IntN(2) == 0 { // close to the wrap
			for i := range bits / 8 {
				counter[15-i] = 0xff
			}
		}
		data := make([]byte, rng.IntN(200))
		got, err := aesCTR(block, counter, bits, data, nil)
		if blocks := (len(data) + 15) / 16; bits < 8 && blocks > 1<<bits {
			if err == nil {
				t.Fatalf("%d blocks with %d bits repeat", blocks, bits)
			}
			continue
		}
		if want := naiveCTR(block, counter, bits, data); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bits from %x, %d bytes:\n got %x, %v\nwant %x", bits, counter, len(data), got, err, want)
		}
	}
}

func naiveCTR(block cipher.Block, counter []byte, bits int, data []byte) []byte {
	span := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	whole := new(big.Int).SetBytes(counter)
	count := new(big.Int).Mod(whole, span)
	fixed := new(big.Int).Sub(whole, count)
	out := make([]byte, len(data))
	for i := 0; i < len(data); i += 16 {
		var stream, in [16]byte
		new(big.Int).Add(fixed, count).FillBytes(in[:])
		block.Encrypt(stream[:], in[:])
		for j := i; j < min(i+16, len(data)); j++ {
			out[j] = data[j] ^ stream[j-i]
		}
		count.Add(count, big.NewInt(1)).Mod(count, span)
	}
	return out
}

// A short tag of AES-GCM is the start of the whole one: against the standard library where that makes short tags itself.
func TestGCMTags(t *testing.T) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	iv, more, data := []byte("twelve bytes"), []byte("more"), bytes.Repeat([]byte("data"), 10)
	for _, bits := range []int{32, 64, 96, 104, 112, 120, 128} {
		got, err := encryptGCM(block, iv, more, data, bits)
		if err != nil {
			t.Fatal(err)
		}
		if bits >= 96 {
			std, err := cipher.NewGCMWithTagSize(block, bits/8)
			if err != nil {
				t.Fatal(err)
			}
			if want := std.Seal(nil, iv, data, more); !bytes.Equal(got, want) {
				t.Errorf("%d bits: %x, want %x", bits, got, want)
			}
		}
		if back, err := decryptGCM(block, iv, more, got, bits); err != nil || !bytes.Equal(back, data) {
			t.Errorf("%d bits: %q, %v", bits, back, err)
		}
		for i := range got {
			bad := bytes.Clone(got)
			bad[i] ^= 0x10
			if _, err := decryptGCM(block, iv, more, bad, bits); err == nil {
				t.Errorf("%d bits: a changed byte %d is not noticed", bits, i)
			}
		}
		if _, err := decryptGCM(block, iv, nil, got, bits); err == nil {
			t.Errorf("%d bits: other additional data is not noticed", bits)
		}
	}
}

// Padding that is not whole is one error, whichever byte is wrong.
func TestCBCPadding(t *testing.T) {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	iv := make([]byte, 16)
	for last := range 256 {
		for fill := range 2 {
			plain := bytes.Repeat([]byte{byte(last + fill)}, 32)
			plain[31] = byte(last)
			enc := make([]byte, 32)
			cipher.NewCBCEncrypter(block, iv).CryptBlocks(enc, plain)
			got, err := decryptCBC(block, iv, enc, nil)
			good := last >= 1 && last <= 16 && (fill == 0 || last == 1)
			if (err == nil) != good || good && len(got) != 32-last || !good && err != errDecrypt {
				t.Errorf("last byte %d, others %d: %x, %v", last, last+fill, got, err)
			}
		}
	}
}

// PBKDF2 gives what the standard library's gives.
func TestPBKDF2(t *testing.T) {
	rng := testkit.Rand(t)
	for h := SHA1; h < numHashes; h++ {
		for range 20 {
			password, salt := make([]byte, rng.IntN(200)), make([]byte, rng.IntN(100))
			n, iterations := 1+rng.IntN(150), 1+rng.IntN(50)
			want, err := stdpbkdf2.Key(h.std().New, string(password), salt, iterations, n)
			if err != nil {
				t.Fatal(err)
			}
			p := DeriveParams{Params: Params{Algorithm: PBKDF2, Hash: h}, Salt: salt, Iterations: int64(iterations), Bits: int64(n) * 8}
			if got, err := Derive(p, secretKey(password), nil); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes after %d iterations: %x, %v, want %x", n, iterations, got, err, want)
			}
		}
	}
}

// Work is given up soon after its caller says so.
func TestStop(t *testing.T) {
	asked := 0
	stop := func() bool { asked++; return asked > 3 }
	big := make([]byte, 10*digestPiece)
	pbkdf2 := DeriveParams{Params: Params{Algorithm: PBKDF2, Hash: SHA256}, Iterations: maxIterations, Bits: 256}
	aesKey := secretKey(make([]byte, 16))
	for name, do := range map[string]func() error{
		"PBKDF2": func() error { _, err := Derive(pbkdf2, Key{}, stop); return err },
		"digest": func() error { _, err := Digest(SHA512, big, stop); return err },
		"HMAC": func() error {
			_, err := Sign(SignParams{Params: Params{Algorithm: HMAC, Hash: SHA1}}, aesKey, big, stop)
			return err
		},
		"CTR": func() error {
			_, err := Encrypt(CryptParams{Params{Algorithm: AESCTR}, make([]byte, 16), nil, 64}, aesKey, big, stop)
			return err
		},
		"CBC": func() error {
			_, err := Encrypt(CryptParams{Params{Algorithm: AESCBC}, make([]byte, 16), nil, 0}, aesKey, big, stop)
			return err
		},
		"KW": func() error {
			_, err := Encrypt(CryptParams{Params: Params{Algorithm: AESKW}}, aesKey, big[:1<<16], stop)
			return err
		},
	} {
		asked = 0
		if err := do(); err != errStopped || asked != 4 {
			t.Errorf("%s: %v after %d questions", name, err, asked)
		}
	}
}

// The points that Ed25519 refuses are exactly the encodings of the points whose order divides 8: each listed y, and no
// other small one or one near p, is the y of a point that eightfold is the neutral element.
func TestSmallOrder(t *testing.T) {
	c := newEdwards()
	candidates := map[[32]byte]bool{}
	for y := range smallOrderY {
		candidates[y] = true
	}
	for i := int64(-3); i < 19; i++ { // 255 bits hold p to p+18 too
		for _, base := range []*big.Int{big.NewInt(0), c.p} {
			if v := new(big.Int).Add(base, big.NewInt(i)); v.Sign() >= 0 && v.BitLen() <= 255 {
				candidates[littleEndian(v)] = true
			}
		}
	}
	for y := range candidates {
		if got, want := smallOrder(y[:]), c.small(y); got != want {
			t.Errorf("%x: %v, want %v", y, got, want)
		}
		y[31] |= 0x80
		if smallOrder(y[:]) != c.small([32]byte(clearTop(y))) {
			t.Errorf("%x: the sign of x makes a difference", y)
		}
	}
}

func clearTop(y [32]byte) []byte { y[31] &= 0x7f; return y[:] }

func littleEndian(v *big.Int) (out [32]byte) {
	v.FillBytes(out[:])
	for i := range 16 {
		out[i], out[31-i] = out[31-i], out[i]
	}
	return out
}

// edwards is the curve of Ed25519 in the plainest arithmetic.
type edwards struct{ p, d *big.Int }

func newEdwards() edwards {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	d := new(big.Int).ModInverse(big.NewInt(121666), p)
	return edwards{p, d.Mul(d, big.NewInt(-121665)).Mod(d, p)}
}

// small reports whether there is a point with this y and eight times it is (0, 1).
func (c edwards) small(enc [32]byte) bool {
	for i := range 16 {
		enc[i], enc[31-i] = enc[31-i], enc[i]
	}
	y := new(big.Int).SetBytes(enc[:])
	y.Mod(y, c.p)
	yy := c.mul(y, y)
	num := new(big.Int).Sub(yy, big.NewInt(1))
	den := new(big.Int).Add(c.mul(c.d, yy), big.NewInt(1))
	xx := c.mul(num, new(big.Int).ModInverse(den, c.p))
	x := new(big.Int).ModSqrt(xx, c.p)
	if x == nil {
		return false
	}
	for range 3 {
		x, y = c.double(x, y)
	}
	return x.Sign() == 0 && y.Cmp(big.NewInt(1)) == 0
}

func (c edwards) mul(a, b *big.Int) *big.Int {
	m := new(big.Int).Mul(a, b)
	return m.Mod(m, c.p)
}

func (c edwards) double(x, y *big.Int) (*big.Int, *big.Int) {
	xy, one := c.mul(x, y), big.NewInt(1)
	t := c.mul(c.d, c.mul(xy, xy))
	up := new(big.Int).Add(c.mul(x, x), c.mul(y, y))
	x3 := c.mul(new(big.Int).Lsh(xy, 1), new(big.Int).ModInverse(new(big.Int).Add(one, t), c.p))
	low := new(big.Int).Mod(new(big.Int).Sub(one, t), c.p)
	return x3, c.mul(up, new(big.Int).ModInverse(low, c.p))
}

// A signature whose commitment is the neutral element can be computed so that the equation holds; it is refused (Web
// Cryptography, "Ed25519", verify).
func TestSmallOrderCommitment(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, 32)
	k, err := okpPrivate(Ed25519, seed)
	if err != nil {
		t.Fatal(err)
	}
	public, message := k.okpPublicBytes(), []byte("message")
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	number := func(b []byte) *big.Int {
		b = bytes.Clone(b)
		slices.Reverse(b)
		return new(big.Int).SetBytes(b)
	}
	h := sha512.Sum512(seed)
	h[0] &= 248
	h[31] = h[31]&63 | 64
	sig := make([]byte, 64)
	sig[0] = 1 // R = (0, 1)
	challenge := sha512.Sum512(slices.Concat(sig[:32], public, message))
	s := new(big.Int).Mul(number(challenge[:]), number(h[:32]))
	s.Mod(s, order).FillBytes(sig[32:])
	slices.Reverse(sig[32:])
	if !ed25519.Verify(public, message, sig) {
		t.Fatal("the signature does not fulfil the equation")
	}
	if ok, err := Verify(SignParams{Params: Params{Algorithm: Ed25519}}, Key{Type: Public, Data: public}, sig, message, nil); ok || err != nil {
		t.Errorf("it is taken: %v, %v", ok, err)
	}
}

// A salt that does not fit costs nothing: the standard library would make it first.
func TestLongSalt(t *testing.T) {
	p := SignParams{Params{Algorithm: RSAPSS, Hash: SHA1}, 1 << 28}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Sign(p, samples()[p.Params], nil, nil)
	runtime.ReadMemStats(&after)
	if !strings.HasPrefix(errText(err), "OperationError") || after.TotalAlloc-before.TotalAlloc > 1<<24 {
		t.Errorf("%v after %d bytes", err, after.TotalAlloc-before.TotalAlloc)
	}
	for _, salt := range []int{1, 106} { // 106 is the most for 1,024 bits and SHA-1
		if _, err := Sign(SignParams{p.Params, salt}, samples()[p.Params], nil, nil); err != nil {
			t.Errorf("salt of %d bytes: %v", salt, err)
		}
	}
	if _, err := Sign(SignParams{p.Params, 107}, samples()[p.Params], nil, nil); err == nil {
		t.Error("a salt of 107 bytes fits")
	}
}

package webcrypto

import (
	"bytes"
	"testing"
)

// No input in any format does more than fail, and a key that was read is written and read as the same key.
func FuzzImport(f *testing.F) {
	halves(f, func(p Params, k Key) {
		for format := Raw; format < numFormats; format++ {
			if data, err := writeKey(p, k, format); err == nil {
				f.Add(uint8(p.Algorithm), uint8(p.Curve), uint8(format), data)
			}
		}
	})
	f.Fuzz(func(t *testing.T, a, c, format uint8, data []byte) {
		p := Params{Algorithm: Algorithm(a), Hash: SHA256, Curve: Curve(c)}
		if !p.Algorithm.Valid() || p.Curve >= numCurves || !Format(format).Valid() || p.Algorithm >= HKDF {
			return
		}
		k, err := readKey(p, Format(format), data)
		if err != nil {
			return
		}
		if _, ok := Load(p, k.Stored()); !ok {
			t.Fatalf("the stored form of %x cannot be loaded", data)
		}
		text, err := writeKey(p, k, JWKFormat)
		if err != nil {
			t.Fatalf("a key that was read cannot be written: %v", err)
		}
		back, err := readKey(p, JWKFormat, text)
		if err != nil || !bytes.Equal(back.Data, k.Data) {
			t.Fatalf("back from %s: %v", text, err)
		}
	})
}

// A stored form that is none, with any parameters, makes no operation panic.
func FuzzLoad(f *testing.F) {
	halves(f, func(p Params, k Key) {
		f.Add(uint8(p.Algorithm), uint8(p.Hash), uint8(p.Curve), k.Stored(), []byte("0123456789abcdef"))
	})
	f.Fuzz(func(t *testing.T, a, h, c uint8, stored, data []byte) {
		p := Params{Algorithm: Algorithm(a), Hash: Hash(h), Curve: Curve(c)}
		if !p.Algorithm.Valid() || p.Hash >= numHashes || p.Curve >= numCurves || p.Hash == 0 && p.Algorithm.NeedsHash() {
			return
		}
		k, ok := Load(p, stored)
		if !ok {
			return
		}
		for format := Raw; format < numFormats; format++ {
			writeKey(p, k, format)
		}
		PublicOf(p, k)
		if p.Algorithm.IsRSA() {
			DescribeRSA(k)
		}
		if p.Algorithm.Encrypts() {
			Encrypt(CryptParams{p, data, data, 128}, k, data, nil)
			Decrypt(CryptParams{p, data, data, 32}, k, data, nil)
		}
		if p.Hash == 0 {
			p.Hash = SHA1
		}
		if p.Algorithm.Signs() {
			Sign(SignParams{p, 20}, k, data, nil)
			Verify(SignParams{p, 0}, k, data, data, nil)
		}
		if p.Algorithm.Derives() {
			Derive(DeriveParams{Params: p, Public: &DerivePublic{p, k}, Salt: data, Info: data, Iterations: 2, Bits: 64}, k, nil)
		}
	})
}

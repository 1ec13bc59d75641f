package webcrypto

import (
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
)

// Key wrap (RFC 3394) with the default initial value.

const wrapIV = 0xa6a6a6a6a6a6a6a6

func wrapKey(block cipher.Block, data []byte, stop Stop) ([]byte, error) {
	if len(data)%8 != 0 || len(data) < 16 || len(data) > MaxSecretBytes {
		return nil, operationError("AES-KW wraps a multiple of 8 bytes, from 16 on")
	}
	n := len(data) / 8
	out := make([]byte, 8+len(data))
	copy(out[8:], data)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], wrapIV)
	for j := range 6 {
		for i := 1; i <= n; i++ {
			copy(b[8:], out[8*i:])
			block.Encrypt(b[:], b[:])
			binary.BigEndian.PutUint64(b[:], binary.BigEndian.Uint64(b[:])^uint64(n*j+i))
			copy(out[8*i:], b[8:])
		}
		if stop.now() {
			return nil, errStopped
		}
	}
	copy(out, b[:8])
	return out, nil
}

func unwrapKey(block cipher.Block, data []byte, stop Stop) ([]byte, error) {
	if len(data)%8 != 0 || len(data) < 24 || len(data) > 8+MaxSecretBytes {
		return nil, errDecrypt
	}
	n := len(data)/8 - 1
	out := append([]byte(nil), data[8:]...)
	var b [16]byte
	copy(b[:], data[:8])
	for j := 5; j >= 0; j-- {
		for i := n; i >= 1; i-- {
			binary.BigEndian.PutUint64(b[:], binary.BigEndian.Uint64(b[:])^uint64(n*j+i))
			copy(b[8:], out[8*(i-1):])
			block.Decrypt(b[:], b[:])
			copy(out[8*(i-1):], b[8:])
		}
		if stop.now() {
			return nil, errStopped
		}
	}
	var iv [8]byte
	binary.BigEndian.PutUint64(iv[:], wrapIV)
	if subtle.ConstantTimeCompare(b[:8], iv[:]) != 1 {
		return nil, errDecrypt
	}
	return out, nil
}

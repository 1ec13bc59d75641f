package webcrypto

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"math/big"
)

// maxGCMBytes bounds what AES-GCM works on: it cannot be interrupted on the way.
const maxGCMBytes = 64 << 20

// pieces runs work, which need not give whole blocks at the end, over data piece by piece. dst and src are of one length.
func pieces(dst, src []byte, stop Stop, work func(dst, src []byte)) error {
	for len(src) > 0 {
		n := min(len(src), digestPiece)
		work(dst[:n], src[:n])
		if dst, src = dst[n:], src[n:]; len(src) > 0 && stop.now() {
			return errStopped
		}
	}
	return nil
}

// aesCTR encrypts or decrypts. The last bits of the counter block count, and wrap by themselves; the rest stays.
func aesCTR(block cipher.Block, counter []byte, bits int, data []byte, stop Stop) ([]byte, error) {
	switch {
	case len(counter) != aes.BlockSize:
		return nil, operationError("the counter of AES-CTR has 16 bytes")
	case bits < 1 || bits > 128:
		return nil, operationError("the length of AES-CTR is from 1 to 128 bits")
	}
	span := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	blocks := big.NewInt(int64((len(data) + aes.BlockSize - 1) / aes.BlockSize))
	if blocks.Cmp(span) > 0 {
		return nil, operationError("the counter of %d bits would repeat", bits)
	}
	start := new(big.Int).SetBytes(counter)
	count := new(big.Int).Mod(start, span)
	first := len(data) // bytes before the counter wraps
	if left := new(big.Int).Sub(span, count); left.Cmp(blocks) < 0 {
		first = int(left.Int64()) * aes.BlockSize
	}
	out := make([]byte, len(data))
	if err := pieces(out[:first], data[:first], stop, cipher.NewCTR(block, counter).XORKeyStream); err != nil {
		return nil, err
	}
	if first < len(data) {
		wrapped := new(big.Int).Sub(start, count).FillBytes(make([]byte, aes.BlockSize))
		if err := pieces(out[first:], data[first:], stop, cipher.NewCTR(block, wrapped).XORKeyStream); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func encryptCBC(block cipher.Block, iv, data []byte, stop Stop) ([]byte, error) {
	if len(iv) != aes.BlockSize {
		return nil, operationError("the iv of AES-CBC has 16 bytes")
	}
	padding := aes.BlockSize - len(data)%aes.BlockSize
	out := make([]byte, len(data)+padding)
	copy(out, data)
	copy(out[len(data):], bytes.Repeat([]byte{byte(padding)}, padding))
	return out, pieces(out, out, stop, cipher.NewCBCEncrypter(block, iv).CryptBlocks)
}

func decryptCBC(block cipher.Block, iv, data []byte, stop Stop) ([]byte, error) {
	if len(iv) != aes.BlockSize {
		return nil, operationError("the iv of AES-CBC has 16 bytes")
	}
	if len(data) == 0 || len(data)%aes.BlockSize != 0 {
		return nil, operationError("the data is not whole blocks of AES-CBC")
	}
	out := make([]byte, len(data))
	if err := pieces(out, data, stop, cipher.NewCBCDecrypter(block, iv).CryptBlocks); err != nil {
		return nil, err
	}
	padding := int(out[len(out)-1])
	good := subtle.ConstantTimeLessOrEq(1, padding) & subtle.ConstantTimeLessOrEq(padding, aes.BlockSize)
	for i := 1; i <= aes.BlockSize; i++ { // one error for all, at one speed
		beyond := subtle.ConstantTimeLessOrEq(padding+1, i)
		good &= beyond | subtle.ConstantTimeByteEq(out[len(out)-i], byte(padding))
	}
	if good != 1 {
		return nil, errDecrypt
	}
	return out[:len(out)-padding], nil
}

// errDecrypt is the one answer to data that does not fit the key.
var errDecrypt = operationError("the data cannot be decrypted with this key")

// gcm checks what encryption and decryption have in common; tag is in bytes.
func gcm(block cipher.Block, iv, additional, data []byte, tagBits int) (aead cipher.AEAD, tag int, err error) {
	switch tagBits {
	case 32, 64, 96, 104, 112, 120, 128:
	default:
		return nil, 0, operationError("the tag of AES-GCM has 32, 64, 96, 104, 112, 120 or 128 bits")
	}
	if len(data) > maxGCMBytes || len(additional) > maxGCMBytes {
		return nil, 0, operationError("AES-GCM takes up to %d bytes here", maxGCMBytes)
	}
	aead, err = cipher.NewGCMWithNonceSize(block, len(iv))
	if err != nil {
		return nil, 0, operationError("the iv of AES-GCM is empty")
	}
	return aead, tagBits / 8, nil
}

// encryptGCM cuts the whole tag to the length that is asked for: that is what a shorter one is.
func encryptGCM(block cipher.Block, iv, additional, data []byte, tagBits int) ([]byte, error) {
	aead, tag, err := gcm(block, iv, additional, data, tagBits)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, iv, data, additional)[:len(data)+tag], nil
}

// decryptGCM: the standard library opens with whole tags only. A shorter one is compared with the start of the tag that
// the plaintext seals to; the key stream is its own inverse.
func decryptGCM(block cipher.Block, iv, additional, data []byte, tagBits int) ([]byte, error) {
	aead, tag, err := gcm(block, iv, additional, data, tagBits)
	if err != nil {
		return nil, err
	}
	n := len(data) - tag
	if n < 0 {
		return nil, operationError("the data is shorter than its tag")
	}
	if tag == aead.Overhead() {
		out, err := aead.Open(nil, iv, data, additional)
		if err != nil {
			return nil, errDecrypt
		}
		return out, nil
	}
	plain := aead.Seal(nil, iv, data[:n], nil)[:n]
	sealed := aead.Seal(nil, iv, plain, additional)
	if subtle.ConstantTimeCompare(sealed[n:n+tag], data[n:]) != 1 {
		return nil, errDecrypt
	}
	return plain, nil
}

package webcrypto

import "encoding/hex"

// smallOrder reports whether an encoded point of Ed25519 is one of those whose order divides 8, in any encoding. With
// such a point as key or commitment a signature says nothing.
func smallOrder(point []byte) bool {
	y := [okpBytes]byte(point)
	y[okpBytes-1] &= 0x7f // the sign of x
	return smallOrderY[y]
}

// smallOrderY are the y coordinates of these points, little-endian: 0, 1, -1, the two of order 8, and p and p+1, which
// stand for 0 and 1.
var smallOrderY = func() map[[okpBytes]byte]bool {
	set := map[[okpBytes]byte]bool{}
	for _, text := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			panic(err) // the texts are constant
		}
		set[[okpBytes]byte(b)] = true
	}
	return set
}()

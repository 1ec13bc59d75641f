package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"

	"edged/internal/fault"
)

// Names of errors that leave this package: ErrLost is a box whose key is not in the ring, ErrDamaged one that does not
// open under its key and context.
var (
	ErrLost    = fault.Name(fault.Conflict, "seal_key_missing", 208)
	ErrDamaged = fault.Name(fault.Conflict, "seal_damaged", 209)
)

// Box is one sealed value: a version byte, the id of its key, a nonce, and the encrypted value with its tag. It may be
// stored and shown to anyone who may know how long the value is.
type Box []byte

const (
	boxVersion = 1
	idBytes    = 8
	nonceBytes = 12
	boxHead    = 1 + idBytes + nonceBytes
	tagBytes   = 16
)

// KeyID returns the id of the key that b was sealed with, "" if b is no box.
func (b Box) KeyID() string {
	if len(b) < boxHead+tagBytes || b[0] != boxVersion {
		return ""
	}
	return hex.EncodeToString(b[1 : 1+idBytes])
}

// Seal encrypts plain under the ring's current key for the context, whose parts say what the value is and whom it belongs
// to. Nonces are random: one key may seal 2^32 values before it has to be rotated.
func (r *Ring) Seal(plain []byte, context ...string) (Box, error) {
	k := r.current()
	box := make(Box, boxHead, boxHead+len(plain)+tagBytes)
	box[0] = boxVersion
	copy(box[1:], k.id[:])
	_, _ = rand.Read(box[1+idBytes : boxHead]) // never fails: it ends the program instead
	aead, err := newAEAD(k)
	if err != nil {
		return nil, err
	}
	return aead.Seal(box, box[1+idBytes:boxHead], plain, bind(box[:1+idBytes], context)), nil
}

// Open decrypts what Seal made under the same context. The caller owns the result. The errors: ErrLost, ErrDamaged.
func (r *Ring) Open(b Box, context ...string) ([]byte, error) {
	if b.KeyID() == "" {
		return nil, ErrDamaged.New("seal.Open", "this is no sealed value")
	}
	k, ok := r.key([idBytes]byte(b[1 : 1+idBytes]))
	if !ok {
		return nil, ErrLost.Newf("seal.Open", "the key %s is not in the node key file", b.KeyID())
	}
	aead, err := newAEAD(k)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, b[1+idBytes:boxHead], b[boxHead:], bind(b[:1+idBytes], context))
	if err != nil {
		return nil, ErrDamaged.New("seal.Open", "a sealed value is damaged, or belongs elsewhere")
	}
	return plain, nil
}

func newAEAD(k key) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.secret[:])
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "seal", err)
	}
	aead, err := cipher.NewGCM(block)
	return aead, fault.Wrap(fault.Internal, "seal", err)
}

// bind joins parts so that different parts never give the same bytes.
func bind(head []byte, parts []string) []byte {
	out := append([]byte(nil), head...)
	for _, p := range parts {
		out = binary.BigEndian.AppendUint32(out, uint32(len(p)))
		out = append(out, p...)
	}
	return out
}

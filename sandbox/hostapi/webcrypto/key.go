package webcrypto

// Type is the type of a key.
type Type uint8

// The types. The prelude knows them by number.
const (
	Secret Type = iota
	Public
	Private
)

// Key is a key's material. Its Data is, by the algorithm: the bytes of a secret; PKCS #1 for RSA; for the curves the
// private scalar or seed, if it is a private key, and behind it the public key (an uncompressed point, or 32 bytes).
type Key struct {
	Type Type
	Data []byte
}

// Params is what an algorithm needs to know beside the key's material.
type Params struct {
	Algorithm Algorithm
	Hash      Hash  // RSA, HMAC, ECDSA, HKDF, PBKDF2
	Curve     Curve // ECDSA, ECDH
}

// Stored is the key as the guest keeps it: a byte for the type, then the material.
func (k Key) Stored() []byte { return append([]byte{byte(k.Type)}, k.Data...) }

// Load reads what Stored gave; it keeps stored. ok is false for anything that cannot be a key of this algorithm; what is
// inside is checked when it is used.
func Load(p Params, stored []byte) (k Key, ok bool) {
	if len(stored) == 0 || stored[0] > byte(Private) {
		return Key{}, false
	}
	k = Key{Type: Type(stored[0]), Data: stored[1:]}
	asymmetric := p.Algorithm <= X25519
	if asymmetric == (k.Type == Secret) {
		return Key{}, false
	}
	switch {
	case p.Algorithm.isEC():
		if !p.Curve.Valid() {
			return Key{}, false
		}
		n := p.Curve.bytes()
		want := 1 + 2*n
		if k.Type == Private {
			want += n
		}
		ok = len(k.Data) == want
	case p.Algorithm.isOKP():
		ok = len(k.Data) == 32 && k.Type == Public || len(k.Data) == 64 && k.Type == Private
	case p.Algorithm.isAES():
		ok = len(k.Data) == 16 || len(k.Data) == 24 || len(k.Data) == 32
	default:
		ok = len(k.Data) <= MaxSecretBytes
	}
	return k, ok
}

// maxEncodedBytes bounds the keys of pairs in their binary formats: an RSA private key of maxRSABits has 4.7 KB, and what
// checks it takes time with the third power.
const maxEncodedBytes = 6 << 10

// MaxSecretBytes bounds the secrets of HMAC, HKDF and PBKDF2, and keys in any format.
const MaxSecretBytes = 1 << 20

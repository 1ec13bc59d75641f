package artifact

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// The index. Names of tenants and UIDs stand behind their length, so that none is a prefix of another.
//
//	h digest tenant         the tenant holds the blob; value: since when nothing needs it, Unix seconds
//	r digest tenant uid     the Resource refers to the blob
//	u uid digest            the same, found from the Resource
//	x uid                   the custody record (JSON)
const (
	holdingPrefix   = 'h'
	referencePrefix = 'r'
	byUIDPrefix     = 'u'
	custodyPrefix   = 'x'
)

// Digest is a SHA-256.
type Digest [32]byte

// ParseDigest reads 64 lower-case hex digits.
func ParseDigest(s string) (d Digest, ok bool) {
	if len(s) != 64 {
		return d, false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return d, false
		}
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err == nil
}

// String returns the digest as 64 lower-case hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

func appendName(key []byte, name string) []byte {
	key = binary.BigEndian.AppendUint16(key, uint16(len(name)))
	return append(key, name...)
}

func holdingKey(d Digest, tenant string) []byte {
	return appendName(append([]byte{holdingPrefix}, d[:]...), tenant)
}

// referencesPrefix is what the keys of all references of one tenant to one blob start with.
func referencesPrefix(d Digest, tenant string) []byte {
	return appendName(append([]byte{referencePrefix}, d[:]...), tenant)
}

func referenceKey(d Digest, tenant, uid string) []byte {
	return appendName(referencesPrefix(d, tenant), uid)
}

func blobsOfPrefix(uid string) []byte { return appendName([]byte{byUIDPrefix}, uid) }

func blobOfKey(uid string, d Digest) []byte { return append(blobsOfPrefix(uid), d[:]...) }

func custodyKey(uid string) []byte { return appendName([]byte{custodyPrefix}, uid) }

func encodeTime(t time.Time) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(t.Unix()))
}

func decodeTime(b []byte) time.Time {
	if len(b) != 8 {
		return time.Time{}
	}
	return time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
}

// maxNameBytes bounds tenants and UIDs: opaque byte strings of at most 1,020 bytes.
const maxNameBytes = 1020

// any reports whether a key starts with prefix.
func (s *Store) any(prefix []byte) (bool, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return false, err
	}
	found := it.First()
	return found, it.Close()
}

// after returns the first key behind all that start with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

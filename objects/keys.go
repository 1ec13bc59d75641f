package objects

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
)

// The first byte of a key in Pebble says what it holds. All numbers in keys are big-endian; a bucket's number is never used
// twice.
const (
	catalogClass = 'c' // + uid: a bucket
	dyingClass   = 'x' // + bucket number: a deleted bucket whose contents are not all removed
	usageClass   = 'n' // + bucket number: what it holds
	headClass    = 'o' // + bucket number, key: an object, all but its body
	inlineClass  = 'i' // + bucket number, generation: a small body
	blobClass    = 'b' // + blob: size and checksums of a file. A file without it is nobody's
	uploadClass  = 'u' // + bucket number, upload: a multipart upload
	partClass    = 'p' // + bucket number, upload, part number
	garbageClass = 'g' // + instant, generation: files that nothing names any more
	systemClass  = 's' // + what: of the whole store
)

var (
	lastNumberKey = []byte{systemClass, 'n'} // the last bucket number given out
	cursorKey     = []byte{systemClass, 'c'} // the secret of cursors
	scrubbedKey   = []byte{systemClass, 's'} // where the background scrub has got to
)

// id names a generation of an object, a file, or an upload: 48 bits of milliseconds, then randomness, so that files written one
// after the other lie together in Pebble, and no restart or restore repeats one.
type id [16]byte

func newID(nowMs int64) (i id) {
	binary.BigEndian.PutUint64(i[:], uint64(nowMs)<<16)
	rand.Read(i[6:]) // never fails: the runtime ends the process instead
	return i
}

func (i id) String() string { return hex.EncodeToString(i[:]) }

// folder is the file's folder: the last byte, which is random.
func (i id) folder() string { return hex.EncodeToString(i[15:]) }

// parseID reads an id as String writes it.
func parseID(s string) (i id, ok bool) {
	if len(s) != 2*len(i) {
		return i, false
	}
	_, err := hex.Decode(i[:], []byte(s))
	return i, err == nil && i.String() == s
}

func bucketKey(class byte, num uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 64), class), num)
}

// bucketEnd is the bound behind all keys of a class and bucket.
func bucketEnd(class byte, num uint64) []byte { return bucketKey(class, num+1) }

const bucketKeyLen = 1 + 8

func catalogKey(uid string) []byte { return append([]byte{catalogClass}, uid...) }

func headKey(num uint64, key string) []byte { return append(bucketKey(headClass, num), key...) }

func inlineKey(num uint64, gen id) []byte { return append(bucketKey(inlineClass, num), gen[:]...) }

func blobKey(i id) []byte { return append([]byte{blobClass}, i[:]...) }

func uploadKey(num uint64, upload id) []byte {
	return append(bucketKey(uploadClass, num), upload[:]...)
}

func partsKey(num uint64, upload id) []byte { return append(bucketKey(partClass, num), upload[:]...) }

func partKey(num uint64, upload id, part int) []byte {
	return binary.BigEndian.AppendUint16(partsKey(num, upload), uint16(part))
}

// partNumber returns the number in a part's key.
func partNumber(k []byte) int { return int(binary.BigEndian.Uint16(k[len(k)-2:])) }

func garbageKey(ms int64, gen id) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{garbageClass}, uint64(ms)), gen[:]...)
}

// readGarbageKey returns the instant and the generation of a garbage key.
func readGarbageKey(k []byte) (ms int64, gen id, ok bool) {
	if len(k) != 1+8+len(gen) {
		return 0, gen, false
	}
	return int64(binary.BigEndian.Uint64(k[1:])), id(k[9:]), true
}

package objects

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
)

// errRecord is the end of whatever is not a record: it is reported and left as it is.
var errRecord = errors.New("unreadable record")

const recordVersion = 1

// sum is BLAKE3 of a body, or of the sums of the parts.
type sum [32]byte

// How a body is stored.
const (
	inlineBody   = iota // in Pebble, under the generation
	fileBody            // in one file, named by the generation
	manifestBody        // in the files of parts
)

// head is an object, all but its body.
type head struct {
	gen      id
	kind     byte
	size     int64
	uploaded int64 // Unix milliseconds
	sum      sum
	ctype    string // "" if none was given
	partLen  int64  // length of every file but the last
	blobs    []id   // files in order, none for an inline body
}

// etag is the strong validator: of the bytes, or of the bytes and where the parts end.
func (h *head) etag() string {
	if h.kind == manifestBody {
		return h.sum.String() + "-" + strconv.Itoa(len(h.blobs))
	}
	return h.sum.String()
}

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// at returns the file that holds the byte at off, where the file begins, and its length. off is inside the body.
func (h *head) at(off int64) (blob int, start, length int64) {
	last := len(h.blobs) - 1
	if blob = last; last > 0 && off/h.partLen < int64(last) {
		blob = int(off / h.partLen)
	}
	start = int64(blob) * h.partLen
	if blob == last {
		return blob, start, h.size - start
	}
	return blob, start, h.partLen
}

func appendHead(dst []byte, h *head) []byte {
	dst = append(dst, recordVersion, h.kind)
	dst = append(dst, h.gen[:]...)
	dst = append(dst, h.sum[:]...)
	dst = binary.AppendUvarint(dst, uint64(h.size))
	dst = binary.AppendUvarint(dst, uint64(h.uploaded))
	dst = binary.AppendUvarint(dst, uint64(len(h.ctype)))
	dst = append(dst, h.ctype...)
	if h.kind == manifestBody {
		dst = binary.AppendUvarint(dst, uint64(h.partLen))
		dst = appendIDs(dst, h.blobs)
	}
	return dst
}

// readHead reads a record; the strings and ids are copies.
func readHead(b []byte) (*head, error) {
	r := reader{b, true}
	h := &head{}
	r.version()
	h.kind = r.byte()
	copy(h.gen[:], r.bytes(len(h.gen)))
	copy(h.sum[:], r.bytes(len(h.sum)))
	h.size = r.int(MaxObjectBytes)
	h.uploaded = r.int(math.MaxInt64)
	h.ctype = string(r.bytes(int(r.int(MaxContentTypeChars * 4))))
	switch h.kind {
	case inlineBody:
		r.ok = r.ok && h.size <= inlineBytes
	case fileBody:
		h.blobs, h.partLen = []id{h.gen}, h.size
	case manifestBody:
		h.partLen = r.int(MaxObjectBytes)
		h.blobs = r.ids(MaxParts)
		r.ok = r.ok && h.fits()
	default:
		r.ok = false
	}
	return h, r.end()
}

// fits reports whether the lengths of a manifest add up.
func (h *head) fits() bool {
	n := int64(len(h.blobs))
	if n <= 1 {
		return n == 1 && h.partLen == h.size
	}
	return h.partLen > 0 && h.partLen*(n-1) <= h.size
}

// blob is what is known of a file.
type blob struct {
	size int64
	crcs []uint32 // CRC32C of each started MiB
}

func blocks(size int64) int { return int((size + blockBytes - 1) / blockBytes) }

func appendBlob(dst []byte, b *blob) []byte {
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(b.size))
	for _, c := range b.crcs {
		dst = binary.BigEndian.AppendUint32(dst, c)
	}
	return dst
}

func readBlob(b []byte) (*blob, error) {
	r := reader{b, true}
	r.version()
	out := &blob{size: r.int(MaxObjectBytes)}
	raw := r.bytes(4 * blocks(out.size))
	if r.ok {
		out.crcs = make([]uint32, blocks(out.size))
		for i := range out.crcs {
			out.crcs[i] = binary.BigEndian.Uint32(raw[4*i:])
		}
	}
	return out, r.end()
}

// upload is a multipart upload without its parts.
type upload struct {
	key     string
	ctype   string
	created int64 // Unix milliseconds
	touched int64 // when the last part was stored
}

func appendUpload(dst []byte, u *upload) []byte {
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(u.created))
	dst = binary.AppendUvarint(dst, uint64(u.touched))
	dst = binary.AppendUvarint(dst, uint64(len(u.ctype)))
	dst = append(dst, u.ctype...)
	return append(dst, u.key...)
}

func readUpload(b []byte) (*upload, error) {
	r := reader{b, true}
	r.version()
	u := &upload{created: r.int(math.MaxInt64), touched: r.int(math.MaxInt64)}
	u.ctype = string(r.bytes(int(r.int(MaxContentTypeChars * 4))))
	u.key = string(r.bytes(len(r.b)))
	return u, r.end()
}

// part is a stored part; its body is the file blob.
type part struct {
	blob     id
	size     int64
	uploaded int64
	sum      sum
}

func appendPart(dst []byte, p *part) []byte {
	dst = append(dst, recordVersion)
	dst = append(dst, p.blob[:]...)
	dst = append(dst, p.sum[:]...)
	dst = binary.AppendUvarint(dst, uint64(p.size))
	return binary.AppendUvarint(dst, uint64(p.uploaded))
}

func readPart(b []byte) (*part, error) {
	r := reader{b, true}
	r.version()
	p := &part{}
	copy(p.blob[:], r.bytes(len(p.blob)))
	copy(p.sum[:], r.bytes(len(p.sum)))
	p.size = r.int(MaxObjectBytes)
	p.uploaded = r.int(math.MaxInt64)
	return p, r.end()
}

// usage is what a bucket holds.
type usage struct {
	objects int64
	uploads int64
	bytes   int64 // what counts for the quota
}

func appendUsage(dst []byte, u usage) []byte {
	dst = append(dst, recordVersion)
	for _, n := range []int64{u.objects, u.uploads, u.bytes} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

func readUsage(b []byte) (usage, error) {
	r := reader{b, true}
	r.version()
	u := usage{objects: r.int(math.MaxInt64), uploads: r.int(math.MaxInt64), bytes: r.int(math.MaxInt64)}
	return u, r.end()
}

// catalog is a bucket as the catalog knows it.
type catalog struct {
	num     uint64
	epoch   uint64
	created int64
}

func appendCatalog(dst []byte, c catalog) []byte {
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, c.num)
	dst = binary.AppendUvarint(dst, c.epoch)
	return binary.AppendUvarint(dst, uint64(c.created))
}

func readCatalog(b []byte) (catalog, error) {
	r := reader{b, true}
	r.version()
	c := catalog{num: uint64(r.int(math.MaxInt64)), epoch: r.uvarint(), created: r.int(math.MaxInt64)}
	return c, r.end()
}

func appendIDs(dst []byte, ids []id) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	for _, i := range ids {
		dst = append(dst, i[:]...)
	}
	return dst
}

// readGarbage reads the files of a garbage record.
func readGarbage(b []byte) ([]id, error) {
	r := reader{b, true}
	r.version()
	ids := r.ids(MaxParts)
	return ids, r.end()
}

func appendGarbage(dst []byte, ids []id) []byte { return appendIDs(append(dst, recordVersion), ids) }

// reader takes a record apart; after the first fault it returns zeros and end says so.
type reader struct {
	b  []byte
	ok bool
}

func (r *reader) end() error {
	if !r.ok || len(r.b) != 0 {
		return errRecord
	}
	return nil
}

func (r *reader) version() { r.ok = r.byte() == recordVersion && r.ok }

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// bytes returns the next n bytes, a part of the record.
func (r *reader) bytes(n int) []byte {
	if !r.ok || n < 0 || n > len(r.b) {
		r.ok = false
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if !r.ok || n <= 0 {
		r.ok = false
		return 0
	}
	r.b = r.b[n:]
	return v
}

// int returns a number from 0 to most.
func (r *reader) int(most int64) int64 {
	v := r.uvarint()
	if v > uint64(most) {
		r.ok = false
		return 0
	}
	return int64(v)
}

func (r *reader) ids(most int64) []id {
	n := r.int(most)
	raw := r.bytes(int(n) * len(id{}))
	if !r.ok {
		return nil
	}
	out := make([]id, n)
	for i := range out {
		out[i] = id(raw[i*len(id{}):])
	}
	return out
}

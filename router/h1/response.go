package h1

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// AppendStatus appends the status line. status has three digits.
func AppendStatus(dst []byte, status int) []byte {
	if status == http.StatusOK {
		return append(dst, "HTTP/1.1 200 OK\r\n"...)
	}
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, http.StatusText(status)...)
	return append(dst, "\r\n"...)
}

// AppendDate appends a Date field.
func AppendDate(dst []byte, now time.Time) []byte {
	dst = append(dst, "Date: "...)
	dst = now.UTC().AppendFormat(dst, http.TimeFormat)
	return append(dst, "\r\n"...)
}

// AppendField appends one field whose name and value are known to be sound.
func AppendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// AppendLength appends a Content-Length field.
func AppendLength(dst []byte, n int64) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

// Fields is what the node needs to know of a response's fields.
type Fields struct {
	Date   bool  // the worker sent a Date of its own
	Length int64 // the Content-Length that the worker sent, -1 if none or not a number; it is not appended
}

// AppendFields checks packed fields as event.Response has them and appends those that may pass as header lines: not
// Edged-*, not what speaks of one connection, not Content-Length. ok is false if packed is not well formed; dst must
// then be thrown away, because a response built from it could be split.
func AppendFields(dst, packed []byte) (_ []byte, f Fields, ok bool) {
	f.Length = -1
	for len(packed) > 0 {
		i := bytes.IndexByte(packed, '\n')
		if i <= 0 {
			return dst, f, false
		}
		name := packed[:i]
		packed = packed[i+1:]
		if i = bytes.IndexByte(packed, '\n'); i < 0 {
			return dst, f, false
		}
		value := packed[:i]
		packed = packed[i+1:]
		for _, c := range name {
			if lower[c] != c || c == 0 {
				return dst, f, false
			}
		}
		if !validValue(value) {
			return dst, f, false
		}
		switch string(name) {
		case "content-length":
			if n, ok := parseLength(value); ok {
				f.Length = n
			}
			continue
		case "date":
			f.Date = true
		}
		if hopByHop(name) || ours(name) {
			continue
		}
		dst = append(dst, name...)
		dst = append(dst, ": "...)
		dst = append(dst, value...)
		dst = append(dst, "\r\n"...)
	}
	return dst, f, true
}

// ChunkRoom is how many bytes PutChunkSize needs before a chunk's data.
const ChunkRoom = 10

// PutChunkSize writes the size line of a chunk of n > 0 bytes (n < 2^32) so that it ends where the data starts: at the end
// of room, which has ChunkRoom bytes. It returns where in room the line starts.
func PutChunkSize(room []byte, n int) (start int) {
	const digits = "0123456789abcdef"
	i := ChunkRoom - 2
	room[i], room[i+1] = '\r', '\n'
	for ; n > 0; n >>= 4 {
		i--
		room[i] = digits[n&15]
	}
	return i
}

package h1

import (
	"bytes"
)

// LengthChunked is the Length of a body whose end only its framing tells.
const LengthChunked = -1

// Head is one request head. Its slices point into the parsed bytes and live as long as these.
type Head struct {
	Method []byte // a token, case as sent
	Path   []byte // path and query as sent, starting with '/' (or '?', or empty, after an absolute target's host)
	Host   []byte // value of the one Host field: name or address, perhaps a port
	Minor  int    // 1 or 0: the protocol is HTTP/1.Minor

	Length    int64 // bytes of the body, LengthChunked, or 0
	KeepAlive bool  // the client wants to use the connection again
	Continue  bool  // the client waits for 100 before it sends the body

	Explain bool // an Edged-Explain field stood there: who asks is for the caller to judge

	// What a trusted proxy said, nil and false if nothing or if it was not asked for.
	ForwardedProto              []byte
	ForwardedFor, ForwardedHost bool
}

// Parse reads a complete head (as Scanner measured it) and appends its fields to dst, packed as event.Request has them.
// Fields of one connection, Edged-* and Expect are left out; so are those that tell where a request came from, unless
// forwarded asks for them. It returns ErrBad or ErrNotImplemented; the head must then not be used.
func (h *Head) Parse(b, dst []byte, forwarded bool) ([]byte, error) {
	*h = Head{}
	if b[0] == '\r' {
		b = b[2:]
	}
	i := bytes.IndexByte(b, '\n')
	if i < 1 {
		return dst, errRequestLine
	}
	target, err := h.requestLine(b[:i-1])
	if err != nil {
		return dst, err
	}
	f := fieldParser{h: h, forwarded: forwarded, start: len(dst)}
	if dst, err = f.parse(b[i+1:], dst); err != nil {
		return dst, err
	}
	if err := h.place(target); err != nil {
		return dst, err
	}
	return dst, h.possible(f.upgrade)
}

func (h *Head) requestLine(line []byte) (target []byte, err error) {
	sp := bytes.IndexByte(line, ' ')
	if sp <= 0 {
		return nil, errRequestLine
	}
	h.Method = line[:sp]
	for _, c := range h.Method {
		if !isToken(c) {
			return nil, errRequestLine
		}
	}
	rest := line[sp+1:]
	if sp = bytes.IndexByte(rest, ' '); sp <= 0 {
		return nil, errRequestLine
	}
	switch string(rest[sp+1:]) {
	case "HTTP/1.1":
		h.Minor = 1
	case "HTTP/1.0":
	default:
		return nil, errVersion
	}
	h.KeepAlive = h.Minor == 1
	return rest[:sp], nil
}

// place splits the target: origin form as it is, absolute form only if it names the same host as the Host field.
func (h *Head) place(target []byte) error {
	for _, c := range target {
		if !targetByte[c] {
			return errTarget
		}
	}
	if len(target) > 0 && target[0] == '/' {
		h.Path = target
		return nil
	}
	if h.takesNoPath() {
		return nil
	}
	var rest []byte
	switch {
	case len(target) > 7 && bytes.EqualFold(target[:7], []byte("http://")):
		rest = target[7:]
	case len(target) > 8 && bytes.EqualFold(target[:8], []byte("https://")):
		rest = target[8:]
	default:
		return errTarget
	}
	end := bytes.IndexAny(rest, `/?\`)
	if end < 0 {
		end = len(rest)
	}
	if !bytes.EqualFold(rest[:end], h.Host) {
		return errHostMismatch
	}
	h.Path = rest[end:]
	if len(h.Path) > 0 && h.Path[0] == '\\' {
		return errTarget
	}
	return nil
}

// takesNoPath is true of methods whose target has another form; possible refuses them all.
func (h *Head) takesNoPath() bool {
	switch string(h.Method) {
	case "CONNECT", "TRACE", "TRACK":
		return true
	}
	return false
}

// possible refuses what nothing behind this listener can take: methods that no Request may carry, and upgrades.
func (h *Head) possible(upgrade bool) error {
	if upgrade || h.takesNoPath() {
		return ErrNotImplemented
	}
	return nil
}

// validHost checks name or address and port. It says nothing about whether the name exists.
func validHost(v []byte) bool {
	name, port := SplitPort(v)
	if len(name) == 0 || len(name) > 255 || len(port) > 6 || len(port) > 0 && !validPort(port[1:]) {
		return false
	}
	if name[0] == '[' {
		if name[len(name)-1] != ']' {
			return false
		}
		name = name[1 : len(name)-1]
		return len(name) > 0 && bytes.IndexFunc(name, func(r rune) bool {
			return r != ':' && r != '.' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'f')
		}) < 0
	}
	for _, c := range name {
		if l := lower[c] | 0x20; (l < 'a' || l > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// validPort takes what a URL takes: nothing, or a number of 16 bits. port has at most five bytes.
func validPort(port []byte) bool {
	n := 0
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return n <= 0xffff
}

// SplitPort splits a Host value into name and port; the port keeps its colon, and is empty if there is none.
func SplitPort(host []byte) (name, port []byte) {
	if bytes.IndexByte(host, ':') < 0 { // nearly always, and this direction is searched many bytes at a time
		return host, nil
	}
	i := bytes.LastIndexByte(host, ':')
	if i < bytes.LastIndexByte(host, ']') {
		return host, nil
	}
	return host[:i], host[i:]
}

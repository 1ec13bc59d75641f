package whatwgurl

import "strconv"

// MaxBytes is the length of the longest input that is parsed; a longer one is a failure.
const MaxBytes = 2 << 20

// noPort stands for a null port.
const noPort = -1

// URL is a URL record. The zero value is not a URL: Parse makes one. Not safe for concurrent change.
type URL struct {
	scheme   string // lower-case, without colon
	username string
	password string
	host     string // serialised
	path     string // serialised: every segment with a slash before it, or the opaque path
	query    string // without question mark
	fragment string // without hash sign
	port     int    // noPort if null

	hasHost     bool // an empty host differs from none
	opaque      bool // the path is opaque
	hasQuery    bool
	hasFragment bool
}

// Parts says where the parts of a URL are in its serialisation, in bytes. A part that is absent is an empty range.
type Parts struct {
	ProtocolEnd int32 // after the colon
	UserStart   int32
	UserEnd     int32 // a password begins one after it
	PasswordEnd int32
	HostStart   int32
	HostEnd     int32 // a port begins one after it
	PathStart   int32
	SearchStart int32 // of the question mark; HashStart if there is none
	HashStart   int32 // of the hash sign; the length if there is none
}

// AppendTo appends the serialised URL to dst and says where its parts are, counted from the end of the given dst.
func (u *URL) AppendTo(dst []byte) ([]byte, Parts) {
	var p Parts
	base := len(dst)
	at := func() int32 { return int32(len(dst) - base) }
	dst = append(append(dst, u.scheme...), ':')
	p.ProtocolEnd = at()
	if u.hasHost {
		dst = append(dst, '/', '/')
		p.UserStart = at()
		dst = append(dst, u.username...)
		p.UserEnd = at()
		if u.password != "" {
			dst = append(append(dst, ':'), u.password...)
		}
		p.PasswordEnd = at()
		if u.username != "" || u.password != "" {
			dst = append(dst, '@')
		}
		p.HostStart = at()
		dst = append(dst, u.host...)
		p.HostEnd = at()
		if u.port != noPort {
			dst = strconv.AppendInt(append(dst, ':'), int64(u.port), 10)
		}
	} else {
		n := at()
		p.UserStart, p.UserEnd, p.PasswordEnd, p.HostStart, p.HostEnd = n, n, n, n, n
		if !u.opaque && len(u.path) > 1 && u.path[0] == '/' && u.path[1] == '/' {
			dst = append(dst, '/', '.') // else the path would be read as a host
		}
	}
	p.PathStart = at()
	dst = append(dst, u.path...)
	p.SearchStart = at()
	if u.hasQuery {
		dst = append(append(dst, '?'), u.query...)
	}
	p.HashStart = at()
	if u.hasFragment {
		dst = append(append(dst, '#'), u.fragment...)
	}
	return dst, p
}

// special reports whether a scheme is one of those with rules of their own, and its default port, noPort for file.
func special(scheme string) (port int, ok bool) {
	switch scheme {
	case "http", "ws":
		return 80, true
	case "https", "wss":
		return 443, true
	case "ftp":
		return 21, true
	case "file":
		return noPort, true
	}
	return noPort, false
}

func (u *URL) isSpecial() bool {
	_, ok := special(u.scheme)
	return ok
}

func (u *URL) setPort(port int) {
	u.port = port
	if def, ok := special(u.scheme); ok && def == port {
		u.port = noPort
	}
}

func (u *URL) includesCredentials() bool { return u.username != "" || u.password != "" }

func (u *URL) cannotHaveCredentials() bool { return u.host == "" || u.scheme == "file" }

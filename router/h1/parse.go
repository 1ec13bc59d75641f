package h1

import "bytes"

// fieldParser reads the header lines of one head.
type fieldParser struct {
	h         *Head
	forwarded bool
	start     int // where the packed fields start in the destination

	hosts, lengths, codings int
	length                  int64
	upgrades, asks          bool   // an Upgrade field that matters; Connection asks for an upgrade
	close, keep             bool   // Connection said so
	named                   []byte // Connection names other fields: the whole value, to be gone through at the end
	several                 bool   // more than one Connection field named other fields
	upgrade                 bool
}

func (f *fieldParser) parse(b, dst []byte) ([]byte, error) {
	for len(b) > 2 {
		i := bytes.IndexByte(b, '\n')
		if i < 1 || b[i-1] != '\r' {
			return dst, errLineTerminator
		}
		var err error
		if dst, err = f.field(b[:i-1], dst); err != nil {
			return dst, err
		}
		b = b[i+1:]
	}
	if string(b) != "\r\n" {
		return dst, errLineTerminator
	}
	return f.finish(dst)
}

// field reads one line and appends it to dst, unless it stays here.
func (f *fieldParser) field(line, dst []byte) ([]byte, error) {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return dst, errFieldName
	}
	value := trim(line[colon+1:])
	if !validValue(value) {
		return dst, errFieldValue
	}
	at := len(dst)
	dst, ok := appendLower(dst, line[:colon])
	if !ok {
		return dst, errFieldName // also a folded line: it starts with a space
	}
	pass, err := f.take(dst[at:], value)
	if err != nil || !pass {
		return dst[:at], err
	}
	dst = append(dst, '\n')
	dst = append(dst, value...)
	return append(dst, '\n'), nil
}

// take draws what the node itself needs from a field and says whether the worker sees it too.
func (f *fieldParser) take(name, value []byte) (pass bool, err error) {
	switch string(name) {
	case "host":
		if f.hosts++; f.hosts > 1 || !validHost(value) {
			return false, errHost
		}
		f.h.Host = value
		return true, nil
	case "content-length":
		var ok bool
		if f.length, ok = parseLength(value); !ok || f.lengths > 0 {
			return false, errFraming
		}
		f.lengths++
		return true, nil
	case "transfer-encoding":
		if f.codings++; f.codings > 1 || !equalFold(value, "chunked") {
			return false, errFraming
		}
		return false, nil
	case "connection":
		return false, f.connection(value)
	case "upgrade":
		// h2c is an offer that a server may ignore, and clients make it with every first request.
		f.upgrades = f.upgrades || !equalFold(value, "h2c")
		return false, nil
	case "expect":
		f.h.Continue = f.h.Continue || equalFold(value, "100-continue")
		return false, nil
	}
	if forwarding(name) {
		if f.forwarded {
			f.noteForwarded(name, value)
		}
		return f.forwarded, nil
	}
	if ours(name) {
		f.h.Explain = f.h.Explain || string(name) == "edged-explain"
		return false, nil
	}
	return !hopByHop(name), nil
}

func (f *fieldParser) noteForwarded(name, value []byte) {
	switch string(name) {
	case "x-forwarded-for":
		f.h.ForwardedFor = true
	case "x-forwarded-host":
		f.h.ForwardedHost = true
	case "x-forwarded-proto":
		f.h.ForwardedProto = value
	}
}

func (f *fieldParser) connection(value []byte) error {
	others := false
	for option := range bytes.SplitSeq(value, []byte{','}) {
		option = trim(option)
		switch {
		case len(option) == 0:
		case equalFold(option, "close"):
			f.close = true
		case equalFold(option, "keep-alive"):
			f.keep = true
		case equalFold(option, "upgrade"):
			f.asks = true
		default:
			others = true
		}
	}
	if others {
		f.several = f.several || f.named != nil
		f.named = value
	}
	return nil
}

// finish checks what only all fields together tell.
func (f *fieldParser) finish(dst []byte) ([]byte, error) {
	h := f.h
	switch {
	case f.hosts != 1:
		return dst, errHost
	case f.codings > 0 && (f.lengths > 0 || h.Minor == 0):
		return dst, errFraming
	case f.several:
		return dst, errFieldValue // nobody needs it, and it would need a list
	case f.codings > 0:
		h.Length = LengthChunked
	default:
		h.Length = f.length
	}
	h.KeepAlive = !f.close && (h.KeepAlive || f.keep)
	h.Continue = h.Continue && h.Minor == 1 && h.Length != 0
	f.upgrade = f.upgrades && f.asks && h.Minor == 1
	if f.named != nil {
		dst = f.dropNamed(dst)
	}
	return dst, nil
}

// dropNamed removes the fields that Connection names. Host and Content-Length stay: the node itself vouches for them.
func (f *fieldParser) dropNamed(dst []byte) []byte {
	kept := dst[:f.start]
	for rest := dst[f.start:]; len(rest) > 0; {
		nameEnd := bytes.IndexByte(rest, '\n')
		end := nameEnd + 1 + bytes.IndexByte(rest[nameEnd+1:], '\n') + 1
		name, field := rest[:nameEnd], rest[:end]
		rest = rest[end:]
		if string(name) != "host" && string(name) != "content-length" && f.names(name) {
			continue
		}
		kept = append(kept, field...) // never overtakes rest: both walk the same slice
	}
	return kept
}

func (f *fieldParser) names(name []byte) bool {
	for option := range bytes.SplitSeq(f.named, []byte{','}) {
		if bytes.EqualFold(trim(option), name) {
			return true
		}
	}
	return false
}

// parseLength reads a Content-Length: digits only, below 2^59, so that sums with it cannot overflow.
func parseLength(v []byte) (n int64, ok bool) {
	if len(v) == 0 || len(v) > 17 {
		return 0, false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

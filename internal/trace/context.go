package trace

import (
	"bytes"
	"encoding/hex"
	"strings"
)

// The names of the fields, as they stand in a packed header.
const (
	parentField = "traceparent"
	stateField  = "tracestate"
)

// Bits of Context.Flags.
const (
	sampledFlag = 1 << 0
	randomFlag  = 1 << 1 // the last 7 bytes of the trace's ID are random (Trace Context level 2)
)

// The limits of tracestate (Trace Context §3.3): members beyond 32 make it invalid; what is longer than 512 bytes need not
// be passed on whole.
const (
	maxStateMembers = 32
	maxStateBytes   = 512
	longMember      = 128 // bytes from which on a member goes first
	maxStateRead    = 8 << 10
)

// parentLen is the length of a traceparent of version 00.
const parentLen = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

// Context names one span of one trace (W3C Trace Context). The zero Context names none.
type Context struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
	State   string // tracestate, "" for none
}

// Valid reports whether c names a span.
func (c *Context) Valid() bool { return c.TraceID != ([16]byte{}) && c.SpanID != ([8]byte{}) }

// Sampled reports whether whoever made the span recorded it.
func (c *Context) Sampled() bool { return c.Flags&sampledFlag != 0 }

// Parse reads the two fields as they came; state may be empty. ok is false for a traceparent that is none: then the
// whole context is to be ignored. A tracestate that is malformed is left out, as the specification asks. Nothing of the
// arguments is kept.
func Parse(parent, state []byte) (c Context, ok bool) {
	if len(parent) < parentLen || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return Context{}, false
	}
	var version, flags [1]byte
	if !unhex(version[:], parent[:2]) || !unhex(c.TraceID[:], parent[3:35]) || !unhex(c.SpanID[:], parent[36:52]) || !unhex(flags[:], parent[53:55]) {
		return Context{}, false
	}
	// A later version may have more behind, after another dash; ff is no version.
	switch {
	case version[0] == 0xff, version[0] == 0 && len(parent) != parentLen, len(parent) > parentLen && parent[parentLen] != '-':
		return Context{}, false
	}
	c.Flags = flags[0] & (sampledFlag | randomFlag)
	if !c.Valid() {
		return Context{}, false
	}
	c.State = parseState(state)
	return c, true
}

// unhex decodes lower-case hexadecimal.
func unhex(dst, src []byte) bool {
	for i := range dst {
		hi, lo := nibble(src[2*i]), nibble(src[2*i+1])
		if hi > 15 || lo > 15 {
			return false
		}
		dst[i] = hi<<4 | lo
	}
	return true
}

func nibble(b byte) byte {
	switch {
	case b >= '0' && b <= '9':
		return b - '0'
	case b >= 'a' && b <= 'f':
		return b - 'a' + 10
	}
	return 255
}

// parseState returns what of a tracestate is passed on; "" if it is malformed.
func parseState(text []byte) string {
	if len(text) == 0 || len(text) > maxStateRead {
		return ""
	}
	var members []string
	size := 0
	for part := range bytes.SplitSeq(text, []byte{','}) {
		part = bytes.Trim(part, " \t")
		if len(part) == 0 {
			continue // empty members are allowed, and of no use
		}
		key, value, found := bytes.Cut(part, []byte{'='})
		if !found || !stateKey(key) || !stateValue(value) || len(members) == maxStateMembers {
			return ""
		}
		for _, m := range members {
			if other, _, _ := strings.Cut(m, "="); other == string(key) {
				return ""
			}
		}
		members = append(members, string(part))
		size += len(part) + 1
	}
	size-- // no comma behind the last
	for _, longOnly := range []bool{true, false} {
		for i := len(members) - 1; i >= 0 && size > maxStateBytes; i-- {
			if longOnly && len(members[i]) <= longMember {
				continue
			}
			size -= len(members[i]) + 1
			members = append(members[:i], members[i+1:]...)
		}
	}
	return strings.Join(members, ",")
}

// stateKey: a key, or a tenant's key with the name of its system behind an @ (Trace Context §3.3.1.3.1).
func stateKey(key []byte) bool {
	tenant, system, shared := bytes.Cut(key, []byte{'@'})
	if shared {
		return len(tenant) > 0 && len(tenant) <= 241 && keyBytes(tenant) && len(system) > 0 && len(system) <= 14 && isLower(system[0]) && keyBytes(system)
	}
	return len(key) > 0 && len(key) <= 256 && (isLower(key[0]) || isDigit(key[0])) && keyBytes(key)
}

func keyBytes(b []byte) bool {
	for _, c := range b {
		if !isLower(c) && !isDigit(c) && c != '_' && c != '-' && c != '*' && c != '/' {
			return false
		}
	}
	return true
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// stateValue: 1 to 256 printable characters without comma and equals sign; no space at the end, which trimming took.
func stateValue(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c > 0x7e || c == '=' {
			return false
		}
	}
	return len(b) > 0 && len(b) <= 256
}

// AppendParent appends c as a traceparent of version 00.
func (c *Context) AppendParent(dst []byte) []byte {
	dst = append(dst, "00-"...)
	dst = hex.AppendEncode(dst, c.TraceID[:])
	dst = append(dst, '-')
	dst = hex.AppendEncode(dst, c.SpanID[:])
	return hex.AppendEncode(append(dst, '-'), []byte{c.Flags})
}

// fromPacked finds the two fields in a packed header (event.Request). More than one traceparent is none; several
// tracestate fields are one list.
func fromPacked(packed []byte) (parent, state []byte) {
	seen := 0
	for len(packed) > 0 {
		name, rest, _ := bytes.Cut(packed, []byte{'\n'})
		value, rest, _ := bytes.Cut(rest, []byte{'\n'})
		packed = rest
		switch string(name) {
		case parentField:
			parent = value
			if seen++; seen > 1 {
				return nil, nil
			}
		case stateField:
			if state == nil {
				state = value
			} else if len(state) <= maxStateRead {
				state = append(append(state[:len(state):len(state)], ','), value...)
			}
		}
	}
	return parent, state
}

// FromPacked reads the trace context of a packed header (event.Request); ok is false if there is none that is valid.
func FromPacked(packed []byte) (c Context, ok bool) {
	parent, state := fromPacked(packed)
	if parent == nil {
		return Context{}, false
	}
	return Parse(parent, state)
}

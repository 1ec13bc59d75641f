package hostapi

import (
	"strings"

	"edged/sandbox/engine"
)

// maxHeaderBytes bounds a header value that is parsed.
const maxHeaderBytes = 64 << 10

// mimeType is a MIME type record of the MIME Sniffing standard.
type mimeType struct {
	essence string // type "/" subtype, lower case
	params  []mimeParam
}

type mimeParam struct{ name, value string }

func (m *mimeType) param(name string) (value string, ok bool) {
	for _, p := range m.params {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

// String serialises it.
func (m *mimeType) String() string {
	var b strings.Builder
	b.WriteString(m.essence)
	for _, p := range m.params {
		b.WriteString(";" + p.name + "=")
		if p.value != "" && isToken(p.value) {
			b.WriteString(p.value)
			continue
		}
		b.WriteByte('"')
		for i := 0; i < len(p.value); i++ {
			if c := p.value[i]; c == '"' || c == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(p.value[i])
		}
		b.WriteByte('"')
	}
	return b.String()
}

const httpSpace = "\t\n\r "

// parseMIME parses one MIME type; text holds a byte in each of its bytes (Latin-1).
func parseMIME(text string) (m mimeType, ok bool) {
	text = strings.Trim(text, httpSpace)
	head, rest, more := strings.Cut(text, ";")
	kind, sub, slash := strings.Cut(head, "/")
	sub = strings.TrimRight(sub, httpSpace)
	if !slash || !isToken(kind) || !isToken(sub) {
		return m, false
	}
	m.essence = asciiLower(kind) + "/" + asciiLower(sub)
	for more {
		rest = strings.TrimLeft(rest, httpSpace)
		end := strings.IndexAny(rest, ";=")
		if end < 0 {
			break
		}
		name := asciiLower(rest[:end])
		if rest[end] == ';' {
			rest = rest[end+1:]
			continue
		}
		var value string
		value, rest, more, ok = mimeValue(rest[end+1:])
		if _, known := m.param(name); ok && !known && isToken(name) && isQuotable(value) {
			m.params = append(m.params, mimeParam{name, value})
		}
	}
	return m, true
}

// mimeValue reads a parameter's value from the start of text, and what is behind the semicolon that ends it.
func mimeValue(text string) (value, rest string, more, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, more = strings.Cut(text, ";")
		value = strings.TrimRight(value, httpSpace)
		return value, rest, more, value != ""
	}
	value, rest = quotedString(text)
	_, rest, more = strings.Cut(rest, ";")
	return value, rest, more, true
}

// quotedString reads a quoted string at the start of text, and returns what is behind it. Its end may be missing.
func quotedString(text string) (value, rest string) {
	var b []byte
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return string(b), text[i+1:]
		case c == '\\' && i+1 < len(text):
			i++
			b = append(b, text[i])
		default:
			b = append(b, c)
		}
	}
	return string(b), ""
}

// extractMIME finds the MIME type that a whole Content-Type header means (Fetch, "extract a MIME type").
func extractMIME(header string) (m mimeType, ok bool) {
	charset, essence, carry := "", "", false
	for _, value := range splitHeader(header) {
		one, valid := parseMIME(value)
		if !valid || one.essence == "*/*" {
			continue
		}
		m, ok = one, true
		own, has := m.param("charset")
		switch {
		case m.essence != essence:
			charset, carry, essence = own, has, m.essence
		case !has && carry:
			m.params = append(m.params, mimeParam{"charset", charset})
		}
	}
	return m, ok
}

// splitHeader splits at the commas outside of quoted strings.
func splitHeader(header string) (values []string) {
	start := 0
	for i := 0; i < len(header); i++ {
		switch header[i] {
		case '"':
			_, rest := quotedString(header[i:])
			i = len(header) - len(rest) - 1
		case ',':
			values = append(values, strings.Trim(header[start:i], "\t "))
			start = i + 1
		}
	}
	return append(values, strings.Trim(header[start:], "\t "))
}

func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		if token[s[i]] == 0 {
			return false
		}
	}
	return s != ""
}

// isQuotable reports whether s may be the value of a parameter.
func isQuotable(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// mimeType(header): [serialised, essence, boundary or undefined] of a whole Content-Type header; undefined if it has none.
func hostMIMEType(in *engine.Instance, args []engine.Value) engine.Value {
	header, ok := in.AppendLatin1(nil, args[0])
	if !ok {
		return badArgument(in, "mimeType")
	}
	if len(header) > maxHeaderBytes {
		return engine.Undefined
	}
	m, ok := extractMIME(string(header))
	if !ok {
		return engine.Undefined
	}
	boundary := engine.Undefined
	if b, has := m.param("boundary"); has {
		boundary = in.NewLatin1([]byte(b))
	}
	return in.NewArray(in.NewLatin1([]byte(m.String())), in.NewLatin1([]byte(m.essence)), boundary)
}

package hostapi

import (
	"bytes"
	"strings"

	"edged/sandbox/engine"
)

// What a form may consist of; one that has more is refused like a malformed one.
const (
	maxFormParts    = 10_000
	maxPartHeaders  = 16 << 10 // bytes of the headers of one part
	maxFormBoundary = 256      // of a boundary; the standard's most is 70
)

// formPart is one part of a multipart/form-data body, which lies between from and to.
type formPart struct {
	name, filename, kind string
	isFile               bool
	from, to             int
}

// parseForm parses a multipart/form-data body. Between parts it is strict; an epilogue is ignored, and so are empty
// lines before the first boundary.
func parseForm(body []byte, boundary string) (parts []formPart, ok bool) {
	if boundary == "" || len(boundary) > maxFormBoundary {
		return nil, false
	}
	delimiter := []byte("\r\n--" + boundary)
	at := 0
	for bytes.HasPrefix(body[at:], crlf) {
		at += 2
	}
	if !bytes.HasPrefix(body[at:], delimiter[2:]) {
		return nil, false
	}
	at += len(delimiter) - 2
	for {
		if bytes.HasPrefix(body[at:], []byte("--")) {
			return parts, true
		}
		for at < len(body) && (body[at] == ' ' || body[at] == '\t') {
			at++
		}
		if !bytes.HasPrefix(body[at:], crlf) || len(parts) == maxFormParts {
			return nil, false
		}
		at += 2
		part, size, ok := parsePartHeaders(body[at:])
		if !ok {
			return nil, false
		}
		at += size
		end := bytes.Index(body[at:], delimiter)
		if end < 0 {
			return nil, false
		}
		part.from, part.to = at, at+end
		parts = append(parts, part)
		at += end + len(delimiter)
	}
}

var crlf = []byte("\r\n")

// parsePartHeaders reads the headers of a part and the empty line behind them; size is how many bytes that were.
func parsePartHeaders(b []byte) (part formPart, size int, ok bool) {
	b = b[:min(len(b), maxPartHeaders)]
	named := false
	part.kind = "text/plain"
	for {
		end := bytes.Index(b[size:], crlf)
		if end < 0 {
			return part, 0, false
		}
		line := b[size : size+end]
		size += end + 2
		if end == 0 {
			return part, size, named
		}
		name, value, colon := bytes.Cut(line, []byte(":"))
		if !colon || !isToken(string(name)) {
			return part, 0, false
		}
		text := strings.Trim(string(value), "\t ")
		switch asciiLower(string(name)) {
		case "content-disposition":
			if named = part.setDisposition(text); !named {
				return part, 0, false
			}
		case "content-type":
			part.kind = text
		}
	}
}

// setDisposition reads `form-data; name="a"; filename="b"`. In a quoted value nothing is escaped but the three
// characters that form serialisers write as %0A, %0D and %22.
func (p *formPart) setDisposition(text string) bool {
	kind, rest, more := strings.Cut(text, ";")
	if asciiLower(strings.Trim(kind, "\t ")) != "form-data" {
		return false
	}
	named := false
	for more {
		name, value, equals := strings.Cut(rest, "=")
		if !equals {
			return false
		}
		if strings.HasPrefix(value, `"`) {
			end := strings.IndexByte(value[1:], '"')
			if end < 0 {
				return false
			}
			value, rest = value[1:1+end], strings.TrimLeft(value[2+end:], "\t ")
			if more = rest != ""; more && rest[0] != ';' {
				return false
			}
			rest = strings.TrimPrefix(rest, ";")
		} else {
			value, rest, more = strings.Cut(value, ";")
			value = strings.TrimRight(value, "\t ")
		}
		switch asciiLower(strings.Trim(name, "\t ")) {
		case "name":
			p.name, named = formUnescape.Replace(value), true
		case "filename":
			p.filename, p.isFile = formUnescape.Replace(value), true
		}
	}
	return named
}

var formUnescape = strings.NewReplacer("%0A", "\n", "%0a", "\n", "%0D", "\r", "%0d", "\r", "%22", `"`)

// formParse(body, boundary): for every part its name, its file name or null, its type, and where its body begins and
// ends, all in one array; undefined if the body is malformed. boundary has only characters up to U+00FF.
func hostFormParse(in *engine.Instance, args []engine.Value) engine.Value {
	boundary, ok1 := in.AppendLatin1(nil, args[1])
	body, ok2 := in.Bytes(args[0])
	if !ok1 || !ok2 {
		return badArgument(in, "formParse")
	}
	parts, ok := parseForm(body, string(boundary))
	if !ok {
		return engine.Undefined
	}
	list := make([]engine.Value, 0, 5*len(parts))
	for _, p := range parts {
		filename := engine.Null
		if p.isFile {
			filename = in.NewString([]byte(p.filename))
		}
		list = append(list, in.NewString([]byte(p.name)), filename, in.NewLatin1([]byte(p.kind)), engine.Int(int32(p.from)), engine.Int(int32(p.to)))
	}
	return in.NewArray(list...)
}

package modgraph

import (
	"encoding/base64"
	"unicode/utf8"
)

// Load returns the JavaScript source that stands for the module at path: its own bytes, or a module whose default
// export is the text (a string) or the bytes (an ArrayBuffer). The slice may be the module's own bytes and must not be
// changed. The error is ErrSyntax for bytes that are not strictly valid UTF-8, ErrNotFound or ErrUnsupported for a path
// that Resolve would not have returned.
func (g *Graph) Load(path string) ([]byte, error) {
	m := g.byPath[path]
	if m == nil {
		return nil, ErrNotFound.Newf("modgraph.Load", "the bundle has no module %q", path)
	}
	switch m.MediaType {
	case TypeJavaScript:
		if !utf8.Valid(m.Bytes) {
			return nil, ErrSyntax.Newf("modgraph.Load", "module %q is not valid UTF-8", path)
		}
		return m.Bytes, nil
	case TypeText:
		if !utf8.Valid(m.Bytes) {
			return nil, ErrSyntax.Newf("modgraph.Load", "text module %q is not valid UTF-8", path)
		}
		return textSource(m.Bytes), nil
	case TypeBytes:
		return bytesSource(m.Bytes), nil
	case TypeWasm:
		return []byte(wasmSource), nil
	}
	return nil, ErrUnsupported.Newf("modgraph.Load", "module %q of the media type %q cannot be loaded", path, m.MediaType)
}

// wasmSource stands for a WebAssembly module. Whoever loads it puts the WebAssembly.Module there.
const wasmSource = "export default import.meta." + MetaModule + ";"

// MetaModule is the member of import.meta in which the text that stands for a WebAssembly module finds it.
const MetaModule = "module"

// Wasm returns the bytes of the WebAssembly module at path, nil if there is none. They must not be changed.
func (g *Graph) Wasm(path string) []byte {
	if m := g.byPath[path]; m != nil && m.MediaType == TypeWasm {
		return m.Bytes
	}
	return nil
}

// textSource writes text as one string literal. Everything that could end or alter the literal is escaped.
func textSource(text []byte) []byte {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(text)+len(text)/8+32)
	out = append(out, `export default "`...)
	for _, r := range string(text) {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < 0x20 || r == 0x7f:
			out = append(out, '\\', 'x', hex[r>>4], hex[r&15])
		case r == 0x2028 || r == 0x2029:
			out = append(out, `\u20`...)
			out = append(out, '2', hex[r&15])
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return append(out, `";`...)
}

// bytesSource writes the bytes as base64 for the engine's native decoder: 16 MiB are decoded in tens of milliseconds.
func bytesSource(b []byte) []byte {
	const head, tail = `export default Uint8Array.fromBase64("`, `").buffer;`
	out := make([]byte, 0, len(head)+base64.StdEncoding.EncodedLen(len(b))+len(tail))
	out = append(out, head...)
	out = base64.StdEncoding.AppendEncode(out, b)
	return append(out, tail...)
}

package hostapi

import (
	"encoding/binary"

	"edged/sandbox/engine"
	"edged/sandbox/hostapi/whatwgurl"
)

// partsBytes is the size of whatwgurl.Parts as the prelude reads it: little-endian 32-bit numbers in its order.
const partsBytes = 9 * 4

// urlParse(input, base, parts): the serialised URL, its parts written into the Uint8Array; undefined if input is no
// URL. base is a string or undefined.
func hostURLParse(in *engine.Instance, args []engine.Value) engine.Value {
	input, ok := in.String(args[0])
	if !ok {
		return badArgument(in, "urlParse")
	}
	var base *whatwgurl.URL
	if !args[1].IsUndefined() {
		text, ok := in.String(args[1])
		if !ok {
			return badArgument(in, "urlParse")
		}
		if base, ok = whatwgurl.Parse(text, nil); !ok {
			return engine.Undefined
		}
	}
	u, ok := whatwgurl.Parse(input, base)
	if !ok {
		return engine.Undefined
	}
	return answerURL(in, u, args[2], "urlParse")
}

// urlSet(href, part, value, parts): the URL with a part set, as urlParse gives it; undefined if the value was refused.
func hostURLSet(in *engine.Instance, args []engine.Value) engine.Value {
	href, ok1 := in.String(args[0])
	part, ok2 := args[1].Int()
	value, ok3 := in.String(args[2])
	if !ok1 || !ok2 || !ok3 {
		return badArgument(in, "urlSet")
	}
	u, ok := whatwgurl.Parse(href, nil)
	if !ok || !u.Set(whatwgurl.Part(part), value) {
		return engine.Undefined
	}
	return answerURL(in, u, args[3], "urlSet")
}

func answerURL(in *engine.Instance, u *whatwgurl.URL, parts engine.Value, name string) engine.Value {
	var buf [256]byte
	href, p := u.AppendTo(buf[:0])
	dst, ok := in.Bytes(parts)
	if !ok || len(dst) != partsBytes {
		return badArgument(in, name)
	}
	for i, n := range [...]int32{p.ProtocolEnd, p.UserStart, p.UserEnd, p.PasswordEnd, p.HostStart, p.HostEnd, p.PathStart, p.SearchStart, p.HashStart} {
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(n))
	}
	return in.NewLatin1(href) // a serialised URL is ASCII
}

// percentDecode(text): text with its percent escapes decoded as UTF-8, wrong ones as U+FFFD.
func hostPercentDecode(in *engine.Instance, args []engine.Value) engine.Value {
	text, ok := in.String(args[0])
	if !ok {
		return badArgument(in, "percentDecode")
	}
	decoded, _ := utf8Decoder{}.decode(nil, whatwgurl.AppendPercentDecoded(nil, text), true, nil)
	return in.NewString(decoded)
}

package hostapi

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"edged/sandbox/engine"
)

// Flags of the decoders, as the prelude gives them.
const (
	flagFatal   = 1 << iota // an error ends the decoding
	flagKeepBOM             // a byte order mark is text
	flagStream              // more is to come
)

// utf8Encode(text): a Uint8Array.
func hostUTF8Encode(in *engine.Instance, args []engine.Value) engine.Value {
	var buf [1024]byte
	b, ok := in.AppendString(buf[:0], args[0])
	if !ok {
		return badArgument(in, "utf8Encode")
	}
	return in.NewBytes(b)
}

// utf8EncodeInto(text, destination, counts): writes what whole characters fit, and into counts, eight bytes, the units
// read and the bytes written.
func hostUTF8EncodeInto(in *engine.Instance, args []engine.Value) engine.Value {
	var buf [1024]byte
	text, ok1 := in.AppendString(buf[:0], args[0])
	dst, ok2 := in.Bytes(args[1])
	counts, ok3 := in.Bytes(args[2])
	if !ok1 || !ok2 || !ok3 || len(counts) != 8 {
		return badArgument(in, "utf8EncodeInto")
	}
	if len(text) > len(dst) {
		n := len(dst)
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	copy(dst, text)
	units := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= 0xf0:
			units += 2
		case utf8.RuneStart(c):
			units++
		}
	}
	binary.LittleEndian.PutUint32(counts, uint32(units))
	binary.LittleEndian.PutUint32(counts[4:], uint32(len(text)))
	return engine.Undefined
}

const bomUTF8 = "\xef\xbb\xbf"

// utf8Decode(bytes, flags): the text; undefined if flags say fatal and the bytes are not UTF-8.
func hostUTF8Decode(in *engine.Instance, args []engine.Value) engine.Value {
	flags, isNumber := args[1].Int()
	b, ok := in.Bytes(args[0])
	if !ok || !isNumber {
		return badArgument(in, "utf8Decode")
	}
	if flags&flagKeepBOM == 0 && len(b) >= 3 && string(b[:3]) == bomUTF8 {
		b = b[3:]
	}
	if utf8.Valid(b) {
		return in.NewString(b) // all that runs before the copy is an allocation, which changes no other block
	}
	if flags&flagFatal != 0 {
		return engine.Undefined
	}
	text, _ := utf8Decoder{}.decode(make([]byte, 0, len(b)+len(b)/8), b, true, nil)
	return in.NewString(text)
}

// encodingName(label): the name of the encoding, undefined if there is none.
func hostEncodingName(in *engine.Instance, args []engine.Value) engine.Value {
	label, ok := in.String(args[0])
	if !ok {
		return badArgument(in, "encodingName")
	}
	name := ""
	if len(label) <= 64 {
		name = encodingName(label)
	}
	if name == "" {
		return engine.Undefined
	}
	return in.NewLatin1([]byte(name))
}

// The state of a decoder between two chunks, in sixteen bytes that the guest keeps and that are nothing but a claim.
const (
	stateBytes   = 16
	stateStarted = 0                        // not 0 once the start, with or without a byte order mark, is behind us
	statePending = 1                        // how many bytes wait
	stateBuffer  = 2                        // the bytes that wait
	stateMode    = stateBuffer + maxPending // of a decoder with a memory
)

// decode(name, bytes, flags, state): the text of the next bytes, undefined if flags say fatal and there is an error.
// state is undefined, or a Uint8Array of stateBytes that was zeros before the first chunk.
func hostDecode(in *engine.Instance, args []engine.Value) engine.Value {
	name, ok1 := in.String(args[0])
	b, ok2 := in.Bytes(args[1])
	flags, ok3 := args[2].Int()
	d := decoderOf(name)
	if !ok1 || !ok2 || !ok3 || d == nil {
		return badArgument(in, "decode")
	}
	var state []byte
	if !args[3].IsUndefined() {
		if state, ok1 = in.Bytes(args[3]); !ok1 || len(state) != stateBytes {
			return badArgument(in, "decode")
		}
	}
	text, ok := decodeChunk(name, d, b, flags, state)
	if !ok {
		return engine.Undefined
	}
	return in.NewString(text)
}

// decodeChunk decodes src behind what state holds, and leaves in state what waits for the next chunk.
func decodeChunk(name string, d decoder, src []byte, flags int32, state []byte) (text []byte, ok bool) {
	last := flags&flagStream == 0
	var one [stateBytes]byte
	if state == nil {
		state = one[:]
	}
	if pending := min(int(state[statePending]), maxPending); pending > 0 {
		src = append(append(make([]byte, 0, pending+len(src)), state[stateBuffer:stateBuffer+pending]...), src...)
	}
	if state[stateStarted] == 0 {
		var wait bool
		if src, wait = afterBOM(name, src, flags&flagKeepBOM == 0, last); wait {
			suspend(state, src)
			return nil, true
		}
	}
	text, rest := d.decode(make([]byte, 0, len(src)+len(src)/2), src, last, &state[stateMode])
	if flags&flagFatal != 0 && hasError(d, src, text, last) {
		return nil, false
	}
	state[stateStarted] = 1
	suspend(state, src[len(src)-rest:])
	return text, true
}

// suspend keeps what waits.
func suspend(state, rest []byte) {
	state[statePending] = byte(copy(state[stateBuffer:stateBuffer+maxPending], rest))
}

// afterBOM returns src without the mark that its encoding has, if it is to be stripped; wait means that src is too
// short to tell.
func afterBOM(name string, src []byte, strip, last bool) (rest []byte, wait bool) {
	mark := map[string]string{"utf-8": bomUTF8, "utf-16le": "\xff\xfe", "utf-16be": "\xfe\xff"}[name]
	if !strip || mark == "" {
		return src, false
	}
	if bytes.HasPrefix(src, []byte(mark)) {
		return src[len(mark):], false
	}
	return src, !last && len(src) < len(mark) && mark[:len(src)] == string(src)
}

// hasError reports whether decoding src met an error. Of the legacy encodings only GB18030 can encode U+FFFD itself.
func hasError(d decoder, src, text []byte, last bool) bool {
	switch d := d.(type) {
	case utf8Decoder:
		if src = src[validPrefix(src):]; len(src) == 0 {
			return false
		}
		_, short := badPrefix(src)
		return !short || last
	case utf16Decoder:
		return !d.wellFormed(src, last)
	}
	return bytes.Count(text, []byte(replacement)) > bytes.Count(src, []byte("\x84\x31\xa4\x37"))
}

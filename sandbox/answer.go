package sandbox

import (
	"bytes"
	"strconv"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// Body kinds, as the prelude numbers them.
const (
	bodyNull = iota
	bodyText
	bodyBytes
	bodyStream
	bodySource // of a number: the bytes never enter the guest
)

var errAnswer = event.ErrWorker.New("sandbox.Serve", "the worker's response cannot be sent")

// answer copies the handler's Response out. more says that the invocation goes on: a stream has to be read, or tasks
// were given to waitUntil.
func (g *guest) answer(value engine.Value, res *event.Response) (more bool, err error) {
	in := g.in
	var part [statePlaces]engine.Value // borrowed
	parts := engine.Undefined
	if g.plain = g.readPlain(value, &part); !g.plain {
		if parts, err = in.Call(g.version.entries[entryFinish], engine.Undefined, value); err != nil {
			return false, g.uncaught(err)
		}
		in.Items(parts, part[:stateSent])
	}
	status, _ := part[stateStatus].Int()
	header, body := part[stateHeader], part[stateBody]
	kind, _ := part[stateKind].Int()
	length, _ := part[stateLength].Int64()
	waits, _ := part[stateTasks].Int()
	var ok bool
	res.Status = int(status)
	res.Header, ok = in.AppendLatin1(res.Header[:0], header)
	if !ok {
		return false, g.refuseAnswer("its headers are not readable")
	}
	declared, why := checkHeader(res.Header, g.box.opt.MaxHeaders, g.box.opt.MaxHeaderBytes)
	if why == "" && (status < 200 || status > 599) {
		why = "the status is not between 200 and 599"
	}
	if why != "" {
		return false, g.refuseAnswer(why)
	}
	res.Length = 0
	switch kind {
	case bodyNull:
		res.Null = true
	case bodyStream:
		g.stream = newStream(length)
		res.Stream, res.Length = g.stream, length
	case bodySource:
		number, _ := body.Int()
		if g.splice, ok = g.lend(number); !ok {
			return false, g.refuseAnswer("its body is in use")
		}
		g.spliced = g.splice
		res.Stream, res.Length = g.splice, length
	default:
		if err := g.wholeBody(body, kind, declared, res); err != nil {
			return false, err
		}
	}
	g.drop(parts)
	g.drop(value)
	return g.stream != nil || g.splice != nil || waits > 0, nil
}

// The places in a Response's state, as the prelude numbers them, that readPlain looks at; dispatchFinish returns the first of them.
const (
	stateStatus = 0
	stateHeader = 1
	stateKind   = 2
	stateBody   = 3
	stateLength = 4
	stateTasks  = 5
	stateSent   = 6 // how many dispatchFinish returns
	stateTaken  = 6
	stateFlags  = 8
	statePlaces = 9
)

// readPlain reads a Response as dispatchFinish would, without a call: one that has all that it needs, of an invocation that ends with it.
// It reports false for every other.
func (g *guest) readPlain(value engine.Value, part *[statePlaces]engine.Value) bool {
	if g.waitUsed {
		return false
	}
	state, ok := g.in.Twin(value, g.version.entries[entryResponse])
	if !ok || !g.in.ItemsInPlace(state, part[:]) {
		return false
	}
	kind, ok := part[stateKind].Int()
	if !ok || kind < bodyNull || kind >= bodyStream || !part[stateStatus].IsInt() || !part[stateHeader].IsString() ||
		part[stateTaken] != engine.False || part[stateFlags] != engine.Int(0) {
		return false
	}
	part[stateTasks] = engine.Int(0)
	return kind == bodyNull || g.in.PutItem(state, stateTaken, engine.True)
}

// wholeBody copies a body that is all there.
func (g *guest) wholeBody(body engine.Value, kind int32, declared int64, res *event.Response) error {
	ok := false
	if kind == bodyText {
		res.Body, ok = g.in.AppendString(res.Body[:0], body)
	} else {
		var view []byte
		if view, ok = g.in.Bytes(body); ok {
			res.Body = append(res.Body[:0], view...)
		}
	}
	if !ok {
		return g.refuseAnswer("its body is not readable")
	}
	res.Length = int64(len(res.Body))
	g.tally.out = res.Length
	if declared >= 0 && declared != res.Length {
		return g.refuseAnswer("its content-length is not the length of its body")
	}
	return nil
}

// refuseAnswer says in the worker's log what is wrong.
func (g *guest) refuseAnswer(why string) error {
	if err := g.in.Err(); err != nil {
		return err
	}
	g.version.console(LevelUncaught, "the response cannot be sent: "+why)
	return errAnswer
}

// checkHeader looks at a packed header as if nobody had checked it before. It returns the declared content-length, -1
// if there is none, and what is wrong.
func checkHeader(packed []byte, maxFields, maxBytes int) (length int64, why string) {
	length = -1
	if len(packed) > maxBytes {
		return length, "its headers are too large"
	}
	for fields := 0; len(packed) > 0; fields++ {
		if fields == maxFields {
			return length, "it has too many headers"
		}
		name, rest, ok := bytes.Cut(packed, newline)
		if !ok || !isLowerToken(name) {
			return length, "a header name is malformed"
		}
		value, rest, ok := bytes.Cut(rest, newline)
		if !ok || bytes.IndexByte(value, '\r') >= 0 || bytes.IndexByte(value, 0) >= 0 {
			return length, "a header value is malformed"
		}
		packed = rest
		if string(name) == "content-length" {
			n, err := strconv.ParseUint(string(value), 10, 53)
			if err != nil || length >= 0 {
				return length, "its content-length is not one number"
			}
			length = int64(n)
		}
	}
	return length, ""
}

var newline = []byte{'\n'}

// isLowerToken reports whether b is a field name of HTTP without capitals.
func isLowerToken(b []byte) bool {
	for _, c := range b {
		if !lowerToken[c] {
			return false
		}
	}
	return len(b) > 0
}

var lowerToken = func() (t [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
		t[c] = true
	}
	return t
}()

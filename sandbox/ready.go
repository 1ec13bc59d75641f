package sandbox

import (
	"bytes"
	"slices"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// What an invocation of fetch begins with, as dispatchPrepare lists it; and the strings in it.
const (
	partRequest = iota
	partContext
	partEnv    // without anything
	partState  // the request's
	partMine   // the invocation
	partSource // of the request's body; null if none may come
	partRooms  // what each request rewrites
	numParts   = partRooms + numRooms
)

const (
	roomMethod = iota
	roomURL
	roomHeaders
	numRooms
)

// roomBytes is how long the strings can be; what is longer gets one of its own.
var roomBytes = [numRooms]int{roomMethod: 16, roomURL: 500, roomHeaders: 1500}

// lastEvery is how often a guest whose invocations use up what they begin with is given one that can be kept again: that costs more to make
// than one for a single invocation.
const lastEvery = 64

// The places in a Request's state, as the prelude numbers them: those that a request fills, and those that change when a handler looks.
const (
	requestMethod  = 0
	requestHeaders = 1
	requestKind    = 2
	requestSource  = 3
	requestURL     = 4
	requestRaw     = 5
	requestTaken   = 6
	numRestored    = 7
)

// ready is what an invocation of fetch begins with. A pristine guest has that of its image; one that keeps its state keeps
// this too, as long as invocations leave it as it was.
type ready struct {
	list  engine.Value           // the guest's; it holds the parts; 0 for none
	parts []engine.Value         // borrowed
	own   [numParts]engine.Value // where they are if they are not the image's
	rooms [numRooms]engine.Value // the guest's; 0 for none
	mold  engine.Mold            // of the parts (isolation worker)
	whole bool                   // they are as they were
}

// forget is for a guest that holds an image again, this one or another: no value of before means anything.
func (r *ready) forget() { r.list, r.parts, r.rooms, r.whole = 0, nil, [numRooms]engine.Value{}, false }

var blank = bytes.Repeat([]byte{' '}, slices.Max(roomBytes[:]))

// newRoom makes the i-th of the strings that are rewritten.
func newRoom(in *engine.Instance, i int) engine.Value { return in.NewLatin1(blank[:roomBytes[i]]) }

// sealed returns the roots that a version's image has of its own, of what dispatchSeal returned and the rooms, which pass. The parts are
// borrowed from what is ready.
func sealed(in *engine.Instance, list engine.Value, rooms [numRooms]engine.Value) []engine.Value {
	roots := make([]engine.Value, entryParts-entryHandler+partRooms)
	in.Items(list, roots[:entryParts-entryHandler])
	for _, v := range roots[:entryParts-entryHandler] {
		in.Dup(v)
	}
	in.Items(roots[entryReady-entryHandler], roots[entryParts-entryHandler:])
	return append(roots, rooms[:]...)
}

// texts are what a request says, by room. The URL is UTF-8, the others Latin-1.
type texts [numRooms][]byte

// prepare sees to it that the guest has what the invocation begins with, and fills it in.
func (g *guest) prepare(req *event.Request) error {
	r := &g.ready
	said := texts{roomMethod: req.Method, roomURL: req.URL, roomHeaders: req.Header}
	if req.Body != nil && r.whole && r.parts[partSource].IsNull() {
		g.dropReady()
	}
	if !r.whole && g.served > 0 {
		return g.prepareAgain(&said, req.Body != nil)
	}
	if !r.whole {
		r.list, r.parts = g.version.entries[entryReady], g.version.entries[entryParts:]
		copy(r.rooms[:], r.parts[partRooms:])
		g.cast()
	}
	for i, place := range [numRooms]uint32{roomMethod: requestMethod, roomURL: requestRaw, roomHeaders: requestHeaders} {
		if !g.rewrite(r.rooms[i], i, said[i]) {
			g.put(place, g.newText(i, said[i]))
		}
	}
	return nil
}

// prepareAgain is for a guest whose last invocation has used what there was.
func (g *guest) prepareAgain(said *texts, body bool) error {
	in, r := g.in, &g.ready
	again := g.served%lastEvery == 0
	lasts := again
	use := [numRooms + 2]engine.Value{numRooms: engine.Bool(body || again)}
	for i := range numRooms {
		if !in.Sole(r.rooms[i]) {
			in.Free(r.rooms[i])
			r.rooms[i] = 0
			if again {
				r.rooms[i] = newRoom(in, i)
			}
		}
		if use[i] = r.rooms[i]; !g.rewrite(use[i], i, said[i]) {
			use[i] = g.newText(i, said[i])
			lasts = false
		}
	}
	use[numRooms+1] = engine.Bool(lasts)
	list, err := in.Call(g.version.entries[entryPrepare], engine.Undefined, use[:]...)
	for i := range numRooms {
		if use[i] != r.rooms[i] {
			in.Free(use[i])
		}
	}
	if err != nil {
		return g.uncaught(err)
	}
	r.list, r.parts = list, r.own[:]
	in.Items(list, r.own[:partRooms])
	copy(r.own[partRooms:], use[:])
	if lasts {
		g.cast()
	} else {
		r.mold.Forget()
	}
	return nil
}

// cast remembers what the parts are like.
func (g *guest) cast() {
	if g.box.opt.Isolation != IsolateWorker {
		return
	}
	r := &g.ready
	all := append(make([]engine.Value, 0, numParts), r.parts...)
	if all[partSource].IsNull() {
		all = slices.Delete(all, partSource, partSource+1)
	}
	g.in.Cast(&r.mold, all...)
}

// keepReady keeps what the next invocation begins with, if the last one was over with its response and has neither changed nor kept any of
// it, but for what a handler changes that looks at its request.
func (g *guest) keepReady() {
	r := &g.ready
	if r.list != 0 && g.plain && r.mold.Known() && (g.in.Fits(&r.mold) || g.unlook() && g.in.Fits(&r.mold)) {
		r.whole = true
		return
	}
	g.dropReady()
}

// unlook takes out of the request's state what is there since somebody has looked at the URL, the headers or the body. It reports false if
// somebody has kept the request or what it is made of, which stays as it is then.
func (g *guest) unlook() bool {
	r := &g.ready
	if g.in.Refs(r.parts[partRequest]) != 1 || g.in.Refs(r.parts[partState]) != 2 { // the list; that and the request
		return false
	}
	was := [numRestored]engine.Value{requestMethod: r.parts[partRooms+roomMethod], requestHeaders: r.parts[partRooms+roomHeaders], requestKind: engine.Int(bodyNull),
		requestSource: engine.Null, requestURL: engine.Null, requestRaw: r.parts[partRooms+roomURL], requestTaken: engine.False}
	var is [numRestored]engine.Value
	state := r.parts[partState]
	if !g.in.ItemsInPlace(state, is[:]) {
		return false
	}
	for i, v := range was {
		if is[i] != v {
			g.put(uint32(i), g.in.Dup(v))
		}
	}
	return true
}

// stillReady reports whether what is kept fits, if anything is.
func (g *guest) stillReady() bool { return !g.ready.whole || g.in.Fits(&g.ready.mold) }

func (g *guest) dropReady() {
	r := &g.ready
	g.in.Free(r.list)
	r.list, r.whole = 0, false
}

// dispatch calls the handler.
func (g *guest) dispatch(req *event.Request) (engine.Value, error) {
	if err := g.prepare(req); err != nil {
		return engine.Undefined, err
	}
	in, entries, parts := g.in, g.version.entries, g.ready.parts
	if req.Body != nil {
		g.body.body = req.Body
		g.put(requestKind, engine.Int(bodySource))
		g.put(requestSource, in.Dup(parts[partSource]))
	}
	env, made := parts[partEnv], engine.Undefined
	if v := g.version; len(v.env) > 0 || len(v.bound) > 0 {
		vars, bound := g.env()
		var err error
		made, err = in.Call(entries[entryEnv], engine.Undefined, vars, bound)
		g.drop(vars)
		g.drop(bound)
		if err != nil {
			return engine.Undefined, g.uncaught(err)
		}
		env = made
	}
	promise, err := in.Call(entries[entryHandler], entries[entryTarget], parts[partRequest], env, parts[partContext])
	g.drop(made)
	if err != nil {
		return engine.Undefined, g.uncaught(err)
	}
	return promise, nil
}

// rewrite writes what a request says into v, which must be that room or 0, and reports whether it did: there is one, and it is long enough.
func (g *guest) rewrite(v engine.Value, room int, b []byte) bool {
	return len(b) <= roomBytes[room] && (room != roomURL || engine.IsASCII(b)) && g.in.Rewrite(v, b)
}

func (g *guest) newText(room int, b []byte) engine.Value {
	if room == roomURL {
		return g.in.NewString(b)
	}
	return g.in.NewLatin1(b)
}

// put replaces a value of the request's state by v, which passes.
func (g *guest) put(place uint32, v engine.Value) {
	if state := g.ready.parts[partState]; !g.in.PutItem(state, place, v) {
		g.in.SetIndex(state, place, v)
	}
}

package sandbox

import (
	"bytes"

	"edged/sandbox/engine"
	"edged/sandbox/event"
)

// What an invocation of fetch begins with, as dispatchPrepare lists it.
const (
	partRequest = iota
	partContext
	partEnv    // without anything
	partState  // the request's
	partMine   // the invocation
	partSource // of the request's body
	partRooms  // the strings that each request rewrites
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

// The places in a Request's state, as the prelude numbers them, that a request fills.
const (
	requestMethod  = 0
	requestHeaders = 1
	requestKind    = 2
	requestSource  = 3
	requestRaw     = 5
)

// ready is what an invocation of fetch begins with. A pristine guest has that of its image; one that keeps its state keeps
// this too, as long as invocations leave it as it was.
type ready struct {
	list  engine.Value           // the guest's; it holds the parts; 0 for none
	parts []engine.Value         // borrowed
	own   [numParts]engine.Value // where they are if they are not the image's
	rooms [numRooms]engine.Value // the guest's
	mold  engine.Mold            // of the parts (isolation worker)
	whole bool                   // they are as they were
}

// newRoom makes the i-th of the strings that are rewritten.
func newRoom(in *engine.Instance, i int) engine.Value {
	return in.NewLatin1(bytes.Repeat([]byte{' '}, roomBytes[i]))
}

// sealed returns the roots that a version's image has of its own, of what dispatchSeal returned.
func sealed(in *engine.Instance, list engine.Value) []engine.Value {
	roots := make([]engine.Value, entryParts-entryHandler+numParts)
	in.Items(list, roots[:entryParts-entryHandler])
	in.Items(roots[entryReady-entryHandler], roots[entryParts-entryHandler:])
	return roots
}

// prepare sees to it that the guest has what the invocation begins with.
func (g *guest) prepare() error {
	r := &g.ready
	if r.whole {
		return nil
	}
	if g.served == 0 {
		r.list, r.parts = g.version.entries[entryReady], g.version.entries[entryParts:]
		copy(r.rooms[:], r.parts[partRooms:])
	} else if err := g.prepareAgain(); err != nil {
		return err
	}
	if g.box.opt.Isolation == IsolateWorker {
		g.in.Cast(&r.mold, r.parts...)
	}
	return nil
}

// prepareAgain is for a guest whose last invocations have used what there was.
func (g *guest) prepareAgain() error {
	r := &g.ready
	for i, room := range r.rooms {
		if !g.in.Sole(room) {
			g.in.Free(room)
			r.rooms[i] = newRoom(g.in, i)
		}
	}
	list, err := g.in.Call(g.version.entries[entryPrepare], engine.Undefined, r.rooms[:]...)
	if err != nil {
		return g.uncaught(err)
	}
	r.list, r.parts = list, r.own[:]
	g.in.Items(list, r.parts)
	return nil
}

// keepReady keeps what the next invocation begins with, if the last one was over with its response and has neither changed nor kept any of
// it.
func (g *guest) keepReady() {
	r := &g.ready
	r.whole = r.list != 0 && g.plain && g.in.Fits(&r.mold)
	if !r.whole {
		g.in.Free(r.list)
		r.list = 0
	}
}

// dispatch calls the handler.
func (g *guest) dispatch(req *event.Request) (engine.Value, error) {
	if err := g.prepare(); err != nil {
		return engine.Undefined, err
	}
	in, entries, parts := g.in, g.version.entries, g.ready.parts
	g.fill(requestMethod, roomMethod, req.Method, in.NewLatin1)
	g.fill(requestHeaders, roomHeaders, req.Header, in.NewLatin1)
	if engine.IsASCII(req.URL) {
		g.fill(requestRaw, roomURL, req.URL, in.NewLatin1)
	} else {
		g.put(requestRaw, in.NewString(req.URL))
	}
	if req.Body != nil {
		g.body.body = req.Body
		g.put(requestKind, engine.Int(bodySource))
		g.put(requestSource, in.Dup(parts[partSource]))
	}
	env, made := parts[partEnv], engine.Undefined
	if v := g.version; len(v.env) > 0 || len(v.bound) > 0 {
		vars, bound := g.env()
		var err error
		if made, err = in.Call(entries[entryEnv], engine.Undefined, vars, bound); err != nil {
			return engine.Undefined, g.uncaught(err)
		}
		g.drop(vars)
		g.drop(bound)
		env = made
	}
	promise, err := in.Call(entries[entryHandler], entries[entryTarget], parts[partRequest], env, parts[partContext])
	if err != nil {
		return engine.Undefined, g.uncaught(err)
	}
	g.drop(made)
	return promise, nil
}

// fill gives the request's state a string: in its room if it fits, else one that is made for it.
func (g *guest) fill(place uint32, room int, b []byte, make func([]byte) engine.Value) {
	if len(b) > roomBytes[room] || !g.in.Rewrite(g.ready.parts[partRooms+room], b) {
		g.put(place, make(b))
	}
}

// put replaces a value of the request's state by v, which passes.
func (g *guest) put(place uint32, v engine.Value) {
	if state := g.ready.parts[partState]; !g.in.PutItem(state, place, v) {
		g.in.SetIndex(state, place, v)
	}
}

package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"edged/sandbox/engine"
	"edged/sandbox/facade"
	"edged/sandbox/hostapi"
	"edged/sandbox/prelude"
)

// hostTable returns every host function of a guest, this room's own behind those of the web classes, those of the bindings last. Images hold
// positions in it; the engine's digest covers it, so that a changed table makes old images unusable and not wrong.
func hostTable() []engine.Host {
	own := []engine.Host{
		{Name: "timerSet", Argc: 2, Fn: hostTimerSet},
		{Name: "timerClear", Argc: 1, Fn: hostTimerClear},
		{Name: "bodyPull", Argc: 1, Fn: hostBodyPull},
		{Name: "bodyCancel", Argc: 1, Fn: hostBodyCancel},
		{Name: "signalUsed", Argc: 0, Fn: hostSignalUsed},
		{Name: "waitUsed", Argc: 0, Fn: hostWaitUsed},
		{Name: "report", Argc: 2, Fn: hostReport},
		{Name: "serviceFetch", Argc: 7, Fn: hostServiceFetch},
		{Name: "outboundFetch", Argc: 7, Fn: hostOutboundFetch},
		{Name: "bucketCall", Argc: 3, Fn: hostBucketCall},
		{Name: "bucketGet", Argc: 2, Fn: hostBucketGet},
		{Name: "bucketPut", Argc: 5, Fn: hostBucketPut},
		{Name: "callAbort", Argc: 1, Fn: hostCallAbort},
		{Name: "sinkWrite", Argc: 2, Fn: hostSinkWrite},
		{Name: "sinkEnd", Argc: 2, Fn: hostSinkEnd},
	}
	return slices.Concat(hostapi.Table(), own, facade.Table())
}

// FacadeSet names, in hexadecimal, what this program offers to workers: the prelude and the host functions that it calls
// (worker-version §9). Versions are sealed with it.
func FacadeSet() string { return facadeSet(prelude.Digest(), hostTable()) }

func facadeSet(prelude string, hosts []engine.Host) string {
	h := sha256.New()
	fmt.Fprintln(h, prelude)
	for _, f := range hosts {
		fmt.Fprintf(h, "%s/%d\n", f.Name, f.Argc)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// timerSet(id, milliseconds)
func hostTimerSet(in *engine.Instance, args []engine.Value) engine.Value {
	g := guestOf(in)
	id, ok1 := args[0].Int()
	ms, ok2 := args[1].Int()
	if !ok1 || !ok2 || ms < 0 {
		return in.ThrowType("timerSet wants two numbers")
	}
	if g.closing {
		return in.ThrowType("the invocation is over")
	}
	if g.timers.len() >= g.box.opt.MaxTimers {
		return in.ThrowRange("too many timers")
	}
	g.timers.set(id, time.Now().Add(time.Duration(ms)*time.Millisecond))
	return engine.Undefined
}

// timerClear(id)
func hostTimerClear(in *engine.Instance, args []engine.Value) engine.Value {
	if id, ok := args[0].Int(); ok {
		guestOf(in).timers.clear(id)
	}
	return engine.Undefined
}

// signalUsed: somebody may listen for the client's leaving.
func hostSignalUsed(in *engine.Instance, _ []engine.Value) engine.Value {
	guestOf(in).signalUsed = true
	return engine.Undefined
}

// waitUsed: the invocation has tasks that outlive its response, or had some.
func hostWaitUsed(in *engine.Instance, _ []engine.Value) engine.Value {
	guestOf(in).waitUsed = true
	return engine.Undefined
}

// report(what, text): something failed that belongs to nobody's promise.
func hostReport(in *engine.Instance, args []engine.Value) engine.Value {
	what, _ := in.String(args[0])
	text, _ := in.String(args[1])
	guestOf(in).version.console(LevelUncaught, what+": "+text)
	return engine.Undefined
}

var (
	_ hostapi.Console    = (*guest)(nil)
	_ hostapi.CodecOwner = (*guest)(nil)
)

// Codecs is where host functions keep the codecs of the invocation.
func (g *guest) Codecs() *hostapi.Codecs {
	g.codecs.Pool = &g.box.encoders
	return &g.codecs
}

// Console is where host functions write what the worker logs. The levels are the first of ours.
func (g *guest) Console(level int, text string) { g.version.console(Level(level), text) }

package hostapi

import (
	"errors"
	"io"

	"edged/sandbox/engine"
	"edged/sandbox/hostapi/codec"
)

const (
	maxCodecs  = 32       // open at once: one that compresses holds up to about a megabyte
	codecPiece = 64 << 10 // the most input and output of one step: the codecs cannot be preempted
)

// Codecs are the compression codecs that an invocation has open. The zero value has none. It belongs to the goroutine that
// runs the guest.
type Codecs struct {
	Pool *codec.Pool // where codecs come from; nil: they are made

	open map[int32]codec.Codec
	last int32
	buf  []byte
}

// Close gives up what is still open. Afterwards the Codecs are as new.
func (cs *Codecs) Close() {
	for id := range cs.open {
		cs.close(id)
	}
	cs.last = 0
}

func (cs *Codecs) close(id int32) {
	if c := cs.open[id]; c != nil && cs.Pool != nil {
		cs.Pool.Release(c)
	}
	delete(cs.open, id)
}

func (cs *Codecs) make(f codec.Format, decompress bool) codec.Codec {
	if cs.Pool == nil {
		return codec.New(f, decompress)
	}
	return cs.Pool.New(f, decompress)
}

// CodecOwner is implemented by what is in an instance's User, if its scripts may compress.
type CodecOwner interface {
	// Codecs returns the codecs of the invocation that is running.
	Codecs() *Codecs
}

func codecsOf(in *engine.Instance) *Codecs {
	if o, ok := in.User.(CodecOwner); ok {
		return o.Codecs()
	}
	return nil
}

// codecOpen(format, decompress): the number of a new codec. A RangeError if too many are open.
func hostCodecOpen(in *engine.Instance, args []engine.Value) engine.Value {
	format, ok := args[0].Int()
	cs := codecsOf(in)
	if !ok || !codec.Format(format).Valid() || !args[1].IsBool() {
		return badArgument(in, "codecOpen")
	}
	if cs == nil {
		return in.ThrowType("there is no invocation to compress in")
	}
	if len(cs.open) >= maxCodecs {
		return in.ThrowRange("too many compression streams are open")
	}
	if cs.open == nil {
		cs.open = make(map[int32]codec.Codec)
	}
	cs.last++
	cs.open[cs.last] = cs.make(codec.Format(format), args[1].Bool())
	return engine.Int(cs.last)
}

// codecRun(id, input): the next output, undefined if there is none until there is more input. input is a Uint8Array of at
// most 64 KiB, null at the end, or undefined to go on with what is there. A TypeError for data that is not valid.
func hostCodecRun(in *engine.Instance, args []engine.Value) engine.Value {
	id, ok := args[0].Int()
	cs := codecsOf(in)
	if !ok || cs == nil || cs.open[id] == nil {
		return badArgument(in, "codecRun")
	}
	c := cs.open[id]
	switch {
	case args[1].IsNull():
		c.End()
	case !args[1].IsUndefined():
		b, ok := in.Bytes(args[1])
		if !ok || len(b) > codecPiece {
			return badArgument(in, "codecRun")
		}
		c.Feed(b)
	}
	if cs.buf == nil {
		cs.buf = make([]byte, codecPiece)
	}
	n, err := c.Read(cs.buf)
	switch {
	case err == nil:
		return in.NewBytes(cs.buf[:n])
	case errors.Is(err, codec.ErrMore), errors.Is(err, io.EOF):
		return engine.Undefined
	}
	return in.ThrowType(err.Error())
}

// codecClose(id): nobody needs the codec any more.
func hostCodecClose(in *engine.Instance, args []engine.Value) engine.Value {
	id, ok := args[0].Int()
	if !ok {
		return badArgument(in, "codecClose")
	}
	if cs := codecsOf(in); cs != nil {
		cs.close(id)
	}
	return engine.Undefined
}

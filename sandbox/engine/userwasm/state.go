package userwasm

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero/api"

	"edged/sandbox/engine"
)

// What one sandbox may have outside of its guest's memory.
const (
	maxEntries   = 1 << 18 // of all its tables
	maxMemories  = 100
	maxTables    = 100
	maxGlobals   = 1000
	maxInstances = 100
	maxModules   = 200
	maxNesting   = 24 // calls of WebAssembly inside of each other: each has a stack of its own
	smallUse     = 16 // instances after which a sandbox that is reused should start afresh
)

// Owner is implemented by what is in an instance's User, if its scripts may use WebAssembly.
type Owner interface {
	// Library is that of the version.
	Library() *Library
	// Binary returns the bytes of a WebAssembly module in the bundle, nil if there is none.
	Binary(path string) []byte
}

// state is the companion of one instance.
type state struct {
	in  *engine.Instance
	ctx callContext

	begun bool // the records of the image were read
	live  bool // what they describe exists
	setup setup

	modules   []*moduleRef
	memories  []*memory
	tables    []*table
	globals   []*global
	instances []*instance
	functions []*function

	byModule map[api.Module]*instance
	byRef    map[uint64]*function // by the runtime's references
	places   map[uint64]place     // where they lead, of the first `placed` instances
	placed   int
	byValue  map[engine.Value]*function // functions that scripts have
	made     []api.Module               // to be closed
	entries  uint32                     // of all tables
	windows  uint64                     // bytes of all memories
	nesting  int
	anyDeep  bool // an instance is deep
}

// callContext carries the state to the functions that a tenant's code calls.
type callContext struct {
	context.Context
	state *state
}

// The panics that unwind a tenant's code.
var (
	errThrown   = errors.New("an exception is pending")
	errOverflow = errors.New("the stack is used up")
)

// New makes the companion of an instance: engine.Options.Companion.
func New(in *engine.Instance) engine.Companion {
	c := &state{in: in}
	c.ctx = callContext{context.Background(), c}
	return c
}

func of(in *engine.Instance) *state {
	c, _ := in.Companion().(*state)
	return c
}

// Worn reports whether so much was made that a sandbox had better not be reused as it is.
func Worn(in *engine.Instance) bool {
	c := of(in)
	return c != nil && c.begun && (len(c.instances) > smallUse || len(c.functions) > 4096 || len(c.memories) > smallUse ||
		len(c.tables) > smallUse || len(c.globals) > maxGlobals/2 || c.windows > 64<<20)
}

// Restored is engine.Companion's.
func (c *state) Restored() {
	if !c.begun {
		return
	}
	c.Close()
	*c = state{in: c.in, ctx: c.ctx}
}

// Close is engine.Companion's.
func (c *state) Close() {
	for i := len(c.made) - 1; i >= 0; i-- {
		_ = c.made[i].Close(context.Background()) // it has memory only
	}
	c.made = nil
}

func (c *state) owner() Owner {
	o, _ := c.in.User.(Owner)
	return o
}

// hold instantiates a holder.
func (c *state) hold(ctx context.Context, kind, elem byte) (api.Module, error) {
	l := c.owner().Library()
	l.mu.Lock()
	err := l.openLocked()
	rt := l.runtime
	l.mu.Unlock()
	if err != nil {
		return nil, err
	}
	m, err := rt.InstantiateModule(ctx, l.holder(kind, elem), plain())
	if err == nil {
		c.made = append(c.made, m)
	}
	return m, err
}

// guard ends every function that a tenant's code calls.
func (c *state) guard() {
	switch r := recover(); r {
	case nil:
	case errThrown, errOverflow:
		panic(r)
	default:
		c.in.Panicked(r)
	}
}

// moduleRef is a module as scripts of this sandbox have it.
type moduleRef struct {
	record moduleRecord
	module *Module // nil until it is needed
}

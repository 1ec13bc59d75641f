package control

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"edged/control/artifact"
	"edged/control/form"
	"edged/control/rules"
	"edged/control/state"
	"edged/internal/fault"
	"edged/internal/faultpoint"
)

// HandsOptions is what a member can do for the leader of the control room, on its own disk and with its own sandboxes. The funcs are those
// of Options; nil does as there.
type HandsOptions struct {
	Stores  map[string]Store
	Migrate func(ctx context.Context, m Migration) (Migrated, error)
	InUse   func(versionUID string) bool
	Retire  func(ctx context.Context, versionUIDs []string) error
	Detach  func(ctx context.Context, consumerUID, queueUID string) error

	// Reach returns when a plan that holds at least the command with this index is in use here.
	Reach func(ctx context.Context, index uint64) error
	// Caller names the member that sent a request if it votes about the control log, "" for anybody else.
	Caller func(*http.Request) string
	// Open opens bytes that a tenant holds, which come from another member if they are not here. NotFound: they are held nowhere.
	Open func(ctx context.Context, tenant string, digest artifact.Digest) (*artifact.Blob, error)
}

// handsRoot is where they are on the peer listener.
const handsRoot = peerRoot + "hands/"

// Hands does for the leader of the control room what only the member itself can do: with a store that lives here, or with what runs
// here. Calls for one UID are made one after the other, and none of a leader that another has followed: what comes late from it could
// make a store again that was deleted since.
type Hands struct {
	opt HandsOptions

	mu     sync.Mutex
	term   uint64             // the newest that an errand came from
	stores map[string]*inTurn // by UID, of those with an errand under way
}

// inTurn lets one errand at a time have a UID.
type inTurn struct {
	turn  chan struct{} // capacity 1: full while somebody has it
	users int           // guarded by Hands.mu
}

// NewHands returns the hands of a member. They start nothing.
func NewHands(opt HandsOptions) *Hands { return &Hands{opt: opt, stores: map[string]*inTurn{}} }

// enter waits for the turn of an errand about uid, which leave ends. Conflict for an errand of a leader that is none any more.
func (h *Hands) enter(ctx context.Context, uid string, term uint64) (leave func(), err error) {
	h.mu.Lock()
	t := h.stores[uid]
	if t == nil {
		t = &inTurn{turn: make(chan struct{}, 1)}
		h.stores[uid] = t
	}
	t.users++
	h.mu.Unlock()
	forget := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(h.stores, uid)
		}
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
	h.mu.Lock()
	late := term < h.term
	h.term = max(h.term, term)
	h.mu.Unlock()
	leave = func() { <-t.turn; forget() }
	if late {
		leave()
		return nil, fault.New(fault.Conflict, "control.hands", "another node leads the control room since")
	}
	return leave, nil
}

// storeErrand is work on one store, migrateErrand a Migration, runErrand work on what runs.
type storeErrand struct {
	Term  uint64       `json:"term"` // of the leader that sends it
	Do    string       `json:"do"`   // create, delete or exists
	Kind  string       `json:"kind"`
	Store StoreRequest `json:"store"`
}

type storeDone struct {
	There bool `json:"there"`
}

type migrateErrand struct {
	Term     uint64             `json:"term"`
	Tenant   []byte             `json:"tenant"` // bytes: a tenant need not be UTF-8
	Database string             `json:"database"`
	Epoch    uint64             `json:"epoch"`
	Files    []migrationFileRef `json:"files"`
}

type migrationFileRef struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

type migrateDone struct {
	Ledger []form.Entry `json:"ledger"` // null if it could not be read
	Effect state.Effect `json:"effect"`
	Failed bool         `json:"failed"`
	Seed   rules.Seed   `json:"seed"`
	Code   string       `json:"code"`
	Detail string       `json:"detail"`
}

type runErrand struct {
	Index    uint64   `json:"index"` // a plan with this command is in use first
	Versions []string `json:"versions"`
	Consumer string   `json:"consumer"`
	Queue    string   `json:"queue"`
}

type inUseDone struct {
	InUse bool `json:"inUse"`
}

// ServeHTTP answers below /control/v1/hands/ on the peer listener.
func (h *Hands) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what, below := strings.CutPrefix(r.URL.Path, handsRoot)
	if !below || h.opt.Caller(r) == "" {
		http.NotFound(w, r)
		return
	}
	switch what {
	case "store":
		reply(w, r, func(ctx context.Context, in *storeErrand) (any, error) { return h.store(ctx, in) })
	case "migrate":
		reply(w, r, func(ctx context.Context, in *migrateErrand) (any, error) { return h.migrate(ctx, in), nil })
	case "retire":
		reply(w, r, func(ctx context.Context, in *runErrand) (any, error) { return struct{}{}, h.retire(ctx, in) })
	case "detach":
		reply(w, r, func(ctx context.Context, in *runErrand) (any, error) { return struct{}{}, h.detach(ctx, in) })
	case "in-use":
		reply(w, r, func(_ context.Context, in *runErrand) (any, error) { return h.inUse(in), nil })
	default:
		http.NotFound(w, r)
	}
}

func (h *Hands) store(ctx context.Context, in *storeErrand) (out storeDone, err error) {
	const op = "control.hands"
	s := h.opt.Stores[in.Kind]
	if s == nil {
		return out, fault.Newf(fault.Unavailable, op, "this node has no %.16s store", in.Kind)
	}
	leave, err := h.enter(ctx, in.Store.UID, in.Term)
	if err != nil {
		return out, err
	}
	defer leave()
	switch in.Do {
	case "create":
		return out, s.Create(ctx, in.Store)
	case "delete":
		return out, s.Delete(ctx, in.Store)
	case "exists":
		out.There, err = s.Exists(ctx, in.Store.UID)
		return out, err
	}
	return out, fault.New(fault.Invalid, op, "a store can be created, deleted and asked for")
}

// migrate never fails as a call: what became of the attempt is its answer.
func (h *Hands) migrate(ctx context.Context, in *migrateErrand) migrateDone {
	m := Migration{Database: in.Database, Epoch: in.Epoch}
	for _, f := range in.Files {
		m.Files = append(m.Files, migrationFile(ctx, string(in.Tenant), f.Path, f.SHA256, h.opt.Open))
	}
	did := Migrated{Effect: state.EffectUnknown}
	leave, err := h.enter(ctx, in.Database, in.Term)
	switch {
	case err != nil:
	case h.opt.Migrate == nil:
		leave()
		err = fault.New(fault.Unavailable, "control.hands", "this node cannot apply migrations")
	default:
		did, err = h.opt.Migrate(ctx, m)
		leave()
	}
	out := migrateDone{Ledger: did.Ledger, Effect: did.Effect}
	if err != nil {
		out.Failed, out.Seed, out.Code, out.Detail = true, migrationSeed(err), fault.CodeOf(err).String(), fault.Detail(err)
	}
	return out
}

func (h *Hands) retire(ctx context.Context, in *runErrand) error {
	if err := h.opt.Reach(ctx, in.Index); err != nil || h.opt.Retire == nil {
		return err
	}
	faultpoint.Hit("control.retiring")
	return h.opt.Retire(ctx, in.Versions)
}

func (h *Hands) detach(ctx context.Context, in *runErrand) error {
	if err := h.opt.Reach(ctx, in.Index); err != nil || h.opt.Detach == nil {
		return err
	}
	return h.opt.Detach(ctx, in.Consumer, in.Queue)
}

func (h *Hands) inUse(in *runErrand) (out inUseDone) {
	for _, v := range in.Versions {
		out.InUse = out.InUse || h.opt.InUse != nil && h.opt.InUse(v)
	}
	return out
}

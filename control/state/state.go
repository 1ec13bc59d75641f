package state

import (
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"edged/control/form"
	"edged/control/rules"
)

// State is the whole control state of one cell.
type State struct {
	drivers form.Table

	mu      sync.RWMutex // guards everything below; Apply writes, all else reads
	changed changes
	tables

	fleetRevision uint64 // moves with every change of a member
}

// tables is what a snapshot holds, and the indexes that follow from it. Copies are cheap: the maps share their nodes.
type tables struct {
	last   int64  // time of the last command; never goes back
	births uint64 // number of creates so far
	secret []byte // made once; signs cursors
	marker []byte // sealed key of the marks of private inputs

	fleet fleet

	facades []string // sets that the program carries, ascending; nil: nobody told, and none is judged

	resources  *btree.Map[string, *Resource]  // UID
	operations *btree.Map[string, *Operation] // id
	replays    *btree.Map[string, *replay]    // key(lane, tenant, principal, scope, key)
	tombs      *btree.Map[string, *tombstone] // UID
	tokens     *btree.Map[string, *Token]     // id
	runs       *btree.Map[string, *runRow]    // trigger UID
	ledgers    *btree.Map[string, *ledgerRow] // database UID

	names    *btree.Map[string, string] // key(tenant, space, scope, name) to UID
	tenants  *btree.Map[string, string] // key(tenant, UID) to UID
	listed   *btree.Map[string, string] // key(tenant, "form", Form) or key(tenant, "space", Space), then UID, to UID
	claims   *btree.Map[string, string] // key(class, tenant, value) to UID
	routes   *btree.Map[string, string] // key(host name, age, UID) to UID, over all tenants
	holders  *btree.Map[string, Pin]    // key(target, role, use, source, pointer)
	open     *btree.Map[string, string] // key(createdAt, id) of unfinished Operations, to id
	retained *btree.Map[string, string] // key(retainUntil, id) of terminal Operations, to id
	hashes   *btree.Map[string, string] // token hash to token id
}

// New returns an empty state over a table of drivers.
func New(drivers form.Table) *State {
	s := &State{drivers: drivers}
	s.reset()
	return s
}

func (t *tables) reset() {
	*t = tables{
		fleet:     newFleet(),
		resources: new(btree.Map[string, *Resource]), operations: new(btree.Map[string, *Operation]),
		replays: new(btree.Map[string, *replay]), tombs: new(btree.Map[string, *tombstone]), tokens: new(btree.Map[string, *Token]), runs: new(btree.Map[string, *runRow]), ledgers: new(btree.Map[string, *ledgerRow]),
		names: new(btree.Map[string, string]), tenants: new(btree.Map[string, string]), claims: new(btree.Map[string, string]), listed: new(btree.Map[string, string]),
		routes: new(btree.Map[string, string]), holders: new(btree.Map[string, Pin]), open: new(btree.Map[string, string]),
		retained: new(btree.Map[string, string]), hashes: new(btree.Map[string, string]),
	}
}

// Apply carries out one command. It is the only method that changes the state, except Restore.
func (s *State) Apply(c *Command) Outcome {
	s.prepare(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, c.At)
	c.At = s.last // times never go back, whatever clock stamped them
	switch c.Kind {
	case CreateResource, UpdateResource, DeleteResource:
		d := s.decide(c)
		if d.Operation != nil || d.Refusal != nil {
			return d.Outcome
		}
		if d.Inspect != nil {
			return Outcome{Refusal: rules.Refuse(rules.ResourceBusy, "worker-version §3", "/bundle", nil, "the bundle changed while it was inspected")}
		}
		return s.accept(c, d)
	case StartOperation, DoubtOperation, EndOperation, AwaitInput, Requeue:
		return s.progress(c)
	case Replenish:
		return s.replenish(c)
	case SetMarker:
		s.marker = c.Secret
	case Reseal:
		return s.reseal(c)
	case SecretsAre:
		return s.secretsAre(c)
	case Sweep:
		return s.sweep(c)
	case AddToken:
		s.addToken(c.Token)
	case RemoveToken:
		s.removeToken(c.Token)
	case RecordRuns:
		return s.recordRuns(c)
	case EndRuns:
		s.endRuns(c)
	case Carry:
		return Outcome{Plan: s.carry(c)}
	case UseTokens:
		s.useTokens(c.Used)
	case Found:
		if s.secret == nil {
			s.secret = c.Secret
		}
	case FoundFleet, InviteMember, JoinFleet, ReportMember, DrainMember, RemoveMember, Disband:
		return s.applyFleet(c)
	case Vanish:
		return s.outOfBand(c)
	}
	return Outcome{}
}

// prepare parses a command's spec before the lock is taken: a large one must not hold up everybody else's reads.
func (s *State) prepare(c *Command) {
	var driver *form.Driver
	switch c.Kind {
	case CreateResource:
		driver = s.drivers[c.Form]
	case UpdateResource:
		if r := s.Resource(c.UID); r != nil {
			driver = r.driver
		}
	}
	if driver != nil {
		_, _ = c.parse(driver) // judged in its place in the order of checks
	}
}

// Decide judges a mutation without carrying it out: a refusal or a replayed Operation is final, an Inspect says what has
// to be found out first, and an empty Outcome means that Apply would accept it now.
func (s *State) Decide(c *Command) Outcome {
	s.prepare(c)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.decide(c).Outcome
}

// Secret returns the key that signs cursors, nil before the state was founded.
func (s *State) Secret() []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.secret
}

// Resource returns a live Resource of any tenant, nil if there is none. It is for the node itself: callers of the API
// go through Find.
func (s *State) Resource(uid string) *Resource {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.get(uid)
}

func (s *State) get(uid string) *Resource {
	r, _ := s.resources.Get(uid)
	return r
}

// Versions returns the UIDs of the live versions of a worker, in ascending order; for the node itself.
func (s *State) Versions(worker string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.sources(worker, rules.Version, form.UseOwner)
}

// Find returns a Resource that the actor may read, or why not: what is not the tenant's looks as if it never existed.
func (s *State) Find(a *Actor, uid string) (*Resource, *rules.Verdict) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(a, uid, Reader)
}

// FindOperation returns an Operation of a Resource that the actor may read.
func (s *State) FindOperation(a *Actor, id string) (*Operation, *rules.Verdict) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	op, _ := s.operations.Get(id)
	if op == nil || op.Tenant != a.Tenant {
		return nil, notFound("Operation")
	}
	if v := a.May(op.Space, Reader); v != nil {
		return nil, v
	}
	return op, nil
}

// Filter narrows a list; empty members do not.
type Filter struct{ Space, Name, Form string }

// List returns up to limit Resources that the actor may read, in ascending order of UID, strictly after the UID given;
// more says that others follow. With one filter or none a page costs the same wherever it stands; further filters skip.
func (s *State) List(a *Actor, f Filter, after string, limit int) (page []*Resource, more bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	take := func(r *Resource) bool {
		if r.UID <= after || f.Space != "" && r.Space != f.Space || f.Name != "" && r.Name != f.Name ||
			f.Form != "" && r.Form != f.Form || a.May(r.Space, Reader) != nil {
			return true
		}
		if len(page) == limit {
			more = true
			return false
		}
		page = append(page, r)
		return true
	}
	if f.Space != "" && f.Name != "" {
		if uid, ok := s.names.Get(key(a.Tenant, f.Space, "", f.Name)); ok {
			take(s.get(uid))
		}
		return page, more
	}
	index, prefix := s.tenants, key(a.Tenant)
	switch {
	case f.Form != "":
		index, prefix = s.listed, key(a.Tenant, "form", f.Form)
	case f.Space != "":
		index, prefix = s.listed, key(a.Tenant, "space", f.Space)
	}
	index.Ascend(prefix+after, func(k, uid string) bool {
		return strings.HasPrefix(k, prefix) && take(s.get(uid))
	})
	return page, more
}

// enlist puts a Resource into the indexes of names and lists; unlist takes it out.
func (s *State) enlist(r *Resource) {
	s.names.Set(key(r.Tenant, r.Space, r.Scope, r.Name), r.UID)
	s.tenants.Load(key(r.Tenant)+r.UID, r.UID)
	s.listed.Set(key(r.Tenant, "form", r.Form)+r.UID, r.UID)
	s.listed.Set(key(r.Tenant, "space", r.Space)+r.UID, r.UID)
}

func (s *State) unlist(r *Resource) {
	s.names.Delete(key(r.Tenant, r.Space, r.Scope, r.Name))
	s.tenants.Delete(key(r.Tenant) + r.UID)
	s.listed.Delete(key(r.Tenant, "form", r.Form) + r.UID)
	s.listed.Delete(key(r.Tenant, "space", r.Space) + r.UID)
}

// Unfinished returns the Operations that are not terminal, in the order of their acceptance.
func (s *State) Unfinished() []*Operation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*Operation
	s.open.Scan(func(_, id string) bool {
		if op, ok := s.operations.Get(id); ok {
			out = append(out, op)
		}
		return true
	})
	return out
}

// Operation returns an Operation of any tenant, nil if there is none; for the node itself.
func (s *State) Operation(id string) *Operation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	op, _ := s.operations.Get(id)
	return op
}

// Each calls fn for every live Resource in ascending order of UID until it returns false, as they were when the
// call began.
func (s *State) Each(fn func(*Resource) bool) {
	s.mu.Lock() // Copy marks the original too
	resources := s.resources.Copy()
	s.mu.Unlock()
	resources.Scan(func(_ string, r *Resource) bool { return fn(r) })
}

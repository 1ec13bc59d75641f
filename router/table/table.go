package table

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"

	"edged/sandbox/event"
)

// FullWeight is the sum of the weights of one worker, in basis points (worker-deployment §1).
const FullWeight = 10000

// Handler runs one version's fetch. Serve fills res and returns once the response head is known; a body that is still
// being produced comes as res.Stream. It must end soon after ctx is done. Safe for concurrent use.
type Handler interface {
	Serve(ctx context.Context, req *event.Request, res *event.Response) error
}

// Version is one runnable version of a worker. The zero value of an optional field means "none" or "no".
type Version struct {
	UID            string
	HasFetch       bool    // fetch is declared
	Handler        Handler // nil although HasFetch: the version cannot run here now
	Assets         Assets  // nil: the version has no assets
	RunWorkerFirst bool
	SPA            bool // notFoundHandling "single_page_application"
}

// Weighted is a version and its share in basis points.
type Weighted struct {
	*Version
	Weight int
}

// Worker is what a host name leads to.
type Worker struct {
	UID        string
	Deployment string     // UID of the active deployment, "" if there is none
	Versions   []Weighted // empty: no active deployment
	Party      *Party     // what it holds of the admission; nil: With gives it one of its own
}

// Bucket returns the numbers r, from up to but not to, for which Pick returns what it does for this one; 0, 0 for none.
func (w *Worker) Bucket(r uint32) (from, to int) {
	for _, v := range w.Versions {
		if to = from + v.Weight; int(r) < to {
			return from, to
		}
		from = to
	}
	return 0, 0
}

// Pick returns the version that r, uniform in [0, FullWeight), chooses: each version gets exactly its basis points
// (worker-deployment §3). It returns nil if there is no active deployment.
func (w *Worker) Pick(r uint32) *Version {
	for _, v := range w.Versions {
		if r < uint32(v.Weight) {
			return v.Version
		}
		r -= uint32(v.Weight)
	}
	return nil
}

// shards is in how many parts a Table keeps its hosts, so that a change copies one part and shares the others.
const shards = 256

// Table maps canonical host names to workers. Immutable; safe for concurrent use.
type Table struct {
	seed  maphash.Seed
	hosts [shards]map[string]*Worker // by the hash of the name
}

// Build makes a table. hosts is copied; the workers are shared and must not change any more (one without a Party gets its own here). The error lists every fault.
func Build(hosts map[string]*Worker) (*Table, error) {
	return (&Table{seed: maphash.MakeSeed()}).With(hosts, nil)
}

// With returns a table that leads the names in set to their workers, knows those in drop no more and is t otherwise. Its cost is
// that of the change and of a small part of the table for each name. The error lists every fault of set; there is no table then.
func (t *Table) With(set map[string]*Worker, drop []string) (*Table, error) {
	next := &Table{seed: t.seed, hosts: t.hosts}
	var own [shards]bool
	part := func(name string) map[string]*Worker {
		i := maphash.String(t.seed, name) % shards
		if !own[i] {
			next.hosts[i], own[i] = maps.Clone(next.hosts[i]), true
			if next.hosts[i] == nil {
				next.hosts[i] = map[string]*Worker{}
			}
		}
		return next.hosts[i]
	}
	for _, name := range drop {
		delete(part(name), name)
	}
	checked := make(map[*Worker]bool)
	var faults []error
	for name, w := range set {
		var buf [maxHost]byte
		if canonical, ok := appendCanonical(buf[:0], []byte(name)); !ok || string(canonical) != name {
			faults = append(faults, fmt.Errorf("host %q is not canonical", name))
		}
		if w == nil {
			faults = append(faults, fmt.Errorf("host %q leads to no worker", name))
			continue
		}
		part(name)[name] = w
		if !checked[w] {
			checked[w] = true
			if w.Party == nil {
				w.Party = new(Party)
			}
			faults = append(faults, w.check())
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("route table: %w", err)
	}
	return next, nil
}

func (w *Worker) check() error {
	var faults []error
	sum := 0
	seen := make(map[string]bool)
	for _, v := range w.Versions {
		switch {
		case v.Version == nil:
			return fmt.Errorf("worker %s: a version is missing", w.UID)
		case v.Weight < 1 || v.Weight > FullWeight:
			faults = append(faults, fmt.Errorf("worker %s: version %s has weight %d", w.UID, v.UID, v.Weight))
		case seen[v.UID]:
			faults = append(faults, fmt.Errorf("worker %s: version %s stands twice", w.UID, v.UID))
		case v.RunWorkerFirst && !v.HasFetch:
			faults = append(faults, fmt.Errorf("worker %s: version %s runs a worker first that it has not", w.UID, v.UID))
		}
		seen[v.UID] = true
		sum += v.Weight
	}
	if len(w.Versions) > 0 && sum != FullWeight {
		faults = append(faults, fmt.Errorf("worker %s: weights sum to %d", w.UID, sum))
	}
	return errors.Join(faults...)
}

// Match returns the worker of a Host value: port and letter case are ignored, one trailing dot is dropped (node-surface
// §7). It returns nil if no live endpoint or domain has the name, and does not allocate.
func (t *Table) Match(host []byte) *Worker {
	name := bare(host)
	if len(name) == 0 || len(name) > maxHost {
		return nil
	}
	if hasCapital(name) { // hardly ever: most clients send names in lower case
		var buf [maxHost]byte
		name, _ = appendCanonical(buf[:0], host)
	}
	return t.hosts[maphash.Bytes(t.seed, name)%shards][string(name)]
}

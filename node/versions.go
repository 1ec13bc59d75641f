package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"edged/control/plan"
	"edged/router/table"
	"edged/sandbox"
)

// deleteGrace is how long work that already runs may go on once its deployment's deletion has closed the door to new
// work (worker-deployment §4): long enough for an ordinary request, short enough for the one who waits for the deletion.
const deleteGrace = 5 * time.Second

// drainLimit is when what still runs on a version that a switch dropped is cancelled (worker-deployment §4).
const drainLimit = 15 * time.Minute

// openAtOnce bounds how many versions are compiled at the same time: each takes a core.
const openAtOnce = 2

// versions is what of the plan is loaded here. apply is called by one goroutine at a time, the rest by any.
type versions struct {
	box     *sandbox.Sandbox
	open    func(sha256 string) (io.ReadCloser, error)     // bytes by digest
	secrets func(*plan.Version) (map[string]string, error) // values of sensitive variables
	publish func(*table.Table)
	log     *slog.Logger
	base    context.Context // of the node's life: ends what is being loaded

	retirements sync.WaitGroup

	mu       sync.Mutex // guards the maps below
	loaded   map[string]*loadedVersion
	retiring map[string]*retirement
}

// loadedVersion is one version of the plan as it is served here.
type loadedVersion struct {
	route *table.Version
	code  *sandbox.Version // nil for a static-only version, and for one that could not be opened
	err   error            // why it could not; it is tried again with the next plan
}

// retirement is a version on its way out.
type retirement struct {
	hurry context.CancelFunc // ends the grace of what still runs
	done  chan struct{}      // closed when every context has physically ended
}

func newVersions(base context.Context, box *sandbox.Sandbox, open func(string) (io.ReadCloser, error), secrets func(*plan.Version) (map[string]string, error),
	publish func(*table.Table), log *slog.Logger) *versions {
	return &versions{box: box, open: open, secrets: secrets, publish: publish, log: log, base: base,
		loaded: map[string]*loadedVersion{}, retiring: map[string]*retirement{}}
}

// apply makes p what this node serves: it opens what is new, swaps the routing table, and retires what was dropped. A
// version that cannot be opened answers 503 and never keeps the others from changing.
func (v *versions) apply(p *plan.Plan) {
	wanted := wantedVersions(p)
	v.openMissing(wanted)
	v.mu.Lock()
	tbl, err := buildTable(p, v.loaded)
	v.mu.Unlock()
	if err != nil {
		v.log.Error("plan not applied; the one before goes on serving", "err", err, "index", p.Index)
		return
	}
	v.publish(tbl)
	v.retireUnwanted(wanted)
}

// wantedVersions returns the versions that an active deployment weights.
func wantedVersions(p *plan.Plan) map[string]*plan.Version {
	wanted := map[string]*plan.Version{}
	for _, w := range p.Workers {
		for _, weight := range w.Weights {
			wanted[weight.Version] = nil
		}
	}
	for i := range p.Versions {
		if _, ok := wanted[p.Versions[i].UID]; ok {
			wanted[p.Versions[i].UID] = &p.Versions[i]
		}
	}
	return wanted
}

func (v *versions) openMissing(wanted map[string]*plan.Version) {
	var opening sync.WaitGroup
	slots := make(chan struct{}, openAtOnce)
	for _, uid := range slices.Sorted(maps.Keys(wanted)) {
		pv := wanted[uid]
		v.mu.Lock()
		have := v.loaded[uid]
		v.mu.Unlock()
		if pv == nil || have != nil && have.err == nil {
			continue
		}
		slots <- struct{}{} // freed by an opening that always ends: loading has limits of its own
		opening.Go(func() {
			defer func() { <-slots }()
			lv := v.load(pv)
			if lv.err != nil {
				v.log.Error("version cannot run here", "version", pv.UID, "worker", pv.Worker, "err", lv.err)
			}
			v.mu.Lock()
			v.loaded[pv.UID] = lv
			v.mu.Unlock()
		})
	}
	opening.Wait()
}

func (v *versions) load(pv *plan.Version) *loadedVersion {
	lv := &loadedVersion{route: &table.Version{UID: pv.UID, HasFetch: slices.Contains(pv.Handlers, "fetch")}}
	if a := pv.Assets; a != nil {
		lv.route.Assets = v.assets(a)
		lv.route.RunWorkerFirst, lv.route.SPA = a.RunWorkerFirst, a.SPA
	}
	if pv.Bundle == nil {
		return lv
	}
	var secrets map[string]string
	graph, err := v.graph(pv.Bundle)
	if err == nil {
		secrets, err = v.secrets(pv)
	}
	if err == nil {
		lv.code, err = v.box.Open(v.base, sandbox.Spec{UID: pv.UID, Tenant: pv.Tenant, Worker: pv.Worker, Graph: graph,
			Handlers: pv.Handlers, Vars: pv.Vars, Secrets: secrets, SourceDigest: pv.Bundle.SHA256})
	}
	if err != nil {
		lv.err = fmt.Errorf("open version: %w", err)
		return lv
	}
	lv.route.Handler = lv.code
	return lv
}

// graph reads the modules of a bundle. Their sizes were checked when the bundle was verified; their digests are again.
func (v *versions) graph(b *plan.Bundle) (sandbox.Graph, error) {
	g := sandbox.Graph{Entrypoint: b.Entrypoint}
	for _, f := range b.Files {
		body, err := v.read(f)
		if err != nil {
			return sandbox.Graph{}, err
		}
		g.Modules = append(g.Modules, sandbox.Module{Path: f.Path, MediaType: f.MediaType, Bytes: body})
	}
	return g, nil
}

func (v *versions) read(f plan.File) ([]byte, error) {
	r, err := v.open(f.SHA256)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.Path, err)
	}
	defer r.Close()
	body := make([]byte, f.Size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Path, err)
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, fmt.Errorf("read %s: %w", f.Path, errAltered)
	}
	return body, nil
}

func (v *versions) assets(a *plan.Assets) table.Assets {
	out := make(table.Assets, len(a.Files))
	for _, f := range a.Files {
		out[f.Path] = &table.Asset{MediaType: f.MediaType, Size: f.Size,
			Open: func() (io.ReadCloser, error) { return v.open(f.SHA256) }}
	}
	return out
}

// retireUnwanted sends every loaded version that is not wanted on its way out.
func (v *versions) retireUnwanted(wanted map[string]*plan.Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid, lv := range v.loaded {
		if _, ok := wanted[uid]; ok {
			continue
		}
		delete(v.loaded, uid)
		if lv.code != nil {
			v.retireLocked(uid, lv.code)
		}
	}
}

func (v *versions) retireLocked(uid string, code *sandbox.Version) {
	ctx, cancel := context.WithTimeout(v.base, drainLimit)
	r := &retirement{hurry: cancel, done: make(chan struct{})}
	before := v.retiring[uid] // a version may be dropped, taken back and dropped again
	v.retiring[uid] = r
	v.retirements.Go(func() { // ends with Retire, which ctx bounds; close waits for it
		defer cancel()
		if err := code.Retire(ctx); err != nil {
			v.log.Error("version not retired", "version", uid, "err", err)
		}
		if before != nil {
			before.hurry()
			<-before.done
		}
		v.mu.Lock()
		if v.retiring[uid] == r {
			delete(v.retiring, uid)
		}
		v.mu.Unlock()
		close(r.done)
	})
}

// inUse reports whether contexts of a version still run, or could still start.
func (v *versions) inUse(uid string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.loaded[uid] != nil || v.retiring[uid] != nil
}

// retire returns when every context of the versions has physically ended: their deployment is being deleted and no plan
// weights them any more. What runs is cancelled after a short grace.
func (v *versions) retire(ctx context.Context, uids []string) error {
	grace := time.NewTimer(deleteGrace)
	defer grace.Stop()
	for _, uid := range uids {
		v.mu.Lock()
		r := v.retiring[uid]
		v.mu.Unlock()
		if r == nil {
			continue
		}
		for ended := false; !ended; {
			select {
			case <-r.done:
				ended = true
			case <-grace.C:
				v.hurry(uids)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

func (v *versions) hurry(uids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, uid := range uids {
		if r := v.retiring[uid]; r != nil {
			r.hurry()
		}
	}
}

// drain takes no new work for any version and returns when what still runs on them has ended: by then that is what was
// given to waitUntil, which may go on although its response is out and its client gone (module-worker §3.4). It returns
// in any case when ctx is done; close ends the rest. No apply may follow.
func (v *versions) drain(ctx context.Context) {
	v.mu.Lock()
	v.retireAllLocked()
	leaving := slices.Collect(maps.Values(v.retiring))
	v.mu.Unlock()
	for _, r := range leaving {
		select {
		case <-r.done:
		case <-ctx.Done():
			return
		}
	}
}

func (v *versions) retireAllLocked() {
	for uid, lv := range v.loaded {
		if lv.code != nil {
			v.retireLocked(uid, lv.code)
		}
	}
	v.loaded = map[string]*loadedVersion{}
}

// close retires everything at once and returns when it has ended. No apply may follow.
func (v *versions) close() error {
	v.mu.Lock()
	v.retireAllLocked()
	for _, r := range v.retiring {
		r.hurry()
	}
	v.mu.Unlock()
	v.retirements.Wait()
	return nil
}

// errAltered: what the disk gives is not what was verified. It is not run: an image made of it would be kept as that of
// the original.
var errAltered = errors.New("the bytes on the disk do not have their digest")

var errNoVersion = errors.New("a weighted version is not in the plan")

// buildTable turns a plan into the router's table.
func buildTable(p *plan.Plan, loaded map[string]*loadedVersion) (*table.Table, error) {
	workers := make(map[string]*table.Worker, len(p.Workers))
	for _, w := range p.Workers {
		tw := &table.Worker{UID: w.UID}
		for _, weight := range w.Weights {
			lv := loaded[weight.Version]
			if lv == nil {
				return nil, fmt.Errorf("worker %s: %w: %s", w.UID, errNoVersion, weight.Version)
			}
			tw.Versions = append(tw.Versions, table.Weighted{Version: lv.route, Weight: weight.Weight})
		}
		workers[w.UID] = tw
	}
	hosts := make(map[string]*table.Worker, len(p.Hosts))
	for _, h := range p.Hosts {
		hosts[h.Name] = workers[h.Worker]
	}
	return table.Build(hosts)
}

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
	"edged/sandbox/binding"
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
	open    func(sha256 string) (io.ReadCloser, error)                        // bytes by digest
	env     func(*plan.Version) ([]binding.Binding, map[string]string, error) // bindings and secrets
	run     func(*plan.Version, *plan.Bundle) (code, error)                   // runInSandbox; tests put another in its place
	publish func(*table.Table)
	byUID   sync.Map // workers as they are served, *table.Worker by UID
	names   sync.Map // SPACE/NAME of the plan's workers, by UID
	owners  sync.Map // UID of the worker of each of the plan's versions
	log     *slog.Logger
	base    context.Context // of the node's life: ends what is being loaded
	facades string          // the set that this program carries; a version of another one is not run

	retirements sync.WaitGroup

	planMu  sync.RWMutex // held by apply while it changes serving.plan, and by others who look into it
	serving serving      // apply's alone, but for that

	mu       sync.Mutex // guards the maps below
	loaded   map[string]*loadedVersion
	retiring map[string]*retirement
}

// code is a version's code as the sandbox runs it.
type code interface {
	table.Handler
	// Retire takes nothing new and returns nil when every context has physically ended; what still runs when ctx is done is stopped.
	Retire(ctx context.Context) error
}

// loadedVersion is one version of the plan as it is served here.
type loadedVersion struct {
	route *table.Version
	code  code  // nil for a static-only version, and for one that could not be opened
	ready bool  // as the plan said when it was opened
	err   error // why it could not; it is tried again with the next plan
}

// retirement is a version on its way out.
type retirement struct {
	hurry context.CancelFunc // ends the grace of what still runs
	done  chan struct{}      // closed when every context has physically ended
}

func newVersions(base context.Context, box *sandbox.Sandbox, open func(string) (io.ReadCloser, error), env func(*plan.Version) ([]binding.Binding, map[string]string, error),
	publish func(*table.Table), log *slog.Logger) *versions {
	v := &versions{box: box, open: open, env: env, publish: publish, log: log, base: base, serving: newServing(),
		loaded: map[string]*loadedVersion{}, retiring: map[string]*retirement{}}
	v.run = v.runInSandbox
	return v
}

func (v *versions) load(pv *plan.Version) *loadedVersion {
	lv := &loadedVersion{route: &table.Version{UID: pv.UID, HasFetch: slices.Contains(pv.Handlers, "fetch")}, ready: pv.Ready}
	if !pv.Ready || v.facades != "" && pv.Sealed != "" && pv.Sealed != v.facades {
		lv.err = errNotReady
		return lv
	}
	if a := pv.Assets; a != nil {
		bundle := v.serving.plan.Bundles[a.Bundle]
		if bundle == nil {
			lv.err = errNoBundle
			return lv
		}
		lv.route.Assets = v.assets(bundle)
		lv.route.RunWorkerFirst, lv.route.SPA = a.RunWorkerFirst, a.SPA
	}
	if pv.Bundle == "" {
		return lv
	}
	bundle := v.serving.plan.Bundles[pv.Bundle]
	if bundle == nil {
		lv.err = errNoBundle
		return lv
	}
	code, err := v.run(pv, bundle)
	if err != nil {
		lv.err = fmt.Errorf("open version: %w", err)
		return lv
	}
	lv.code, lv.route.Handler = code, code
	return lv
}

// runInSandbox opens the code of a version.
func (v *versions) runInSandbox(pv *plan.Version, bundle *plan.Bundle) (code, error) {
	graph, err := v.graph(bundle)
	if err != nil {
		return nil, err
	}
	bindings, secrets, err := v.env(pv)
	if err != nil {
		return nil, err
	}
	return v.box.Open(v.base, sandbox.Spec{UID: pv.UID, Tenant: pv.Tenant, Worker: pv.Worker, Graph: graph,
		Handlers: pv.Handlers, Vars: pv.Vars, Secrets: secrets, Bindings: bindings, SourceDigest: bundle.SHA256})
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

func (v *versions) assets(a *plan.Bundle) table.Assets {
	out := make(table.Assets, len(a.Files))
	for _, f := range a.Files {
		out[f.Path] = &table.Asset{MediaType: f.MediaType, Size: f.Size,
			Open: func() (io.ReadCloser, error) { return v.open(f.SHA256) }}
	}
	return out
}

// retireLocked owns a version until its contexts have ended: what runs may go on for the drain limit. A version whose end is not
// confirmed stays in use for good; only the end of this process proves it then.
func (v *versions) retireLocked(uid string, code code) {
	ctx, cancel := context.WithTimeout(v.base, drainLimit)
	r := &retirement{hurry: cancel, done: make(chan struct{})}
	before := v.retiring[uid] // a version may be dropped, taken back and dropped again
	v.retiring[uid] = r
	v.retirements.Go(func() { // ends with Retire, which ctx bounds; close waits for it
		defer cancel()
		if err := code.Retire(ctx); err != nil {
			v.log.Error("the end of a version is not confirmed; it cannot be deleted before a restart", "version", uid, "err", err,
				"do", "restart the node if the version has to be deleted now")
			return
		}
		if before != nil {
			before.hurry()
			select {
			case <-before.done:
			case <-v.base.Done():
				return
			}
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

var (
	errNotReady = errors.New("the version is not ready")
	errNoBundle = errors.New("a bundle of the version is not in the plan")
)

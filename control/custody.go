package control

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"edged/control/artifact"
	"edged/control/plan"
	"edged/control/state"
	"edged/internal/fault"
)

// keepBundles makes what this voter has in custody what the state says, until ctx is done: the leader alone fetches artifacts, and any voter
// may be the next leader.
func (c *Control) keepBundles(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-c.ready:
	}
	for wait := firstRetry; ; {
		uids, all := c.machine.bundles.take(ctx)
		if ctx.Err() != nil {
			return
		}
		if all {
			if err := c.allBundles(uids); err != nil {
				c.opt.Log.Warn("what is in custody cannot be listed", "err", err)
				c.machine.bundles.addAll()
			}
		}
		failed := false
		for uid := range uids {
			if err := c.keepBundle(ctx, uid); err != nil && ctx.Err() == nil {
				failed = true
				c.machine.bundles.add(uid)
				c.opt.Log.Warn("the bytes of a bundle are not kept here yet", "resource", uid, "err", err)
			} else if err == nil && c.late.has(uid) {
				signal(c.machine.changed)
			}
		}
		if !failed {
			wait = firstRetry
		} else if wait = min(2*wait, lastBundleRetry); !pause(ctx, wait/2+rand.N(wait/2)) {
			return
		}
	}
}

// lastBundleRetry is the longest pause between two tries to get bytes that this voter lacks: a version may wait for them.
const lastBundleRetry = 5 * time.Second

// bundlePatience bounds how long a plan waits for bytes. What else it changes, revocations among that, waits as long.
const bundlePatience = 10 * time.Second

// bringBundles returns when the bytes of a delta's bundles are here: until then what ran before goes on. After bundlePatience the plan is used
// without them, and once more when they have come.
func (c *Control) bringBundles(ctx context.Context, d *plan.Delta) {
	if c.opt.Fleet == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bundlePatience)
	defer cancel()
	for _, b := range d.Bundles.Put {
		err := c.keepBundle(ctx, b.Resource)
		for err != nil && pause(ctx, firstRetry) {
			err = c.keepBundle(ctx, b.Resource)
		}
		if err != nil {
			c.opt.Log.Error("the plan is used without the bytes of a bundle", "resource", b.Resource, "err", err,
				"do", "check that the other voters can be reached; upload the artifact again if none has it")
			c.late.add(b.Resource)
			c.machine.bundles.add(b.Resource)
		}
	}
}

// lateBundles are those of a plan that is in use without their bytes.
type lateBundles struct {
	uids sync.Map
	came atomic.Bool // the bytes of one: the plan is to be used once more
}

func (l *lateBundles) add(uid string) { l.uids.Store(uid, nil) }

// has tells whether a bundle was late, and forgets that.
func (l *lateBundles) has(uid string) bool {
	_, late := l.uids.LoadAndDelete(uid)
	if late {
		l.came.Store(true)
	}
	return late
}

// allBundles adds every artifact Resource, and whatever is in custody.
func (c *Control) allBundles(uids map[string]struct{}) error {
	c.state.Each(func(r *state.Resource) bool {
		if r.Index != nil {
			uids[r.UID] = struct{}{}
		}
		return true
	})
	return c.artifacts.InCustody(func(uid string) { uids[uid] = struct{}{} })
}

// keepBundle brings the custody of one Resource up to date.
func (c *Control) keepBundle(ctx context.Context, uid string) error {
	r := c.state.Resource(uid)
	if r == nil {
		return c.artifacts.Release(uid)
	}
	if _, whole, err := c.artifacts.Custody(uid); err != nil || whole || r.Index == nil {
		return err
	}
	from, err := c.otherVoters()
	if err != nil {
		return err
	}
	index, digests, err := indexOf(r)
	if err != nil {
		return err
	}
	if err := c.holdFrom(ctx, from, r.Tenant, digests); err != nil {
		return err
	}
	return c.artifacts.Adopt(artifact.Request{Tenant: r.Tenant, UID: uid, Digest: digests[0], Kind: artifactKinds[r.Driver().ArtifactKind]}, index)
}

// indexOf returns what an artifact Resource consists of, and the digests of its manifest and files.
func indexOf(r *state.Resource) (*artifact.Index, []artifact.Digest, error) {
	index := &artifact.Index{ManifestSHA256: r.Index.SHA256, Entrypoint: r.Index.Entrypoint}
	texts := []string{r.Index.SHA256}
	for _, f := range r.Index.Files {
		index.TotalBytes += f.Size
		index.Files = append(index.Files, artifact.File{Path: f.Path, SHA256: f.SHA256, MediaType: f.MediaType, ByteSize: f.Size})
		texts = append(texts, f.SHA256)
	}
	digests := make([]artifact.Digest, len(texts))
	for i, text := range texts {
		var ok bool
		if digests[i], ok = artifact.ParseDigest(text); !ok {
			return nil, nil, fault.Newf(fault.Invalid, "control.indexOf", "%s has a digest that is none", r.UID)
		}
	}
	return index, digests, nil
}

// bundleQueue are the Resources whose custody here may not be what the state says, at most as many as there are.
type bundleQueue struct {
	mu   sync.Mutex
	uids map[string]struct{}
	all  bool          // it may be any: the state was replaced
	wake chan struct{} // capacity 1
}

func newBundleQueue() *bundleQueue {
	return &bundleQueue{uids: map[string]struct{}{}, all: true, wake: make(chan struct{}, 1)}
}

func (q *bundleQueue) add(uid string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.uids[uid] = struct{}{}
	signal(q.wake)
}

func (q *bundleQueue) addAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = true
	signal(q.wake)
}

// take empties the queue; while it is empty it waits, until ctx is done at the latest.
func (q *bundleQueue) take(ctx context.Context) (uids map[string]struct{}, all bool) {
	for {
		q.mu.Lock()
		uids, all = q.uids, q.all
		q.uids, q.all = map[string]struct{}{}, false
		q.mu.Unlock()
		if len(uids) > 0 || all {
			return uids, all
		}
		select {
		case <-ctx.Done():
			return uids, false
		case <-q.wake:
		}
	}
}

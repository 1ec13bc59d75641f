package feed

import (
	"edged/control/artifact"
	"edged/control/plan"
)

// file is bytes that the plan needs here.
type file struct {
	digest artifact.Digest
	size   int64
}

// needs are the files of what is deployed: module graphs and assets of every version that a worker weights. They are pinned from before
// they are fetched until after the plan that no longer needs them is in use.
type needs struct {
	files    *artifact.Store
	byWorker map[string][]file
	touched  map[string]struct{} // workers whose files may be missing
	old      []file              // pinned for the plan in use
}

func (n *needs) init(files *artifact.Store) {
	n.files, n.byWorker, n.touched = files, map[string][]file{}, map[string]struct{}{}
}

// update pins what the workers that d touches need in p, the plan after d.
func (n *needs) update(p *plan.Plan, d *plan.Delta) {
	for uid := range touchedWorkers(d) {
		n.touched[uid] = struct{}{}
		n.old = append(n.old, n.byWorker[uid]...)
		delete(n.byWorker, uid)
		if now := filesOf(p, uid); len(now) > 0 {
			for _, f := range now {
				n.files.Pin(f.digest)
			}
			n.byWorker[uid] = now
		}
	}
}

// missing returns what the touched workers need and is not here, each file once.
func (n *needs) missing() (out []file) {
	seen := map[artifact.Digest]struct{}{}
	for uid := range n.touched {
		for _, f := range n.byWorker[uid] {
			if _, again := seen[f.digest]; again || n.files.Has(f.digest, f.size) {
				continue
			}
			seen[f.digest] = struct{}{}
			out = append(out, f)
		}
	}
	return out
}

// settled says that the plan of the last update is in use.
func (n *needs) settled() (err error) {
	for _, f := range n.old {
		if e := n.files.Unpin(f.digest); e != nil {
			err = e
		}
	}
	clear(n.touched)
	n.old = nil
	return err
}

// touchedWorkers are the workers that may need other files after d.
func touchedWorkers(d *plan.Delta) map[string]struct{} {
	touched := map[string]struct{}{}
	for _, w := range d.Workers.Put {
		touched[w.UID] = struct{}{}
	}
	for _, uid := range d.Workers.Gone {
		touched[uid] = struct{}{}
	}
	for _, v := range d.Versions.Put {
		touched[v.Worker] = struct{}{}
	}
	return touched
}

func filesOf(p *plan.Plan, worker string) (out []file) {
	w := p.Workers[worker]
	if w == nil {
		return nil
	}
	for _, share := range w.Weights {
		v := p.Versions[share.Version]
		if v == nil {
			continue
		}
		out = appendFiles(out, p.Bundles[v.Bundle])
		if v.Assets != nil {
			out = appendFiles(out, p.Bundles[v.Assets.Bundle])
		}
	}
	return out
}

func appendFiles(out []file, b *plan.Bundle) []file {
	if b == nil {
		return out
	}
	for _, f := range b.Files {
		if d, ok := artifact.ParseDigest(f.SHA256); ok { // the decoder lets no other in
			out = append(out, file{d, f.Size})
		}
	}
	return out
}

package node

import (
	"cmp"
	"slices"
	"time"
)

// heldMost bounds each list of a Holding.
const heldMost = 50

// Holding is what a drain waits for, or would wait for: as of one moment, the oldest of each kind first, each list bounded. It names workers,
// queues, schedules and Operations, never a host, path, key or address.
type Holding struct {
	State       string         `json:"state"` // serving, draining, or giving way
	Connections map[string]int `json:"connections"`
	AtWork      int            `json:"requestsAtWork"`
	Waiting     int            `json:"requestsWaiting"` // of these, for admission
	Requests    []HeldWork     `json:"requests"`
	Tails       []HeldWork     `json:"tails"` // streams and tasks of waitUntil that go on after their response head or settlement
	Tasks       []HeldWork     `json:"tasks"` // queue batches, cron runs, control requests, uploads
	TasksInAll  int            `json:"tasksInAll"`
	Operations  []string       `json:"operations"` // under way; the next start goes on with them, so they hold nothing up
	Followers   int            `json:"followers"`  // members that read the plan from this one
}

// HeldWork is one thing at work, or several of one version.
type HeldWork struct {
	Kind    string        `json:"kind"`
	Worker  string        `json:"worker,omitempty"` // SPACE/NAME, or the UID of one that is not in the plan any more
	Version string        `json:"version,omitempty"`
	Name    string        `json:"name,omitempty"`
	Count   int           `json:"count"`
	Age     time.Duration `json:"ageNanoseconds"` // of the oldest
}

// Holding looks at all that is at work. It may be called from when New has returned until Rest has. Any goroutine.
func (n *Node) Holding() Holding {
	now := time.Now()
	r := n.router.Holding(now, heldMost)
	h := Holding{State: n.state(), AtWork: r.Working, Waiting: r.Waiting, Requests: []HeldWork{}, Tails: []HeldWork{}, Tasks: []HeldWork{},
		Operations:  []string{},
		Connections: map[string]int{"idle": r.Idle, "opening": r.Opening, "working": r.Working, "relayed": r.Relayed}}
	for _, q := range r.Oldest {
		w := HeldWork{Kind: "request", Version: q.Version, Worker: n.workerName(n.versions.workerOf(q.Version)), Count: 1, Age: q.Age}
		if q.Answering {
			w.Kind = "answer"
		}
		h.Requests = append(h.Requests, w)
	}
	for _, v := range n.box.Holding() {
		if v.Tails > 0 {
			h.Tails = append(h.Tails, HeldWork{Kind: "stream or waitUntil", Version: v.Version, Worker: n.workerName(v.Worker), Count: v.Tails, Age: now.Sub(v.OldestTail)})
		}
	}
	for _, t := range n.tasks.list() {
		h.Tasks = append(h.Tasks, HeldWork{Kind: t.kind, Name: t.name, Worker: n.workerName(t.worker), Count: 1, Age: now.Sub(t.since)})
	}
	h.TasksInAll = len(h.Tasks)
	h.Tails, h.Tasks = oldest(h.Tails), oldest(h.Tasks)
	if n.control != nil {
		h.Operations = slices.Sorted(slices.Values(n.control.Working()))
		h.Operations = h.Operations[:min(len(h.Operations), heldMost)]
	}
	if n.fleet != nil && n.fleet.server != nil {
		h.Followers = n.fleet.server.Followers()
	}
	return h
}

// oldest sorts and bounds a list.
func oldest(list []HeldWork) []HeldWork {
	slices.SortFunc(list, func(a, b HeldWork) int { return cmp.Compare(b.Age, a.Age) })
	return list[:min(len(list), heldMost)]
}

func (n *Node) state() string {
	switch {
	case n.handing.Load() || n.events.ended.Err() != nil:
		return "giving way"
	case n.ready.get()["node"] != "":
		return n.ready.get()["node"]
	}
	return "serving"
}

// workerName is how people know a worker.
func (n *Node) workerName(uid string) string {
	if name, ok := n.versions.names.Load(uid); ok {
		return name.(string)
	}
	return uid
}

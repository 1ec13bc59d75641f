package control

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"edged/control/form"
	"edged/internal/testkit"
)

// fleetCall is one request about one host name: a create that claims it, a delete of the Resource that had it, or a read of that.
type fleetCall struct {
	claimCall
	read string // UID; "" is no read
}

var fleetModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			claim := op.Input.(fleetCall).claim
			by[claim] = append(by[claim], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: claimModel.Init,
	Step: func(state, input, output any) (bool, any) {
		in := input.(fleetCall)
		if in.read != "" {
			return (state.(string) == in.read) == output.(claimAnswer).ok, state
		}
		return claimModel.Step(state, in.claimCall, output)
	},
}

// Issue 7.1: while members are cut off, held still and killed, the leader first of all, what any voter answers is the history of one
// register for each claim. A client whose request was answered with 503 repeats it with its key, at any voter.
func TestFleetIsLinearizable(t *testing.T) {
	f := startFleet(t, 3, nil)
	n := f.leader()
	worker := n.made(form.ModuleWorkerURL, "web", spec{})
	n.made(form.WorkerDeploymentURL, "d", weighted(worker, n.version(worker, "v", "fetch"), 10000))
	ctx, stop := context.WithTimeout(t.Context(), 12*time.Second)
	defer stop()
	seed := testkit.Rand(t)
	start := time.Now()
	var mu sync.Mutex // guards the two below
	var history []porcupine.Operation
	last := map[string]string{}
	var clients sync.WaitGroup
	for id := range 5 {
		rng := seed.Uint64()
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				rng = rng*6364136223846793005 + 1442695040888963407
				in := fleetCall{claimCall: claimCall{claim: fmt.Sprintf("h%d.test", rng>>40%3)}}
				mu.Lock()
				switch uid := last[in.claim]; rng >> 50 % 3 {
				case 0:
					in.delete = uid
				case 1:
					in.read = uid
				}
				mu.Unlock()
				call := time.Since(start)
				out := f.askAnywhere(in, worker, fmt.Sprintf("c%d-%d", id, i), rng)
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: int64(call), Return: int64(time.Since(start))})
				if out.uid != "" {
					last[in.claim] = out.uid
				}
				mu.Unlock()
			}
		})
	}
	f.disturb(ctx, seed.Uint64())
	clients.Wait()
	if got := porcupine.CheckOperationsTimeout(fleetModel, history, time.Minute); got != porcupine.Ok {
		t.Errorf("the history is %s", got)
		for _, op := range history {
			t.Logf("%+v", op)
		}
	}
	won := 0
	for _, op := range history {
		if op.Output.(claimAnswer).uid != "" {
			won++
		}
	}
	if won < 10 {
		t.Errorf("of %d operations %d won a claim: the history shows little", len(history), won)
	}
}

// disturb cuts off, holds still and kills until ctx is done; then all is well again.
func (f *fleet) disturb(ctx context.Context, rng uint64) {
	for ctx.Err() == nil {
		rng = rng*6364136223846793005 + 1442695040888963407
		victim := f.nodes[f.names[rng>>40%uint64(len(f.names))]]
		if rng>>50%3 != 0 {
			victim = f.leader()
		}
		rest := f.others(victim)
		what := rng >> 55 % 3
		switch what {
		case 0:
			f.wires.cutOff(victim.name)
		case 1:
			f.wires.hold(victim.name)
		case 2:
			victim.stop()
		}
		f.leader(rest...)
		pause(ctx, beat) // some requests meet the fleet like this
		f.wires.heal()
		if what == 2 {
			f.start(victim)
		}
		f.poll(victim.c.Ready)
	}
}

// askAnywhere carries a call out, at another voter after each answer that is none.
func (f *fleet) askAnywhere(in fleetCall, worker, name string, rng uint64) claimAnswer {
	key := freshKey()
	at := func(method, path string, body any, headers ...string) (a answer) {
		f.poll(func() bool {
			rng = rng*6364136223846793005 + 1442695040888963407
			m := f.nodes[f.names[rng>>40%uint64(len(f.names))]]
			m.gate.RLock()
			defer m.gate.RUnlock()
			if !m.up {
				return false
			}
			a = m.do(method, path, body, headers...)
			return a.status != 503
		})
		return a
	}
	ended := func(a answer) answer {
		f.poll(func() bool {
			op := at("GET", root+"/operations/"+a.text(f.t, "id"), nil)
			if !slices.Contains([]string{"succeeded", "failed"}, op.text(f.t, "status")) {
				return false
			}
			a = op
			return true
		})
		return a
	}
	switch {
	case in.read != "":
		return claimAnswer{ok: at("GET", root+"/resources/"+in.read, nil).status == 200}
	case in.delete != "":
		a := at("DELETE", root+"/resources/"+in.delete, nil, "Idempotency-Key", key, "Takoform-Expected-Generation", "1")
		if a.status == 200 || a.status == 202 {
			return claimAnswer{ok: ended(a).text(f.t, "status") == "succeeded"}
		}
		f.poll(func() bool { return at("GET", root+"/resources/"+in.delete, nil).status != 200 })
		return claimAnswer{}
	}
	a := at("POST", root+"/resources", spec{"form": form.CustomDomainURL, "space": "default", "name": name,
		"spec": spec{"hostname": in.claim, "worker": ref(worker)}}, "Idempotency-Key", key)
	if a.status == 200 || a.status == 202 {
		return claimAnswer{ok: true, uid: ended(a).text(f.t, "resourceUid")}
	}
	return claimAnswer{holder: holderIn(a.text(f.t, "detail"))}
}

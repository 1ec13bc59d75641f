package control

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"edged/control/form"
	"edged/internal/testkit"
)

// claimCall is one request about one exclusive claim: a create that wants it, or a delete of the Resource that had it.
type claimCall struct {
	claim  string
	delete string // UID; "" creates
}

// claimAnswer is what came of it: a create that was accepted has a UID, one that was refused names the holder.
type claimAnswer struct {
	ok          bool
	uid, holder string
}

// claimModel is a register that holds at most one UID.
var claimModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, op := range history {
			claim := op.Input.(claimCall).claim
			by[claim] = append(by[claim], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range by {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		holder, in, out := state.(string), input.(claimCall), output.(claimAnswer)
		switch {
		case in.delete != "" && out.ok:
			return holder == in.delete, ""
		case in.delete != "":
			return holder != in.delete, holder
		case out.ok:
			return holder == "", out.uid
		}
		return holder != "" && holder == out.holder, holder
	},
}

// CL-3, CL-6, CL-8 and WA-1.1 under concurrent clients: every history of creates and deletes is one of a register that holds at
// most one Resource, and a refusal names the one that holds it.
func TestClaimsAreLinearizable(t *testing.T) {
	f := newFakes()
	n := startWithStores(t, t.TempDir(), f, nil)
	w, other := n.made(form.ModuleWorkerURL, "web", spec{}), n.made(form.ModuleWorkerURL, "other", spec{})
	n.made(form.WorkerDeploymentURL, "d", weighted(w, n.version(w, "v", "fetch", "queue"), 10000))
	ov := n.version(other, "ov", "fetch")
	q := n.made(form.QueueURL, "q", spec{"messageRetentionSeconds": 60})
	claims := map[string]struct {
		form string
		spec spec
	}{
		"hostname":   {form.CustomDomainURL, spec{"hostname": "one.test", "worker": ref(w)}},
		"endpoint":   {form.WorkerEndpointURL, spec{"worker": ref(w)}},
		"deployment": {form.WorkerDeploymentURL, weighted(other, ov, 10000)},
		"consumer": {form.QueueConsumerURL, spec{"worker": ref(w), "queue": ref(q), "maxBatchSize": 1, "maxBatchTimeoutSeconds": 0,
			"maxConcurrency": 1, "maxRetries": 0, "retryDelaySeconds": 0}},
	}
	names := []string{"hostname", "endpoint", "deployment", "consumer"}
	start := time.Now()
	var mu sync.Mutex // guards the two below
	var history []porcupine.Operation
	last := map[string]string{}
	var clients sync.WaitGroup
	seed := testkit.Rand(t)
	for id := range 8 {
		rng := seed.Uint64()
		clients.Go(func() {
			for i := range 24 {
				rng = rng*6364136223846793005 + 1442695040888963407
				in := claimCall{claim: names[rng>>40%4]}
				mu.Lock()
				if rng>>50%2 == 0 {
					in.delete = last[in.claim]
				}
				mu.Unlock()
				call := time.Since(start)
				var out claimAnswer
				if in.delete == "" {
					out = n.claim(claims[in.claim].form, fmt.Sprintf("c%d-%d", id, i), claims[in.claim].spec)
				} else {
					out = n.unclaim(in.delete)
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: int64(call), Return: int64(time.Since(start))})
				if out.uid != "" {
					last[in.claim] = out.uid
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	if got := porcupine.CheckOperationsTimeout(claimModel, history, time.Minute); got != porcupine.Ok {
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
	if won < 8 {
		t.Errorf("only %d claims were won: the history shows little", won)
	}
}

func (n *node) claim(formURL, name string, s spec) claimAnswer {
	a := n.create(formURL, name, s)
	if a.status == 200 || a.status == 202 {
		return claimAnswer{ok: true, uid: n.succeeded(a)}
	}
	return claimAnswer{holder: holderIn(a.text(n.t, "detail"))}
}

// holderIn returns the last UID that the detail of a refusal names: the holder of the claim.
func holderIn(detail string) string {
	for _, word := range strings.FieldsFunc(detail, func(r rune) bool { return r == ' ' || r == '(' || r == ')' }) {
		if strings.HasPrefix(word, "r-") {
			detail = word
		}
	}
	return detail
}

// unclaim deletes a Resource at its first generation. What was deleted, or is being deleted by somebody else, is no effect of
// this call; it waits for the other one's end, so that the answer does not come before the effect.
func (n *node) unclaim(uid string) claimAnswer {
	a := n.do("DELETE", root+"/resources/"+uid, nil, "Idempotency-Key", freshKey(), "Takoform-Expected-Generation", "1")
	if a.status == 200 || a.status == 202 {
		n.succeeded(a)
		return claimAnswer{ok: true}
	}
	n.poll(func() bool { return n.get(uid).status != 200 })
	return claimAnswer{}
}

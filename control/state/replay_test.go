package state

import (
	"bytes"
	"fmt"
	"testing"

	"edged/control/form"
)

// Replaying the same encoded commands gives the same bytes: nothing in Apply depends on anything else.
func TestReplayIsDeterministic(t *testing.T) {
	l := newLab(t)
	var log [][]byte
	record := func(c *Command, out Outcome) {
		raw, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, raw)
	}
	step := func(c *Command) Outcome { out := l.apply(c); record(c, out); return out }
	step(l.createCommand(form.ModuleWorkerURL, "w", object{}))
	b := step(l.createCommand(form.WorkerBundleURL, "b", artifactSpec()))
	end := &Command{Kind: EndOperation, At: l.now, Operation: b.Operation.ID, OK: true, Index: l.index("b")}
	record(end, l.s.Apply(end))
	for i := range 5 {
		step(l.createCommand(form.WorkerVersionURL, fmt.Sprint("v", i), object{"worker": ref("w"), "bundle": ref("b"), "handlers": []string{"fetch"}, "vars": object{"N": i, "M": object{"z": 1, "a": 2}}}))
	}
	step(l.createCommand(form.WorkerDeploymentURL, "d", weights("w", "v0", 5000, "v1", 5000)))
	step(l.createCommand(form.WorkerEndpointURL, "e", endpoint("w")))
	again := New(form.Builtin())
	for _, raw := range log {
		c, err := DecodeCommand(raw)
		if err != nil {
			t.Fatal(err)
		}
		again.Apply(c)
	}
	want := l.bytesOf()
	l.s = again
	if got := l.bytesOf(); !bytes.Equal(got, want) {
		t.Errorf("replay gives\n%s\nwant\n%s", got, want)
	}
}

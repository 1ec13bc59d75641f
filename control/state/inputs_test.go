package state

import (
	"bytes"
	"fmt"
	"testing"

	"edged/control/form"
	"edged/control/rules"
)

// given makes Inputs as the room would, of values that stand for their own marks and boxes.
func given(uid, key, marker string, values ...string) *Inputs {
	in := &Inputs{Marker: marker, Whole: []byte(key), Expires: 1 << 50}
	for i := 0; i < len(values); i += 2 {
		in.Names = append(in.Names, values[i])
		in.Marks = append(in.Marks, []byte(uid+values[i]+values[i+1]))
		in.Boxes = append(in.Boxes, []byte("sealed "+values[i+1]))
		in.Whole = fmt.Appendf(in.Whole, "|%s=%s", values[i], values[i+1])
	}
	return in
}

// private gives a command private inputs.
func private(c *Command, marker string, values ...string) *Command {
	c.Private, c.Inputs = true, given(c.UID, InputKey(c), marker, values...)
	return c
}

func (l *lab) secretSpec(worker string, names ...string) object {
	s := l.versionSpec(worker, "fetch")
	s["requiredSensitiveVars"] = names
	return s
}

// worker-version §5: what is sealed stays sealed; it is in the snapshot and comes back with it, readiness included.
func TestSecretsInTheState(t *testing.T) {
	l := newLab(t)
	w := l.worker("w")
	spec := l.secretSpec(w, "B", "A")
	op := l.ok(l.apply(private(l.createCommand(form.WorkerVersionURL, "v", spec), "m1", "A", "1", "B", "2")))
	if op.Command != nil {
		t.Error("the transfer values outlive the Operation")
	}
	if s := l.s.Resource("v").Secrets; string(s.Boxes[1]) != "sealed 2" || s.Lost {
		t.Errorf("kept %+v", s)
	}
	l.refused(l.apply(private(l.command(UpdateResource, "v", spec), "m1", "A", "1", "B", "3")), inputsRule, "B", "differs")
	l.seed(l.apply(private(l.command(UpdateResource, "v", spec), "m2", "A", "1", "B", "2")), rules.InputsUnverifiable)
	l.ok(l.apply(private(l.command(UpdateResource, "v", spec), "m1", "A", "1", "B", "2")))
	l.deploy(w, "d", "v", 10000)
	before := l.revisions()
	l.s.Apply(&Command{Kind: SecretsAre, UID: "v", Lost: true})
	if got := l.moved(before); got != "d v w" {
		t.Errorf("lost values moved %s", got)
	}
	if l.served("v")["observed"].(object)["ready"] != false {
		t.Error("ready without its values")
	}
	l.seed(l.apply(private(l.command(UpdateResource, "v", spec), "m1", "A", "1", "B", "2")), rules.InputsUnverifiable)
	l.s.Apply(&Command{Kind: SetMarker, Secret: []byte("key")})
	was := l.bytesOf()
	m := newLab(t)
	if err := m.s.Restore(bytes.NewReader(was)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.bytesOf(), was) || string(m.s.Marker()) != "key" {
		t.Error("the snapshot does not hold all")
	}
	before = l.revisions()
	l.s.Apply(&Command{Kind: Reseal, UID: "v", Inputs: &Inputs{Boxes: [][]byte{[]byte("x"), []byte("y")}}})
	l.s.Apply(&Command{Kind: Reseal, UID: "v", Inputs: &Inputs{Boxes: [][]byte{[]byte("x")}}}) // fits nothing
	l.s.Apply(&Command{Kind: Reseal, UID: "w", Inputs: &Inputs{}})
	if s := l.s.Resource("v").Secrets; string(s.Boxes[1]) != "y" || l.moved(before) != "" {
		t.Errorf("sealed anew: %+v, moved %s", s, l.moved(before))
	}
}

// host-api §7.1: the transitions that lead to and from waiting_input, and none besides them.
func TestWaitingForInput(t *testing.T) {
	drivers := form.NewTable(&form.Driver{URL: "x:vault", Kind: "Vault", Private: true,
		Fields: []form.Field{{Name: "a", Required: true, Read: func(s *form.Spec, _ string, val any) (any, *rules.Verdict) {
			s.Sensitive = []string{"A"}
			return val, nil
		}}},
		Outside: func(form.Action) bool { return true },
		Observe: func(*form.Observation) (any, *rules.Cause) { return object{}, nil }})
	for _, row := range []struct {
		name  string
		kinds []Kind
		want  Status
	}{
		{"queued waits", []Kind{AwaitInput}, Waiting},
		{"waiting does not start", []Kind{AwaitInput, StartOperation}, Waiting},
		{"waiting is not in doubt", []Kind{AwaitInput, DoubtOperation}, Waiting},
		{"replenished is queued", []Kind{AwaitInput, Replenish}, Queued},
		{"hopeless is queued", []Kind{AwaitInput, Requeue}, Queued},
		{"replenished starts", []Kind{AwaitInput, Replenish, StartOperation}, Running},
		{"running does not wait", []Kind{StartOperation, AwaitInput}, Running},
		{"reconciling does not wait", []Kind{StartOperation, DoubtOperation, AwaitInput}, Reconciling},
		{"running is not replenished", []Kind{StartOperation, Replenish}, Running},
		{"queued is not requeued", []Kind{Requeue}, Queued},
		{"ended does not wait", []Kind{StartOperation, EndOperation, AwaitInput}, Succeeded},
	} {
		l := newLab(t)
		l.s = New(drivers)
		c := private(l.createCommand("x:vault", "v", object{"a": 1}), "m", "A", "1")
		op := l.apply(c).Operation
		for _, kind := range row.kinds {
			cmd := &Command{Kind: kind, Operation: op.ID, OK: true, Reason: InputsExpired, Actor: l.actor}
			if kind == Replenish {
				cmd.Inputs = given("v", op.Key, "m", "A", "1")
			}
			l.s.Apply(cmd)
		}
		now := l.s.Operation(op.ID)
		if now.Status != row.want {
			t.Errorf("%s: is %s, want %s", row.name, now.Status, row.want)
		}
		if in := now.Command; row.want == Waiting && (in.Inputs.Boxes != nil || now.Effect != EffectNone || now.Reason != InputsExpired) {
			t.Errorf("%s: waits with %+v %+v", row.name, in.Inputs, now)
		}
		if (now.Reason != "") != (row.want == Waiting) {
			t.Errorf("%s: keeps the reason %q", row.name, now.Reason)
		}
	}
}

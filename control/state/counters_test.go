package state

import (
	"bytes"
	"fmt"
	"testing"

	"edged/control/rules"
)

// host-api §2.2: a counter that reaches the largest integer stays there and never wraps. A mutation is refused before its generation
// would; a revision stops.
func TestCountersEnd(t *testing.T) {
	l := newLab(t)
	w := l.worker("w")
	last := *l.s.Resource(w)
	last.Generation, last.ObservedGeneration, last.Revision = MaxCounter-1, MaxCounter-1, MaxCounter-1
	l.s.store(&last)
	l.ok(l.update(w, object{}))
	check := func(when string) {
		t.Helper()
		if r := l.s.Resource(w); r.Generation != 9007199254740991 || r.Revision != 9007199254740991 {
			t.Errorf("%s generation is %d and revision %d", when, r.Generation, r.Revision)
		}
	}
	check("after the last mutation")
	for _, out := range []Outcome{l.update(w, object{}), l.delete(w)} {
		l.seed(out, rules.GenerationConflict)
		l.refused(out, "host-api §2.2", "exhausted")
	}
	l.deploy(w, "d", l.version(w, "v", "fetch"), 10000) // what is rendered goes on
	check("after another rendering")
	if got := fmt.Sprint(l.served(w)["observed"]); got != "map[activeDeploymentUid:d ready:true]" {
		t.Errorf("observed is %s", got)
	}
	if raw := Representation(l.s.Resource(w)); !bytes.Contains(raw, []byte(`"generation":9007199254740991,`)) {
		t.Errorf("it reads %s", raw)
	}
}

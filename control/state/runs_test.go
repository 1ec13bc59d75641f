package state

import (
	"bytes"
	"testing"

	"edged/control/form"
)

// record offers a match and reports whether it is on record.
func (l *lab) record(trigger string, generation uint64, minute int64) bool {
	out := l.s.Apply(&Command{Kind: RecordRuns, At: l.now, Runs: []Run{{Trigger: trigger, Generation: generation, Minute: minute}}})
	return len(out.Runs) == 1
}

func (l *lab) done(run Run) { l.s.Apply(&Command{Kind: EndRuns, At: l.now, Runs: []Run{run}}) }

// attachments §4.3: a match is recorded during its own minute, once, for the expression that is in force, and not while
// the run before is open; an update and a delete are exact boundaries; a recorded match is owed until it is done.
func TestRunsOfCronTriggers(t *testing.T) {
	l := newLab(t)
	w := l.serving("w")
	l.ok(l.create(form.CronTriggerURL, "c", cron(w, "*/5 * * * *")))
	l.now = 110 * minuteMillis
	for _, c := range []struct {
		what       string
		trigger    string
		generation uint64
		minute     int64
	}{
		{"a minute that is over", "c", 1, 109 * minuteMillis},
		{"a minute that has not begun", "c", 1, 111 * minuteMillis},
		{"no minute", "c", 1, 110*minuteMillis - 1},
		{"another generation", "c", 2, 110 * minuteMillis},
		{"no trigger", "x", 1, 110 * minuteMillis},
		{"another Resource", "w", 1, 110 * minuteMillis},
	} {
		if l.record(c.trigger, c.generation, c.minute) {
			t.Errorf("%s was recorded", c.what)
		}
	}
	if !l.record("c", 1, 110*minuteMillis) {
		t.Fatal("a match in its minute was not recorded")
	}
	want := Run{Trigger: "c", Worker: w, Cron: "*/5 * * * *", Generation: 1, Minute: 110 * minuteMillis}
	if got := l.s.Runs(); len(got) != 1 || got[0] != want {
		t.Fatalf("owed are %v, want %v", got, want)
	}
	l.now += minuteMillis
	if l.record("c", 1, 111*minuteMillis) {
		t.Error("a match was recorded while the run before is open")
	}
	l.done(want)
	if l.record("c", 1, 110*minuteMillis) {
		t.Error("a minute was recorded twice")
	}
	if !l.record("c", 1, 111*minuteMillis) {
		t.Error("a match after the run was not recorded")
	}
	l.done(want) // of a run that is over: changes nothing
	if got := l.s.Runs(); len(got) != 1 || got[0].Minute != 111*minuteMillis {
		t.Errorf("owed are %v", got)
	}
	l.done(Run{Trigger: "c", Minute: 111 * minuteMillis})

	l.now = 120 * minuteMillis
	l.ok(l.update("c", cron(w, "0 * * * *")))
	if l.record("c", 1, 120*minuteMillis) {
		t.Error("the expression before the update matched")
	}
	if !l.record("c", 2, 120*minuteMillis) {
		t.Error("the updated expression did not match")
	}

	// A snapshot holds what is owed, and what can never be recorded again.
	r := newLab(t)
	if err := r.s.Restore(bytes.NewReader(l.bytesOf())); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.bytesOf(), l.bytesOf()) || len(r.s.Runs()) != 1 {
		t.Error("a restored state differs")
	}

	l.ok(l.delete("c"))
	l.now += minuteMillis
	if l.record("c", 3, 121*minuteMillis) {
		t.Error("a deleted trigger matched")
	}
	if got := l.s.Runs(); len(got) != 1 || got[0].Minute != 120*minuteMillis {
		t.Errorf("after the delete %v are owed, want the recorded one", got)
	}
	l.done(l.s.Runs()[0])
	if n := l.s.runs.Len(); n != 0 {
		t.Errorf("%d rows stay of a trigger that is gone", n)
	}
}

package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var start = time.Date(2026, 12, 30, 23, 58, 30, 0, time.UTC)

func set(t *testing.T, c *calendar, now time.Time, table ...Trigger) {
	t.Helper()
	if err := c.set(table, now); err != nil {
		t.Fatal(err)
	}
}

func every(uid string, generation uint64) Trigger {
	return Trigger{UID: uid, Worker: "w", Cron: "* * * * *", Generation: generation}
}

func names(matches []Match) string {
	s := ""
	for _, m := range matches {
		s += fmt.Sprintf("%s/%d@%s ", m.Trigger, m.Generation, time.UnixMilli(m.Minute).UTC().Format("15:04"))
	}
	return s
}

// attachments §4.3: a minute is looked at once however the clock moves, and only while it lasts.
func TestClockJumps(t *testing.T) {
	c := newCalendar()
	set(t, &c, start.Add(-time.Hour), every("a", 1))
	for _, step := range []struct {
		at   string
		want string
	}{
		{"10:00:00", "a/1@10:00 "},
		{"10:00:59", ""},
		{"10:01:30", "a/1@10:01 "},
		{"09:00:00", "a/1@09:00 "}, // an hour back: not looked at yet
		{"10:00:20", ""},           // again the first minute
		{"10:01:01", ""},
		{"10:05:00", "a/1@10:05 "}, // forth: nothing is made up
		{"10:03:00", "a/1@10:03 "},
		{"10:02:00", "a/1@10:02 "},
		{"10:04:00", "a/1@10:04 "},
		{"10:03:59", ""},
	} {
		at, err := time.Parse("2006-01-02 15:04:05", "2027-03-01 "+step.at)
		if err != nil {
			t.Fatal(err)
		}
		_, matches, _ := c.due(at)
		if got := names(matches); got != step.want {
			t.Errorf("%s: %q, want %q", step.at, got, step.want)
		}
	}
}

// attachments §4.3: a new expression governs what matches after the switch only, a deleted one nothing.
func TestUpdateAndDeleteBoundaries(t *testing.T) {
	c := newCalendar()
	at := func(d time.Duration) string {
		_, matches, _ := c.due(start.Add(d))
		return names(matches)
	}
	set(t, &c, start, every("a", 1))
	if got := at(time.Second); got != "" {
		t.Errorf("a minute that began before the trigger matched: %s", got)
	}
	if got := at(30 * time.Second); got != "a/1@23:59 " {
		t.Errorf("the first whole minute: %q", got)
	}
	set(t, &c, start.Add(80*time.Second), every("a", 1), every("b", 1)) // a is unchanged, b came within the minute of 23:59
	if got := at(95 * time.Second); got != "a/1@00:00 b/1@00:00 " {
		t.Errorf("after b came: %q", got)
	}
	set(t, &c, start.Add(150*time.Second), every("a", 2), every("b", 1)) // exactly as 00:01 begins
	if got := at(150 * time.Second); got != "a/2@00:01 b/1@00:01 " {
		t.Errorf("at the boundary: %q", got)
	}
	set(t, &c, start.Add(215*time.Second), every("a", 3), every("b", 1)) // 5 s into 00:02, before it was looked at
	if got := at(216 * time.Second); got != "b/1@00:02 " {
		t.Errorf("within the minute of a change: %q", got)
	}
	set(t, &c, start.Add(217*time.Second), every("a", 3))
	if got := at(270 * time.Second); got != "a/3@00:03 " {
		t.Errorf("after b went: %q", got)
	}
	known := every("a", 4)
	known.Since = start.Add(330*time.Second + time.Millisecond) // just after 00:04 began
	set(t, &c, start.Add(329*time.Second), known)
	if got := at(331 * time.Second); got != "" {
		t.Errorf("before its acceptance: %q", got)
	}
	if got := at(390 * time.Second); got != "a/4@00:05 " {
		t.Errorf("after its acceptance: %q", got)
	}
}

// attachments §4.3: while a run is open its trigger's matches are skipped, and never made up.
func TestOverlap(t *testing.T) {
	c := newCalendar()
	set(t, &c, start.Add(-time.Hour), every("a", 1), every("b", 1))
	_, matches, _ := c.due(start)
	if len(matches) != 2 || !c.begin(matches[0]) || c.begin(matches[0]) {
		t.Fatalf("%v", matches)
	}
	_, next, skipped := c.due(start.Add(time.Minute))
	if names(next) != "b/1@23:59 " || skipped != 1 {
		t.Errorf("%s, %d skipped", names(next), skipped)
	}
	c.over(matches[0])
	if c.begin(matches[0]) {
		t.Error("a run that was over began again")
	}
	_, next, _ = c.due(start.Add(2 * time.Minute))
	if names(next) != "a/1@00:00 b/1@00:00 " {
		t.Errorf("afterwards: %s", names(next))
	}
}

// Years of minutes with random clock jumps, updates and slow runs, against a list of all that was ever matched.
func TestYears(t *testing.T) {
	rng := testkit.Rand(t)
	years := 4
	if testing.Short() {
		years = 1
	}
	exprs := []string{"* * * * *", "*/7 * * * *", "0 3 1 * 1", "30 12 29 2 *", "0 0 31 2 *", "59 23 31 12 *", "0-59/15 0-23/2 1-31 1-12 0-6"}
	c := newCalendar()
	now := start
	generation := uint64(0)
	change := func() {
		generation++
		table := make([]Trigger, len(exprs))
		for i := range table {
			table[i] = Trigger{UID: fmt.Sprint(i), Cron: exprs[i], Generation: generation}
		}
		rng.Shuffle(len(exprs), func(i, j int) { exprs[i], exprs[j] = exprs[j], exprs[i] })
		set(t, &c, now, table...)
	}
	change()
	now = now.Add(time.Hour)
	seen := map[Match]bool{}
	matched := 0
	for end := start.AddDate(years, 0, 0); now.Before(end); {
		minute, matches, _ := c.due(now)
		if !minute.Equal(now.Truncate(time.Minute)) {
			t.Fatalf("%v looked at %v", now, minute)
		}
		for _, m := range matches {
			key := Match{Trigger: m.Trigger, Minute: m.Minute}
			if seen[key] {
				t.Fatalf("%+v twice", m)
			}
			if m.Minute != minute.UnixMilli() || m.Generation != generation || !c.triggers[m.Trigger].expr.Match(minute) {
				t.Fatalf("%+v at %v, generation %d", m, now, generation)
			}
			if seen[key] = true; len(seen) > 500_000 {
				clear(seen) // a jump back of more than that many matches does not come
			}
			matched++
			if rng.IntN(50) == 0 {
				c.begin(m)
			}
		}
		for _, m := range c.open {
			if rng.IntN(3) == 0 {
				c.over(m)
			}
		}
		now = now.Add(jump(rng))
		if rng.IntN(100_000) == 0 {
			change()
		}
	}
	if matched < years*300_000 {
		t.Errorf("only %d matches in %d years", matched, years)
	}
}

// jump is how the clock moves on: mostly by part of a minute, now and then it is set.
func jump(rng *rand.Rand) time.Duration {
	switch rng.IntN(20_000) {
	case 0:
		return -time.Duration(rng.IntN(7200)) * time.Second
	case 1:
		return time.Duration(rng.IntN(7200)) * time.Second
	}
	return time.Duration(30+rng.IntN(30)) * time.Second
}

// The set of minutes against a map, and its bound.
func TestMinutes(t *testing.T) {
	rng := testkit.Rand(t)
	for range 200 {
		var m minutes
		seen := map[int64]bool{}
		for range 300 {
			n := int64(rng.IntN(120))
			if m.add(n) == seen[n] {
				t.Fatalf("%d is new: %t", n, !seen[n])
			}
			seen[n] = true
		}
	}
	var m minutes
	for i := range int64(1000) {
		m.add(i * i * 2)
		if len(m.runs) > maxRuns {
			t.Fatalf("%d runs", len(m.runs))
		}
	}
	for i := range int64(1000) {
		if m.add(i * i * 2) {
			t.Fatalf("%d was looked at twice", i*i*2)
		}
	}
	if !slices.IsSortedFunc(m.runs, func(a, b stretch) int { return int(a.first - b.first) }) {
		t.Error("out of order")
	}
}

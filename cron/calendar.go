package cron

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"edged/internal/cronexpr"
)

// calendar decides which matches a moment brings. Pure: time comes in as an argument.
type calendar struct {
	triggers map[string]*scheduled // by UID
	open     map[string]Match      // runs that are recorded and not over, by trigger; also of triggers that are gone
	ended    map[string]int64      // the minute of the last run that was over, by trigger: a late answer of Load may still name it
	looked   minutes
}

func newCalendar() calendar {
	return calendar{triggers: make(map[string]*scheduled), open: make(map[string]Match), ended: make(map[string]int64)}
}

// set replaces the triggers. One that is unchanged keeps its place in time; all others govern the minutes that begin from now on.
func (c *calendar) set(table []Trigger, now time.Time) error {
	next := make(map[string]*scheduled, len(table))
	for _, t := range table {
		expr, err := cronexpr.Parse(t.Cron)
		if err != nil {
			return fmt.Errorf("trigger %.64q: %w", t.UID, err)
		}
		if t.UID == "" || next[t.UID] != nil {
			return fmt.Errorf("trigger %.64q is there twice or has no UID", t.UID)
		}
		s := &scheduled{Trigger: t, expr: expr, arrived: now}
		if old := c.triggers[t.UID]; old != nil && old.Trigger == t {
			s.arrived = old.arrived
		}
		next[t.UID] = s
	}
	c.triggers = next
	maps.DeleteFunc(c.ended, func(uid string, _ int64) bool { return next[uid] == nil })
	return nil
}

// due looks at the minute of now, unless that was done before, and returns the matches to record, in the order of their triggers'
// UIDs, and how many others are skipped because their trigger's run is open.
func (c *calendar) due(now time.Time) (minute time.Time, matches []Match, skipped int) {
	minute = now.UTC().Truncate(time.Minute).Round(0)
	if !c.looked.add(minute.Unix() / 60) {
		return minute, nil, 0
	}
	for uid, s := range c.triggers {
		if !s.expr.Match(minute) || !s.governs(minute, now) {
			continue
		}
		if _, busy := c.open[uid]; busy {
			skipped++
			continue
		}
		matches = append(matches, s.match(minute))
	}
	slices.SortFunc(matches, func(a, b Match) int { return strings.Compare(a.Trigger, b.Trigger) })
	return minute, matches, skipped
}

// begin opens a recorded match's run and reports whether that is news: it is neither open nor over.
func (c *calendar) begin(m Match) bool {
	if old, busy := c.open[m.Trigger]; busy && old == m {
		return false
	}
	if last, ok := c.ended[m.Trigger]; ok && last == m.Minute {
		return false
	}
	c.open[m.Trigger] = m
	return true
}

// over closes a run.
func (c *calendar) over(m Match) {
	if c.open[m.Trigger] == m {
		delete(c.open, m.Trigger)
		c.ended[m.Trigger] = m.Minute
	}
}

// status renders the triggers in the order of their UIDs.
func (c *calendar) status(now time.Time) []Status {
	out := make([]Status, 0, len(c.triggers))
	for uid, s := range c.triggers {
		st := Status{Trigger: s.Trigger}
		if next, ok := s.expr.Next(now); ok {
			st.Next = next
		}
		if m, busy := c.open[uid]; busy {
			st.Open = &m
		}
		out = append(out, st)
	}
	slices.SortFunc(out, func(a, b Status) int { return strings.Compare(a.UID, b.UID) })
	return out
}

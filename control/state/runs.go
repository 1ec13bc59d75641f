package state

import (
	"slices"

	"edged/control/rules"
)

// minuteMillis is the length of what a cron trigger matches.
const minuteMillis = 60_000

// Run is a match of a cron trigger on record (attachments §4.3): the handler is owed a call until the run is done.
type Run struct {
	Trigger    string `json:"trigger"` // UID
	Worker     string `json:"worker"`  // UID
	Cron       string `json:"cron"`    // as written when it matched
	Generation uint64 `json:"generation"`
	Minute     int64  `json:"minute"` // start of the matched minute, Unix ms UTC
}

// runRow is what is kept of a trigger's runs.
type runRow struct {
	Trigger string `json:"trigger"`
	Last    int64  `json:"last"`           // minute of the newest match on record: an older one can never be recorded
	Open    *Run   `json:"open,omitempty"` // the one that is not done; nil if none is
}

// recordRuns puts matches of one minute on record and returns those that it did. It judges in the order of the log: a trigger
// that is gone, being deleted or of another generation matches no more; one with an open run skips this minute; a minute
// is recorded while it lasts, and once.
func (s *State) recordRuns(c *Command) Outcome {
	var out Outcome
	for _, m := range c.Runs {
		r := s.get(m.Trigger)
		row, _ := s.runs.Get(m.Trigger)
		switch {
		case r == nil || r.Phase == Deleting || r.driver.Role != rules.Attachment || r.driver.Need != rules.NeedScheduled || r.Generation != m.Generation:
		case row != nil && (row.Open != nil || row.Last >= m.Minute):
		case m.Minute%minuteMillis != 0 || c.At < m.Minute || c.At >= m.Minute+minuteMillis:
		default:
			run := m
			run.Worker, run.Cron = r.Parsed().Worker, r.Parsed().Cron.String()
			s.runs.Set(m.Trigger, &runRow{Trigger: m.Trigger, Last: m.Minute, Open: &run})
			out.Runs = append(out.Runs, run)
		}
	}
	return out
}

// endRuns takes runs off the record of what is owed. Of a trigger that is gone nothing stays.
func (s *State) endRuns(c *Command) {
	for _, m := range c.Runs {
		row, _ := s.runs.Get(m.Trigger)
		if row == nil || row.Open == nil || row.Open.Minute != m.Minute {
			continue
		}
		if s.get(m.Trigger) == nil {
			s.runs.Delete(m.Trigger)
			continue
		}
		s.runs.Set(m.Trigger, &runRow{Trigger: m.Trigger, Last: row.Last})
	}
}

// forgetRuns drops the record of a trigger that is removed, unless a run of it is owed.
func (s *State) forgetRuns(r *Resource) {
	if r.driver.Role != rules.Attachment {
		return
	}
	if row, _ := s.runs.Get(r.UID); row != nil && row.Open == nil {
		s.runs.Delete(r.UID)
	}
}

// Runs returns every run on record that is not done, in ascending order of trigger, whatever became of the trigger.
func (s *State) Runs() []Run {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Run
	s.runs.Scan(func(_ string, row *runRow) bool {
		if row.Open != nil {
			out = append(out, *row.Open)
		}
		return true
	})
	return slices.Clip(out)
}

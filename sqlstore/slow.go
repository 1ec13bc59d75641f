package sqlstore

import (
	"context"
	"sync"
	"time"

	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// A SlowCall is one call that took longer than Options.Slow. Its SQL text is for operators only and is never logged: it may
// hold literals.
type SlowCall struct {
	Database string
	Op       string // execute, query, transaction
	At       time.Time
	Took     time.Duration
	SQL      []string // of each statement, without parameters
	Plan     []string // SQLite's query plan of all statements, one step a line
}

// slowKept is how many slow calls are remembered.
const slowKept = 100

type slowLog struct {
	mu    sync.Mutex
	calls []SlowCall // at most slowKept, the oldest first
}

// Slow returns the slow calls of late, the oldest first.
func (s *Store) Slow() []SlowCall {
	s.slow.mu.Lock()
	defer s.slow.mu.Unlock()
	return append([]SlowCall(nil), s.slow.calls...)
}

// noteSlow records a call that took too long, with its plan. The caller has the connection.
func (s *Store) noteSlow(db *database, c *engine.Conn, o op, statements []codec.Statement, took time.Duration) {
	if took <= s.opt.Slow {
		return
	}
	s.opt.Metrics.slow.Inc()
	call := SlowCall{Database: db.uid, Op: string(o), At: time.Now(), Took: took}
	for _, st := range statements {
		call.SQL = append(call.SQL, st.SQL)
		if !c.Broken() {
			call.Plan = append(call.Plan, plan(c, st.SQL)...)
		}
	}
	s.opt.Log.Warn("slow call", "database", db.uid, "op", string(o), "took", took, "plan", call.Plan)
	s.slow.mu.Lock()
	defer s.slow.mu.Unlock()
	if len(s.slow.calls) == slowKept {
		s.slow.calls = append(s.slow.calls[:0], s.slow.calls[1:]...)
	}
	s.slow.calls = append(s.slow.calls, call)
}

// plan asks SQLite how it runs a statement. A statement that has no plan has none; nothing depends on it.
func plan(c *engine.Conn, sql string) (lines []string) {
	ctx := limited{context.Background(), time.Now().Add(time.Second)}
	err := c.Scan(ctx, engine.Operate, "EXPLAIN QUERY PLAN "+sql, nil, func(row []codec.Value) error {
		if len(row) == 4 && len(lines) < 50 {
			lines = append(lines, row[3].Bytes())
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return lines
}

package control

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// raftLogger makes the logger of the raft library: its lines become records of log.
func raftLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	l.RegisterSink(&raftSink{log: log, said: map[string]saidLine{}})
	return l
}

// raftSink turns raft's lines into records. An error that comes again within a minute is not said again: a voter that cannot be reached is
// one several times a second.
type raftSink struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]saidLine // by line, and whom it is about
}

type saidLine struct {
	at     time.Time
	unsaid int // since
}

const (
	raftSayAgain = time.Minute
	maxSaidLines = 256
)

// what of a line of raft can be done about it; of the others raft's words are all there is.
var raftAdvice = map[string]string{
	"failed to appendEntries to":     unreachedVoter,
	"failed to heartbeat to":         unreachedVoter,
	"failed to make requestVote RPC": unreachedVoter,
}

const unreachedVoter = "a voter does not answer; if it is gone for good: edged fleet remove; one that has just joined or started is there soon"

// again says whether a line is to be said, and how often it was not since the last time.
func (s *raftSink) again(msg string, args []any, now time.Time) (say bool, unsaid int) {
	key := msg
	for i := 0; i+1 < len(args); i += 2 {
		if name, _ := args[i].(string); name == "peer" || name == "target" {
			key = fmt.Sprintf("%s %v", msg, args[i+1])
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.said[key]
	if ok && now.Sub(was.at) < raftSayAgain {
		was.unsaid++
		s.said[key] = was
		return false, 0
	}
	if len(s.said) >= maxSaidLines {
		clear(s.said)
	}
	s.said[key] = saidLine{at: now}
	return true, was.unsaid
}

// Accept takes one line. Raft warns of what happens between voters: of silent peers, and of the elections that follow. A
// lone voter has no peers and starts each time with such an election, so those lines help only whoever looks for them.
// What cannot be written or read is an error there as well as here.
func (s *raftSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	if level < hclog.Error {
		s.log.Log(context.Background(), slog.LevelDebug, "raft", "line", msg, slog.Group("about", args...))
		return
	}
	say, unsaid := s.again(msg, args, time.Now())
	if !say {
		return
	}
	more := []any{"line", msg, slog.Group("about", args...)}
	if unsaid > 0 {
		more = append(more, "unsaid", unsaid)
	}
	if what := raftAdvice[msg]; what != "" {
		more = append(more, "todo", what)
	}
	s.log.Log(context.Background(), slog.LevelError, "raft", more...)
}

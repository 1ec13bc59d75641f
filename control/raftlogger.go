package control

import (
	"context"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger makes the logger of the raft library: its lines become records of log.
func raftLogger(log *slog.Logger) hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	l.RegisterSink(raftSink{log})
	return l
}

// raftSink turns raft's lines into records.
type raftSink struct{ log *slog.Logger }

// Accept takes one line. Raft warns of what happens between voters: of silent peers, and of the elections that follow. A
// lone voter has no peers and starts each time with such an election, so those lines help only whoever looks for them.
// What cannot be written or read is an error there as well as here.
func (s raftSink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	if level >= hclog.Error {
		to = slog.LevelError
	}
	s.log.Log(context.Background(), to, "raft", "line", msg, slog.Group("about", args...))
}

package control

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edged/control/form"
)

// A node that starts, works and starts again has nothing to warn of; raft's own errors stay errors.
func TestQuietStart(t *testing.T) {
	var text bytes.Buffer
	dir := t.TempDir()
	for range 2 {
		n := startNode(t, dir, func(o *Options) {
			o.Log = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		n.made(form.ModuleWorkerURL, "web"+freshKey(), spec{})
		n.stop()
	}
	lines := text.String()
	if strings.Contains(lines, "level=WARN") || strings.Contains(lines, "level=ERROR") {
		t.Errorf("an ordinary start says:\n%s", lines)
	}
	if strings.Count(lines, "control state is current") != 2 || !strings.Contains(lines, "starting election") {
		t.Errorf("two starts and their elections are not in:\n%s", lines)
	}
	text.Reset()
	raftLogger(slog.New(slog.NewTextHandler(&text, nil))).Error("failed to commit logs", "error", errors.New("disk gone"))
	if got := text.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, `line="failed to commit logs" about.error="disk gone"`) {
		t.Errorf("an error of raft becomes %q", got)
	}
}

// One line for each failure: what raft repeats several times a second is said once a minute, for each voter that it is about, with what to do.
func TestRaftErrorsAreSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		l := raftLogger(slog.New(slog.NewTextHandler(&text, nil)))
		for range 500 {
			l.Error("failed to heartbeat to", "peer", "n-2", "error", errors.New("no way"))
			l.Error("failed to heartbeat to", "peer", "n-3", "error", errors.New("no way"))
		}
		if got := text.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "edged fleet remove") {
			t.Errorf("the log is %s", got)
		}
		text.Reset()
		time.Sleep(raftSayAgain)
		l.Error("failed to heartbeat to", "peer", "n-2", "error", errors.New("no way"))
		if got := text.String(); !strings.Contains(got, "unsaid=499") {
			t.Errorf("the log is %s", got)
		}
	})
}

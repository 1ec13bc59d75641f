package control

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

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

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"edged/control/client"
	"edged/control/form"
	"edged/node/tail"
)

const (
	tailSilence = 45 * time.Second // a node says something every 15 s
	tailLine    = 1 << 20          // more than the longest line has
)

func newTailCommand() *cobra.Command {
	t := storeTarget{form: form.ModuleWorkerURL, path: "workers"}
	var outcome, status, version, console string
	var sample float64
	cmd := &cobra.Command{
		Use:   "tail WORKER",
		Short: "what a worker does, as it happens: invocations and console output (role operator)",
		Long: "Show each invocation of a worker when it is over, with what it has cost, and what the worker logs, until Ctrl-C. It is what happens on\n" +
			"the node that is asked: every member of a fleet has its own. Of a request the method, host and path are shown, of headers, query\n" +
			"and body nothing. Traffic never waits for who watches: what comes too fast is dropped, and the line \"dropped\" counts it. A connection that\n" +
			"is lost is made again; what happened meanwhile is not shown.",
		Args: cobra.ExactArgs(1),
	}
	t.storeFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&outcome, "outcome", "", "only invocations that ended so: error, or one of "+strings.Join(tail.Outcomes, ", "))
	f.StringVar(&status, "status", "", "only invocations with this status, like 404 or 5xx")
	f.StringVar(&version, "version", "", "only versions whose UID begins so")
	shareVar(f, &sample, "sample", "share of all this that is shown, like 1% or 0.01")
	f.StringVar(&console, "console", "", "all, errors or none of what the worker logs (default all; with --outcome or --status: errors)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			q := url.Values{}
			for name, value := range map[string]string{"outcome": outcome, "status": status, "version": version, "console": console} {
				if value != "" {
					q.Set(name, value)
				}
			}
			if f.Changed("sample") {
				q.Set("sample", strconv.FormatFloat(sample, 'g', -1, 64))
			}
			if _, err := tail.ParseFilter(q); err != nil {
				return usageError{explain(err)}
			}
			v := tailView{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), json: t.json}
			return v.follow(ctx, func(ctx context.Context) (io.ReadCloser, error) { return s.c.Open(ctx, s.call("GET", "tail", q, nil)) })
		})
	}
	return cmd
}

// tailView prints a tail.
type tailView struct {
	out, err io.Writer
	json     bool
}

// follow prints until ctx is done, which is no error. The first connection must be had; one that is lost is made again unless the node
// refuses.
func (v *tailView) follow(ctx context.Context, open func(context.Context) (io.ReadCloser, error)) error {
	pause, had := time.Second, false
	for {
		began, err := v.watch(ctx, open)
		if ctx.Err() != nil {
			return nil
		}
		var no *client.Problem
		if !had && !began || errors.As(err, &no) && no.Status < 500 && no.Status != 429 {
			return err
		}
		if errors.Is(err, errPrint) {
			return err
		}
		if had = true; began {
			pause = time.Second
		}
		fmt.Fprintf(v.err, "edged: the node does not answer any more (%v); asking again in %v\n", explain(err), pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, 15*time.Second)
	}
}

var (
	errStopping = errors.New("it is stopping")
	errSilent   = errors.New("it is silent")
	errPrint    = errors.New("the output cannot be written")
)

// watch prints one connection. began says that there was one.
func (v *tailView) watch(ctx context.Context, open func(context.Context) (io.ReadCloser, error)) (began bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, err := open(ctx)
	if err != nil {
		return false, err
	}
	defer body.Close()
	silence := time.AfterFunc(tailSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, tailLine)
	for lines.Scan() {
		silence.Reset(tailSilence)
		var l tail.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return true, fmt.Errorf("a line is not the document expected: %w", err)
		}
		if l.Type == "stopping" {
			return true, errStopping
		}
		if err := v.print(&l, lines.Bytes()); err != nil {
			return true, errors.Join(errPrint, err)
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return true, cause
	}
	if err := lines.Err(); err != nil {
		return true, err
	}
	return true, io.ErrUnexpectedEOF
}

func (v *tailView) print(l *tail.Line, raw []byte) error {
	var err error
	switch {
	case l.Type == "alive" || l.Type == "watching":
	case v.json:
		_, err = fmt.Fprintf(v.out, "%s\n", raw)
	case l.Type == "dropped":
		_, err = fmt.Fprintf(v.out, "%s  dropped   %d lines came too fast\n", clockOf(l.At), l.Dropped)
	case l.Type == "console":
		_, err = fmt.Fprintf(v.out, "%s  %-9s %s\n", clockOf(l.At), l.Level, strings.ReplaceAll(onScreen(l.Text), "\n", "\n                        "))
	case l.Type == "invocation":
		_, err = fmt.Fprintf(v.out, "%s  %-9s %s\n", clockOf(l.At), l.Kind, invocationWords(l))
	}
	return err
}

// invocationWords is an invocation in one line.
func invocationWords(l *tail.Line) string {
	what := l.Outcome
	if l.Status > 0 {
		what = fmt.Sprintf("%d %s", l.Status, l.Outcome)
	}
	parts := []string{what}
	for _, s := range []string{l.Method, l.URL, l.Event} {
		if s != "" {
			parts = append(parts, onScreen(s))
		}
	}
	if l.Batch > 0 {
		parts = append(parts, fmt.Sprintf("%d messages", l.Batch))
	}
	if r := l.Receipt; r != nil {
		parts = append(parts, fmt.Sprintf("%.2f ms", r.WallMs))
		if r.CPUMs > 0 {
			parts = append(parts, fmt.Sprintf("cpu %.2f ms %s %s", r.CPUMs, r.Sandbox, byteCount(r.Memory)))
		}
		if waited := r.AdmissionMs + r.QueueMs; waited >= 1 {
			parts = append(parts, fmt.Sprintf("queued %.2f ms", waited))
		}
		for _, w := range r.Waits {
			parts = append(parts, fmt.Sprintf("%s %d× %.2f ms", onScreen(w.Binding), w.Calls, w.Ms))
		}
	}
	if len(l.Version) > 8 {
		parts = append(parts, l.Version[:8])
	}
	return strings.Join(parts, "  ")
}

func byteCount(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// clockOf is the time of day, in UTC, of a stamp.
func clockOf(at string) string {
	if _, clock, ok := strings.Cut(strings.TrimSuffix(at, "Z"), "T"); ok {
		return clock
	}
	return at
}

// onScreen keeps what a worker or its client wrote from steering the terminal.
func onScreen(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		if r == '\t' {
			return ' '
		}
		return '\ufffd'
	}, s)
}

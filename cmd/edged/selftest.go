package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"edged/cmd/edged/selftest"
	"edged/internal/fault"
)

func newSelftestCommand() *cobra.Command {
	var t target
	var front, removeSpace string
	var skip []string
	var reuses bool
	var patience, timeout time.Duration
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "check a live node against the contract, from outside, and leave nothing behind",
		Long: "Check a live node against the contract from outside: two workers of its own are deployed into a Space of its own, asked over the\n" +
			"public listener, and removed with all their data, also when the run is interrupted. It may run beside traffic: one request is at\n" +
			"work at a time, but for one sandbox the last two checks use up --max-memory and --max-cpu of the node (--skip limit.memory,limit.cpu).\n" +
			"Nothing outside that Space is touched. What stays: records in the audit, counts in the metrics, and uploaded artifacts, which the\n" +
			"node collects after a day. Exit code 1: something failed, or was left behind.\n\n" +
			"Checks: " + folded(selftest.Names()) + ".",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	t.flags(f)
	f.StringVar(&front, "front", "", "public listener to ask, like http://127.0.0.1:8080 (default: the one of the node found by --data-dir)")
	f.StringSliceVar(&skip, "skip", nil, "checks to leave out")
	f.BoolVar(&reuses, "reuses", false, "the node runs with --isolation worker: module state may be seen by later requests")
	f.DurationVar(&patience, "patience", 30*time.Second, "how long a value, a message or a stream's next piece may take to come")
	f.DurationVar(&timeout, "timeout", 10*time.Minute, "how long the checks may take; the removal has three minutes more")
	f.StringVar(&removeSpace, "remove", "", "only remove what a selftest that was killed left in this Space")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		if removeSpace != "" {
			report, err := selftest.Remove(ctx, c, removeSpace)
			if err != nil {
				return usageError{explain(err)}
			}
			return t.sayTested(cmd, report, len(report.Left) == 0 && report.Unlisted == "")
		}
		opt := selftest.Options{Client: c, Skip: skip, Reuses: reuses, Patience: patience}
		if opt.Front, opt.TLS, err = t.front(front); err != nil {
			return usageError{explain(err)}
		}
		if !t.json {
			opt.Progress = func(r selftest.Result) { _ = r.WriteLine(cmd.OutOrStdout()) } // the summary's error is told
		}
		report, err := selftest.Run(ctx, opt)
		if fault.CodeOf(err) == fault.Invalid {
			return usageError{explain(err)}
		} else if err != nil {
			return explain(err)
		}
		return t.sayTested(cmd, report, report.Good() && ctx.Err() == nil)
	}
	return cmd
}

func (t *target) sayTested(cmd *cobra.Command, r *selftest.Report, good bool) (err error) {
	if t.json {
		err = printJSON(cmd, r)
	} else {
		err = r.WriteSummary(cmd.OutOrStdout())
	}
	if err == nil && !good {
		err = exitCode(exitFailed)
	}
	return err
}

// front is the public listener to ask, and whom to trust there: the system's authorities and the node's own.
func (t *target) front(text string) (*url.URL, *tls.Config, error) {
	if l := t.listeners(); text == "" && l.HTTP != "" {
		text = "http://" + l.HTTP
	} else if text == "" && l.HTTPS != "" {
		text = "https://" + l.HTTPS
	}
	if text == "" {
		return nil, nil, fault.New(fault.Invalid, "front", "name a public listener with --front: it is not known here")
	}
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Port() == "" || text != at.Scheme+"://"+at.Host {
		return nil, nil, fault.Newf(fault.Invalid, "front", "--front: %q is not like http://127.0.0.1:8080 or https://192.0.2.1:443", text)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // the node's own is enough for its own
	}
	ca := t.where.CAFile
	if ca == "" && t.where.ControlURL == "" {
		ca = filepath.Join(t.where.DataDir, "tls", "ca.pem")
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, nil, err
		}
		roots.AppendCertsFromPEM(pem)
	}
	return at, &tls.Config{RootCAs: roots}, nil
}

// folded lists names over lines of a help text.
func folded(names []string) string {
	var b strings.Builder
	width := len("Checks: ")
	for i, name := range names {
		if i > 0 {
			b.WriteString(",")
			if width += len(name) + 2; width > 120 {
				b.WriteString("\n")
				width = len(name)
			} else {
				b.WriteString(" ")
			}
		}
		b.WriteString(name)
	}
	return b.String()
}

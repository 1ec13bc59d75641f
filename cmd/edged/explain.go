package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"edged/control/client"
)

func newExplainCommand() *cobra.Command {
	var t target
	var method string
	var send bool
	cmd := &cobra.Command{
		Use:   "explain URL",
		Short: "why a URL is answered as it is: host, deployment, version, asset or code, sandboxes (role operator)",
		Long: "Ask the node how it would answer a request now, and what each choice depends on. No worker runs for that: which of several versions a\n" +
			"request gets is drawn for each, so all are shown with their share. With --send the request is made, to the public listener of the node on\n" +
			"this machine, and what is printed is why that very response is what it is. A host of another tenant looks as if nobody had it.",
		Args: cobra.ExactArgs(1),
	}
	t.flags(cmd.Flags())
	cmd.Flags().StringVar(&method, "method", "GET", "method of the request")
	cmd.Flags().BoolVar(&send, "send", false, "make the request: the worker runs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		u, err := url.Parse(args[0])
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usagef("%q is no URL like https://hello.edge.localhost/path", args[0])
		}
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		if send {
			return explain(t.explainSent(cmd, u, method))
		}
		return explain(t.explainUnsent(cmd, c, u, method))
	}
	return cmd
}

// explained is the node's answer; node.explanation is its twin.
type explained struct {
	URL, Method, Node, At, Host string
	Known                       bool
	Rule                        *struct{ Kind, Resource string }
	Worker                      *struct{ UID, Space, Name string }
	Deployment                  *struct {
		UID        string
		Generation uint64
	}
	Choices []struct {
		Version              string
		From, To             int
		Answer, Error, Asset string
		Ready, AtWork        int
	}
	Admission struct {
		Verdict                                    string
		Inflight, MaxInflight, Waiting, MaxWaiting int
	}
}

func (t *target) explainUnsent(cmd *cobra.Command, c *client.Client, u *url.URL, method string) error {
	bare := *u
	bare.RawQuery, bare.Fragment = "", "" // they decide nothing
	call := client.Call{Method: "GET", Path: "workers/explain", Query: url.Values{"url": {bare.String()}, "method": {method}}}
	if t.json {
		var raw any
		if err := c.Ask(cmd.Context(), call, &raw); err != nil {
			return err
		}
		return printJSON(cmd, raw)
	}
	var e explained
	if err := c.Ask(cmd.Context(), call, &e); err != nil {
		return err
	}
	_, err := io.WriteString(cmd.OutOrStdout(), e.words())
	return err
}

// words is the explanation for a person.
func (e *explained) words() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("request", "%s %s", e.Method, e.URL)
	line("node", "%s", e.Node)
	if !e.Known {
		line("host", "%q is not routed here, or not yours: 404 unknown_host", e.Host)
		return b.String()
	}
	rule := "routed"
	if e.Rule != nil {
		rule = e.Rule.Kind + " " + e.Rule.Resource
	}
	line("host", "%s, by %s", e.Host, rule)
	line("worker", "%s in Space %s, %s", e.Worker.Name, e.Worker.Space, e.Worker.UID)
	if e.Deployment == nil || len(e.Choices) == 0 {
		line("deployment", "none is active: 503 not_serving")
		return b.String()
	}
	line("deployment", "%s, generation %d", e.Deployment.UID, e.Deployment.Generation)
	for _, c := range e.Choices {
		var does string
		switch {
		case c.Answer == "asset":
			does = "asset " + c.Asset
		case c.Answer == "hosted":
			does = c.Error
		default:
			if does = fmt.Sprintf("code, %d sandboxes ready, %d invocations at work", c.Ready, c.AtWork); c.Asset != "" {
				does += "; asset " + c.Asset + " where that says 404"
			}
		}
		line("version", "%s, %g%% (by weight, %d to %d of 10000): %s", c.Version, float64(c.To-c.From)/100, c.From, c.To, does)
	}
	admission := e.Admission.Verdict
	if a := e.Admission; a.MaxInflight > 0 {
		admission = fmt.Sprintf("%s: %d of %d at work, %d of %d waiting", strings.ReplaceAll(a.Verdict, "_", " "), a.Inflight, a.MaxInflight, a.Waiting, a.MaxWaiting)
	}
	line("admission", "%s", admission)
	return b.String()
}

const sendTimeout = time.Minute

// explainSent makes the request and prints what the response says of itself.
func (t *target) explainSent(cmd *cobra.Command, u *url.URL, method string) error {
	l := t.listeners()
	address := l.HTTP
	if u.Scheme == "https" {
		address = l.HTTPS
	}
	if address == "" {
		return usagef("--send needs a node that runs on this machine, named by --data-dir, with its %s listener on", u.Scheme)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return usagef("%v", err)
	}
	req.Header.Set("Edged-Explain", "1")
	req.Header.Set("User-Agent", "edged")
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
		TLSClientConfig: &tls.Config{RootCAs: t.roots(), ServerName: u.Hostname(), MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if err != nil {
		return fmt.Errorf("the body of the response was cut: %w", err)
	}
	if res.Header.Get("Edged-Explain") == "" {
		return errors.New("the response does not say: this machine is not among the node's --trusted-diagnostics")
	}
	parts := map[string]string{}
	for _, name := range []string{"Edged-Error", "Edged-Version", "Edged-Sandbox", "Edged-Explain", "Edged-Receipt"} {
		if v := res.Header.Get(name); v != "" {
			parts[strings.ToLower(strings.TrimPrefix(name, "Edged-"))] = v
		}
	}
	if t.json {
		return printJSON(cmd, map[string]any{"status": res.StatusCode, "bytes": n, "fields": parts})
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "status      %d, %d bytes of body\n", res.StatusCode, n)
	for _, name := range []string{"error", "explain", "receipt"} {
		for i, member := range members(parts[name]) {
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(out, "%-11s %s\n", name, onScreen(member))
		}
	}
	return nil
}

// roots are the system's and the local CA of the node on this machine, which signs what no certificate of the operator's covers.
func (t *target) roots() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if pem, err := os.ReadFile(filepath.Join(t.where.DataDir, "tls", "ca.pem")); err == nil {
		pool.AppendCertsFromPEM(pem)
	}
	return pool
}

// members splits a dictionary or item at its commas, but for those in quotes.
func members(field string) (out []string) {
	start, quoted := 0, false
	for i := 0; i < len(field); i++ {
		switch field[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ',':
			if !quoted {
				out = append(out, strings.TrimSpace(field[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(field[start:]); last != "" {
		out = append(out, last)
	}
	return out
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"edged/cmd/edged/deploy"
	"edged/control/client"
	"edged/internal/fault"
)

// clientCommands are the commands that talk to a running node.
func clientCommands() []*cobra.Command {
	return []*cobra.Command{newDeployCommand(), newWeightsCommand(), newRollbackCommand(), newDeleteCommand(), newResourcesCommand(),
		newTokensCommand(), newStatusCommand(), newAuditCommand(), newSecretsCommand(), newCronCommand(), newKVCommand(), newSQLCommand(),
		newQueueCommand(), newObjectsCommand(), newBackupCommand(), newFleetCommand(), newSelftestCommand(), newTailCommand(), newExplainCommand()}
}

// target is how a client command finds its node, and how it prints.
type target struct {
	where client.Where
	json  bool
}

func (t *target) flags(f *pflag.FlagSet) {
	f.StringVar(&t.where.DataDir, "data-dir", "./data", "data directory of a node that runs on this machine")
	f.StringVar(&t.where.ControlURL, "control-url", "", "control origin of the node, instead of --data-dir")
	f.StringVar(&t.where.CAFile, "ca-file", "", "PEM file of the CA that vouches for the node (default: the data directory's, or the system's with --control-url)")
	f.StringVar(&t.where.TokenFile, "token-file", "", "file with the bearer token (default: the data directory's)")
	f.BoolVar(&t.json, "json", false, "machine output")
}

// connect fills flags from the environment and returns a client, which the caller closes. It does not connect yet.
func (t *target) connect(cmd *cobra.Command) (*client.Client, error) {
	if err := applyConfig(cmd.Flags(), "", os.LookupEnv); err != nil {
		return nil, usageError{err}
	}
	if err := t.elsewhere(); err != nil {
		return nil, explain(err)
	}
	opt, err := client.Find(t.where)
	if err != nil {
		return nil, usageError{explain(err)}
	}
	c, err := client.New(opt)
	if err != nil {
		return nil, usageError{explain(err)}
	}
	return c, nil
}

// listeners is what run.json says about a node on this machine; the zero value if the node was not found that way.
type listeners struct {
	HTTP  string `json:"http"`
	HTTPS string `json:"https"`
	Admin string `json:"admin"`
	Role  string `json:"role"` // of a member that has no part in the control room of its fleet; else ""
}

func (t *target) listeners() (l listeners) {
	if t.where.ControlURL != "" {
		return l
	}
	f, err := os.Open(filepath.Join(t.where.DataDir, "run.json"))
	if err != nil {
		return l
	}
	defer f.Close()
	// Without it the commands only say less.
	_ = json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&l)
	l.HTTP, l.HTTPS, l.Admin = dialable(l.HTTP), dialable(l.HTTPS), dialable(l.Admin)
	return l
}

// nodeID is that of the node on this machine; "" if the node was not found that way.
func (t *target) nodeID() string {
	if t.where.ControlURL != "" {
		return ""
	}
	b, _ := os.ReadFile(filepath.Join(t.where.DataDir, "node.id")) // without it the commands only say less
	return strings.TrimSpace(string(b))
}

// dialable turns the address of a listener on all interfaces into one that this machine can connect to.
func dialable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

// printJSON writes v as one indented document.
func printJSON(cmd *cobra.Command, v any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// say prints a document, or a line for people.
func (t *target) say(cmd *cobra.Command, doc any, format string, args ...any) error {
	if t.json {
		return printJSON(cmd, doc)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// told is an error in words for people; the error itself stays to be asked.
type told struct {
	text string
	err  error
}

func (t told) Error() string { return t.text }
func (t told) Unwrap() error { return t.err }

// explain leaves out of an error what only a log needs.
func explain(err error) error {
	if err == nil {
		return nil
	}
	return told{words(err), err}
}

func words(err error) string {
	if list, ok := listed(err); ok { // one a line: two addresses that are taken, say
		lines := make([]string, len(list))
		for i, one := range list {
			lines[i] = words(one)
		}
		return strings.Join(lines, "\n")
	}
	var step *deploy.StepError
	var problem *client.Problem
	var operation *client.OperationError
	var file *fs.PathError
	var network *net.OpError
	switch {
	case errors.As(err, &step):
		return step.Action + " " + step.Name + ": " + words(step.Err)
	case errors.As(err, &operation) && errors.Is(err, context.DeadlineExceeded):
		return "the time for it is over, and " + operation.Error()
	case errors.As(err, &operation):
		return operation.Error()
	case errors.As(err, &problem):
		return hint(problem)
	case fault.Detail(err) != "":
		return fault.Detail(err)
	case errors.As(err, &network):
		return "the node cannot be reached: " + network.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "the time for it is over"
	case errors.As(err, &file):
		return file.Error()
	}
	return err.Error()
}

// listed returns the errors that errors.Join made err of; ok is false for one that says something of its own.
func listed(err error) (list []error, ok bool) {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil, false
	}
	list = several.Unwrap()
	return list, len(list) > 0 && errors.Join(list...).Error() == err.Error()
}

// hint adds to a refusal what its reader can do about it.
func hint(p *client.Problem) string {
	switch {
	case p.Status == 401:
		return p.Error() + " (is the token of this node, and not revoked?)"
	case p.Code == "resource_busy":
		return p.Error() + " (something else is changing it: try again)"
	}
	return p.Error()
}

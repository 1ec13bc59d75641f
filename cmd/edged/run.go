package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"edged/internal/fault"
	"edged/node"
)

func newRunCommand(stop *stopper) *cobra.Command {
	var configPath, logFormat string
	var supervise bool
	var frozenAfter time.Duration
	var opt node.Options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "run the node in the foreground",
		Long: "Run the node in the foreground until SIGINT or SIGTERM. Every flag can also stand in the configuration file\n" +
			"(--data-dir as data_dir) or in the environment (EDGED_DATA_DIR); flags win over the environment, that over the file.",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&configPath, "config", "", "TOML file with any of these settings")
	runFlags(f, &opt)
	f.StringVar(&logFormat, "log-format", "", "text or json (default: text on a terminal, else json)")
	f.BoolVar(&supervise, "supervise", true, "a small parent process starts the node again when it dies or freezes (not under a service manager that watches)")
	f.DurationVar(&frozenAfter, "frozen-after", 10*time.Second, "a node that gives no sign of life for so long is frozen")
	run := func(cmd *cobra.Command, h *heart) error {
		if path, ok := os.LookupEnv(envName("config")); ok && configPath == "" {
			configPath = path
		}
		if err := applyConfig(f, configPath, os.LookupEnv); err != nil {
			return usageError{err}
		}
		if err := otelEnvironment(&opt.Traces); err != nil {
			return err
		}
		if !f.Changed("custom-domain-zones") {
			opt.CustomDomainZones = nil
		}
		if !f.Changed("trusted-diagnostics") {
			opt.TrustedDiagnostics = nil
		}
		log, err := newLogger(cmd.ErrOrStderr(), logFormat)
		if err != nil {
			return err
		}
		if frozenAfter < frozenLeast {
			return usagef("--frozen-after: %v is shorter than %v", frozenAfter, frozenLeast)
		}
		if err := opt.Check(); err != nil { // before there is a child
			return usageError{explain(err)}
		}
		manager := newNotifier(os.Getenv, log)
		opt.Log, opt.Version = log, version
		switch {
		case h != nil:
			return serve(cmd, opt, h, h.ready)
		}
		sockets, err := managerSockets(os.Getenv, map[string]string{"http": opt.HTTP, "https": opt.HTTPS, "control": opt.Control,
			"admin": opt.Admin, "peer": opt.Peer})
		if err != nil {
			return err
		}
		switch {
		case manager.watches() || !supervise:
			if opt.Inherited, err = listening(sockets); err != nil {
				return err
			}
			return serveManaged(cmd, opt, manager)
		}
		s := &supervisor{args: os.Args[1:], dir: opt.DataDir, drain: opt.DrainTimeout, listeners: sockets, out: cmd.OutOrStdout(), log: log, stop: stop, notify: manager, frozen: frozenAfter,
			cleanUp: func(pid int) { node.Forget(opt.DataDir, pid) }}
		return s.run()
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !isSupervised() {
			return run(cmd, nil)
		}
		h, err := followSupervisor(stop)
		if err == nil {
			err = run(cmd, h)
		}
		h.failed(err)
		return err
	}
	return cmd
}

// serve runs the node in this process. ready is called once it serves. h is nil without a supervisor.
func serve(cmd *cobra.Command, opt node.Options, h *heart, ready func()) error {
	unix.Umask(0o077) // whatever a library creates below the data directory is this user's alone
	opt.Cores, opt.AccessLogOut = threads(), cmd.OutOrStdout()
	told := false
	opt.Announce = func(name, addr string) {
		if !told {
			told = true
			ready()
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%-8s %s\n", name, addr)
	}
	if h != nil {
		opt.Succession = h.succession(cmd.Context())
	}
	n, err := node.New(opt)
	if errors.Is(err, node.ErrStopped) {
		return nil
	}
	if fault.CodeOf(err) == fault.Invalid {
		return usageError{explain(err)}
	} else if err != nil {
		return explain(err)
	}
	h.attach(n)
	defer context.AfterFunc(cmd.Context(), h.stopping)()
	if err := n.Run(cmd.Context()); err != nil {
		return err
	}
	h.released(cmd.Context(), n, opt.DrainTimeout)
	return nil
}

// threads gives Go code twice as many threads as the machine has cores and returns how many cores those are, for the guests: the
// machine code of one cannot be interrupted between two polls, and with a thread for each of them a request that arrives would wait
// for a poll before anybody looks at it. A value that the environment sets is left alone.
func threads() (cores int) {
	cores = runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2 * cores)
	}
	return cores
}

// serveManaged is serve under a service manager, which may be nil.
func serveManaged(cmd *cobra.Command, opt node.Options, manager *notifier) error {
	if manager.watches() {
		over := make(chan struct{})
		var signs sync.WaitGroup
		signs.Go(func() { manager.live(over) })
		defer signs.Wait()
		defer close(over)
	}
	defer context.AfterFunc(cmd.Context(), func() { manager.send("STOPPING=1") })()
	return serve(cmd, opt, nil, func() { manager.send("READY=1") })
}

func runFlags(f *pflag.FlagSet, opt *node.Options) {
	f.StringVar(&opt.DataDir, "data-dir", "./data", "everything the node keeps; one process at a time")
	f.StringVar(&opt.HTTP, "http", "127.0.0.1:8080", "public data plane, plain HTTP/1.1; empty = off")
	f.StringVar(&opt.HTTPS, "https", "127.0.0.1:8443", "public data plane over TLS; empty = off")
	f.StringVar(&opt.Control, "control", "127.0.0.1:8081", "Host API over TLS")
	f.StringVar(&opt.ControlOrigin, "control-origin", "", "public origin of the Host API (default https:// and the address of --control)")
	f.StringVar(&opt.Admin, "admin", "127.0.0.1:8082", "metrics and health, plain HTTP; empty = off")
	f.StringVar(&opt.EndpointDomain, "endpoint-domain", "edge.localhost", "endpoint host names are assigned below it")
	f.StringSliceVar(&opt.CustomDomainZones, "custom-domain-zones", nil,
		"zones whose names may be claimed: zone=tenant, zone for every tenant, * for every name (default * on loopback-only listeners, else none)")
	f.DurationVar(&opt.MaxCPU, "max-cpu", 10*time.Second, "active CPU of one invocation")
	f.DurationVar(&opt.MaxWall, "max-wall", 30*time.Second, "time from accepting a request to its response head")
	f.DurationVar(&opt.MaxWallEvents, "max-wall-events", 15*time.Minute, "time of event handlers, and of waitUntil tasks after a response")
	sizeVar(f, &opt.MaxMemory, "max-memory", 128<<20, "memory of one sandbox")
	f.StringVar(&opt.Isolation, "isolation", "request", "request: every invocation in a pristine sandbox; worker: sandboxes are reused per version")
	f.StringVar(&opt.Egress, "egress", "public", "what fetch may reach: public, none, or a file of rules (allow|deny ADDRESS[/BITS] [PORT[-PORT]], default public|none)")
	f.IntVar(&opt.MaxInflight, "max-inflight", 0, "invocations at work (default from cores and memory)")
	f.IntVar(&opt.MaxQueue, "max-queue", 0, "invocations waiting; beyond: 503 (default from --max-inflight)")
	admissionFlags(f, &opt.Admission)
	sizeVar(f, &opt.MaxRequestBody, "max-request-body", 100<<20, "largest request body; below 100MiB the node misses the portable floor")
	f.StringSliceVar(&opt.ArtifactOrigins, "artifact-origins", nil, "exact https origins, private ones allowed, that artifacts may come from")
	f.StringVar(&opt.ArtifactCredentials, "artifact-credentials", "", "file (mode 0600) with a line \"ORIGIN HEADER: VALUE\" for each of --artifact-origins that wants one")
	sizeVar(f, &opt.MaxHeldBytes, "max-held-bytes", 16<<30, "artifacts that one tenant may hold")
	f.IntVar(&opt.ControlRate, "control-rate", 10_000, "requests per second of one principal on the control listener; twice as many at once")
	f.StringSliceVar(&opt.TrustedProxies, "trusted-proxies", nil, "addresses or prefixes whose forwarding headers and PROXY protocol are believed")
	f.StringSliceVar(&opt.TrustedDiagnostics, "trusted-diagnostics", []string{"loopback"}, "peers that get Edged-Version, Edged-Sandbox and, on request, Edged-Receipt and Edged-Explain; empty = nobody")
	f.StringVar(&opt.TLSDir, "tls-dir", "", "directory of certificates for routed names, NAME.pem with NAME.key, read again when they change (default: the local CA signs all)")
	f.StringVar(&opt.Role, "role", "control,edge", "what this node does in a fleet: control, edge or both; without edge --http and --https are off")
	f.StringVar(&opt.Peer, "peer", "", "address at which the other members of a fleet reach this node; empty = it runs alone")
	f.StringVar(&opt.Gossip, "gossip", "", "address at which members gossip, UDP and TCP; empty = off, and KV converges by its feeds alone")
	f.StringVar(&opt.Join, "join", "", "peer address of a member with the role control, whose fleet this node joins if it is in none")
	f.StringVar(&opt.Invite, "invite", "", "what \"edged fleet invite\" printed; or @FILE that holds it")
	f.DurationVar(&opt.RevalidateAfter, "revalidate-after", 15*time.Minute,
		"how long a member that is cut off goes on honouring what can be revoked: custom domains, secrets")
	f.StringVar(&opt.AccessLog, "access-log", "", "file that a JSON line for each request is appended to, - for standard output; empty = off")
	shareVar(f, &opt.AccessLogSample, "access-log-sample", "share of requests that get a line, like 1% or 0.01")
	sizeVar(f, &opt.AccessLogMaxBytes, "access-log-max-bytes", 64<<20, "the file's size before it becomes FILE.1")
	f.IntVar(&opt.AccessLogKeep, "access-log-keep", 4, "how many of FILE.1, FILE.2 and so on stay")
	traceFlags(f, &opt.Traces)
	f.DurationVar(&opt.DrainTimeout, "drain-timeout", 25*time.Second, "how long running requests may take after SIGTERM")
}

func admissionFlags(f *pflag.FlagSet, opt *node.Admission) {
	f.IntVar(&opt.MaxWorkerInflight, "max-inflight-per-worker", 0, "of them, those of one worker; it may have the same share of --max-queue and --max-streams (default three quarters)")
	f.IntVar(&opt.MaxTenantInflight, "max-inflight-per-tenant", 0, "of them, those of one tenant, likewise (default seven eighths)")
	f.DurationVar(&opt.QueueTimeout, "queue-timeout", 5*time.Second, "how long an invocation may wait; a request that would have to wait longer is refused at once")
	f.IntVar(&opt.MaxStreams, "max-streams", 0, "responses that stream for more than a second and hold no place of --max-inflight (default 4 times that)")
	f.IntVar(&opt.MinClientRate, "min-client-rate", 240, "bytes per second that a client has to send of a body, or take of a response, while it is waited for")
	f.IntVar(&opt.MaxConns, "max-connections", 0, "open public connections; over it, idle ones close first, then new ones get 503 (default 32768, or less by the limit of open files)")
	f.IntVar(&opt.MaxClientConns, "max-connections-per-client", 0, "of them, those of one address that is no trusted proxy (default half)")
}

func sizeVar(f *pflag.FlagSet, p *int64, name string, def byteSize, usage string) {
	*p = int64(def)
	f.Var((*byteSize)(p), name, usage)
}

func newLogger(w io.Writer, format string) (*slog.Logger, error) {
	if format == "" {
		format = "json"
		if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			format = "text"
		}
	}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	}
	return nil, usagef("--log-format: %q is neither text nor json", format)
}

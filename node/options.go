package node

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"edged/control"
	"edged/control/artifact"
	"edged/internal/fault"
	"edged/node/machine"
)

// Options is every setting of `edged run` (node-surface §2). New copies it, fills the defaults and reports all faults at once.
type Options struct {
	DataDir string // required

	HTTP    string // address of the plain public listener, "" is off
	HTTPS   string // address of the TLS public listener, "" is off
	Control string // address of the Host API; required
	Admin   string // address of metrics and health, "" is off

	ControlOrigin     string   // "" means https:// and the bound address of Control
	EndpointDomain    string   // "" means edge.localhost
	CustomDomainZones []string // zone, zone=tenant or *; nil means * if both public listeners are loopback-only, else none
	ArtifactOrigins   []string // exact https origins
	// ArtifactCredentials is a file with what those origins are asked with (artifact.ReadCredentials); "" means none.
	ArtifactCredentials string
	MaxHeldBytes        int64    // of artifacts that one tenant may hold, 0 means 16 GiB
	ControlRate         int      // requests per second of one principal on the control listener, 0 means 10,000
	TrustedProxies      []string // addresses or prefixes whose forwarding headers are believed
	// TrustedDiagnostics are the peers that get Edged-Version and Edged-Sandbox: addresses or prefixes; "loopback" stands
	// for all of loopback. nil means loopback; empty but not nil means nobody.
	TrustedDiagnostics []string

	MaxCPU         time.Duration // 0 means 10 s
	MaxWall        time.Duration // 0 means 30 s
	MaxWallEvents  time.Duration // 0 means 15 min
	MaxMemory      int64         // bytes of one sandbox, 0 means 128 MiB
	Isolation      string        // "" means request; or worker
	Egress         string        // what fetch may reach: "" means public; or none, or the name of a file of rules
	Cores          int           // guests that run at once, 0 means as many as Go code has threads; fewer leave threads for all else
	MaxInflight    int           // 0 means from cores and memory
	MaxQueue       int           // 0 means from MaxInflight
	Admission                    // what else bounds invocations and clients
	MaxRequestBody int64         // 0 means 100 MiB

	TLSDir string // certificates of the operator's for routed names, read again when they change; "" means none

	Role   string // "" means control,edge; or edge, or control, with which HTTP and HTTPS are off, on a node that joins a fleet
	Peer   string // address that the other members of a fleet reach this node at, "": it runs alone
	Gossip string // address of memberlist, "" is off
	Join   string // peer address of a voter whose fleet this node joins if it is in none, with Invite
	Invite string // what "edged fleet invite" printed, or @ and the name of a file with it
	// RevalidateAfter is how long a member that is cut off goes on honouring what can be revoked, 0 means 15 min.
	RevalidateAfter time.Duration

	DrainTimeout time.Duration // 0 means 25 s

	// AccessLog is the file that a line for each exchange with a client is appended to, "-" for AccessLogOut; "" is off.
	AccessLog         string
	AccessLogOut      io.Writer // nil means the standard output
	AccessLogSample   float64   // the share of exchanges that gets a line, 0 means all
	AccessLogMaxBytes int64     // of the file before it becomes FILE.1, 0 means 64 MiB
	AccessLogKeep     int       // how many of FILE.1, FILE.2 and so on stay, 0 means 4
	Traces            TraceOptions

	Version string       // of the program, for metrics
	Log     *slog.Logger // nil discards
	// Announce is told each listener's name and bound address, in the order they were bound. nil tells nobody.
	Announce func(name, addr string)

	Succession // of processes; the zero value is a node that stands alone
}

// maxMemory is the engine's own ceiling for one sandbox.
const maxMemory = 2 << 30

// Check returns what New would refuse these options for, all faults joined, and takes nothing.
func (o Options) Check() error {
	if _, err := o.withDefaults(); err != nil {
		return fault.New(fault.Invalid, "node.New", err.Error())
	}
	return nil
}

func (o Options) withDefaults() (Options, error) {
	var faults []error
	bad := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if o.DataDir == "" {
		bad("--data-dir: name a directory")
	}
	for _, l := range o.listeners() {
		if l.addr == "" && l.name == "control" {
			bad("--control: the node cannot work without its control listener")
		} else if l.addr != "" {
			if _, _, err := net.SplitHostPort(l.addr); err != nil {
				bad("--%s: %q is not an address like 127.0.0.1:8080", l.name, l.addr)
			}
		}
	}
	if o.HTTP == "" && o.HTTPS == "" {
		bad("--http and --https are both off: nothing could be served")
	}
	if o.EndpointDomain == "" {
		o.EndpointDomain = "edge.localhost"
	}
	if !isDNSName(o.EndpointDomain) {
		bad("--endpoint-domain: %q is not a lower-case DNS name", o.EndpointDomain)
	}
	if o.ControlOrigin != "" {
		if err := checkOrigin(o.ControlOrigin); err != nil {
			bad("--control-origin: %w", err)
		}
	}
	for _, origin := range o.ArtifactOrigins {
		if err := checkOrigin(origin); err != nil {
			bad("--artifact-origins: %w", err)
		}
	}
	if o.ArtifactCredentials != "" {
		if _, err := artifact.ReadCredentials(o.ArtifactCredentials); err != nil {
			bad("--artifact-credentials: %s", fault.Detail(err))
		}
	}
	if _, err := parseZones(o.CustomDomainZones); err != nil {
		bad("--custom-domain-zones: %w", err)
	}
	if _, err := parsePrefixes(o.TrustedProxies); err != nil {
		bad("--trusted-proxies: %w", err)
	}
	if o.TrustedDiagnostics == nil {
		o.TrustedDiagnostics = []string{"loopback"}
	}
	if _, err := parsePrefixes(o.TrustedDiagnostics); err != nil {
		bad("--trusted-diagnostics: %w", err)
	}
	duration := func(flag string, p *time.Duration, def time.Duration) {
		if *p == 0 {
			*p = def
		}
		if *p < 0 {
			bad("--%s: %v is negative", flag, *p)
		}
	}
	duration("max-cpu", &o.MaxCPU, 10*time.Second)
	duration("max-wall", &o.MaxWall, 30*time.Second)
	duration("max-wall-events", &o.MaxWallEvents, 15*time.Minute)
	duration("drain-timeout", &o.DrainTimeout, 25*time.Second)
	if o.AccessLogSample < 0 || o.AccessLogSample > 1 {
		bad("--access-log-sample: %v is not more than 0 and at most 1", o.AccessLogSample)
	}
	if o.AccessLogMaxBytes != 0 && o.AccessLogMaxBytes < 1<<16 || o.AccessLogKeep < 0 {
		bad("--access-log-max-bytes is at least 64KiB, --access-log-keep not negative")
	}
	o.sizeDefaults(bad)
	o.Admission.defaults(o.MaxInflight, bad)
	switch o.Isolation {
	case "":
		o.Isolation = "request"
	case "request", "worker":
	default:
		bad("--isolation: %q is neither request nor worker", o.Isolation)
	}
	if _, err := egressOptions(o.Egress); err != nil {
		bad("--egress: %w", err)
	}
	if o.Role == "" {
		o.Role = "control,edge"
	}
	o.checkFleet(bad)
	o.Traces.check(bad)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Announce == nil {
		o.Announce = func(string, string) {}
	}
	return o, errors.Join(faults...)
}

// checkFleet judges what has to do with other nodes.
func (o *Options) checkFleet(bad func(string, ...any)) {
	roles := strings.Split(o.Role, ",")
	for i, r := range roles {
		if r != "control" && r != "edge" || slices.Contains(roles[:i], r) {
			bad("--role: %q is not control, edge, or both with a comma between", o.Role)
			break
		}
	}
	if o.Peer == "" {
		for _, f := range []struct{ name, value string }{{"gossip", o.Gossip}, {"join", o.Join}, {"invite", o.Invite}} {
			if f.value != "" {
				bad("--%s is for a member of a fleet: it needs --peer", f.name)
			}
		}
		if len(roles) != 2 {
			bad("--role: a node without --peer has both roles")
		}
	} else if host, _, err := net.SplitHostPort(o.Peer); err == nil && unspecified(host) {
		bad("--peer: %q: name the address at which the other members reach this node", o.Peer)
	}
	if !o.hasRole("edge") { // it serves nobody
		o.HTTP, o.HTTPS = "", ""
	}
	if host, _, err := net.SplitHostPort(o.Gossip); o.Gossip != "" && (err != nil || unspecified(host)) {
		bad("--gossip: %q is not an address at which the other members reach this node", o.Gossip)
	}
	if (o.Join == "") != (o.Invite == "") {
		bad("--join and --invite belong together")
	}
	if o.RevalidateAfter < 0 {
		bad("--revalidate-after: %v is negative", o.RevalidateAfter)
	}
	if o.RevalidateAfter == 0 {
		o.RevalidateAfter = 15 * time.Minute
	}
}

func (o *Options) hasRole(role string) bool { return slices.Contains(strings.Split(o.Role, ","), role) }

// sizeDefaults fills the limits that are counts of bytes or invocations.
func (o *Options) sizeDefaults(bad func(string, ...any)) {
	if o.MaxMemory == 0 {
		o.MaxMemory = 128 << 20
	}
	if o.MaxMemory < 8<<20 || o.MaxMemory > maxMemory {
		bad("--max-memory: %d bytes is outside 8MiB to 2GiB", o.MaxMemory)
	}
	if o.MaxRequestBody == 0 {
		o.MaxRequestBody = 100 << 20
	}
	if o.Cores == 0 {
		o.Cores = runtime.GOMAXPROCS(0)
	}
	if o.MaxInflight == 0 {
		o.MaxInflight = defaultInflight(o.Cores, machine.System{}.Limits(0).Usable(), o.MaxMemory)
	}
	if o.MaxQueue == 0 {
		o.MaxQueue = 16 * o.MaxInflight
	}
	if o.MaxHeldBytes < 0 || o.ControlRate < 0 {
		bad("--max-held-bytes and --control-rate cannot be negative")
	}
	if o.MaxRequestBody < 0 || o.Cores < 0 || o.MaxInflight < 0 || o.MaxQueue < 0 {
		bad("--max-request-body, --max-inflight and --max-queue cannot be negative")
	}
}

// defaultInflight is 64 invocations per core, most of which wait for something, but no more than fit into the
// memory of the machine and its control group if each took all that a sandbox may; at least one per core.
func defaultInflight(cores int, memory, sandbox int64) int {
	n := 64 * cores
	if memory > 0 && sandbox > 0 {
		n = int(min(int64(n), memory/sandbox))
	}
	return max(n, cores)
}

type namedAddr struct{ name, addr string }

// listeners returns the listeners in the order in which they are bound and announced.
func (o Options) listeners() []namedAddr {
	return []namedAddr{{"control", o.Control}, {"admin", o.Admin}, {"peer", o.Peer}, {"https", o.HTTPS}, {"http", o.HTTP}}
}

// loopbackOnly reports whether nobody outside this machine can reach the public listeners.
func (o Options) loopbackOnly() bool {
	if o.HTTP == "" && o.HTTPS == "" {
		return false // others serve
	}
	for _, addr := range []string{o.HTTP, o.HTTPS} {
		if addr == "" {
			continue
		}
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return false
		}
		ip, err := netip.ParseAddr(host)
		if host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// zones returns who may claim which custom domains: what the operator said, else every name on a loopback-only node.
func (o Options) zones() []control.Zone {
	if o.CustomDomainZones == nil && o.loopbackOnly() {
		return []control.Zone{{Name: "*"}}
	}
	zones, _ := parseZones(o.CustomDomainZones) // withDefaults has checked them
	return zones
}

func parseZones(texts []string) ([]control.Zone, error) {
	var zones []control.Zone
	for _, text := range texts {
		name, tenant, _ := strings.Cut(text, "=")
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if name != "*" && !isDNSName(name) {
			return nil, fmt.Errorf("%q is not *, a zone or zone=tenant", text)
		}
		zones = append(zones, control.Zone{Name: name, Tenant: tenant})
	}
	return zones, nil
}

func parsePrefixes(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		if text == "loopback" {
			out = append(out, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
			continue
		}
		if ip, err := netip.ParseAddr(text); err == nil {
			out = append(out, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a prefix", text)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func checkOrigin(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || text != "https://"+u.Host {
		return fmt.Errorf("%q is not an https origin like https://edge.example.test:8081", text)
	}
	return nil
}

// isDNSName reports whether s is a lower-case DNS name without a trailing dot.
func isDNSName(s string) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return true
}

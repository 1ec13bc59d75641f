//go:build linux

package nettest

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/prometheus/client_golang/prometheus"

	"edged/internal/disk"
	"edged/kv"
	"edged/kv/gossip"
	"edged/kv/replica"
)

const (
	space      = "u"
	feedPort   = "7000"
	gossipPort = "7001"
)

// setup is what a node's process is told first.
type setup struct {
	Name, IP, Dir, KeyFile string
	ID                     identity
	Reserve                uint64 // bytes of its disk that stay free
	Loopback               bool   // IP is one of this machine's own: there is no link to set up
}

// order is one line that a node's process is sent; answer what it says to it.
type order struct {
	Op      string // members, put, delete, get, list, wait, state; follow, load, arrivals (measure_test.go)
	Key     string
	Size    int
	Count   int            // put and delete: keys Key+"0", Key+"1" and so on; 0 means Key itself
	Seed    byte           // of the values
	Members []kv.Member    // members
	Origin  replica.Origin // wait
	Seq     uint64         // wait
	Within  time.Duration  // wait, load
	Rate    int            // load: puts a second
}

type answer struct {
	Err     string
	Epoch   replica.Origin
	Seq     uint64
	Done    int           // put and delete: how many were acknowledged
	Sum     string        // get: of the value; list: of all keys and values
	Keys    int           // list
	Took    time.Duration // wait
	RSS     int64
	Metrics map[string]float64

	Acked    []moment   // load
	Arrivals []arrivals // arrivals
}

// runNode is the process of one node: it sets up its end of the link, serves its store, and obeys.
func runNode() error {
	in := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	var s setup
	if err := in.Decode(&s); err != nil {
		return err
	}
	links := []string{"link set lo up", "addr add " + s.IP + "/24 dev eth0", "link set eth0 up"}
	if s.Loopback {
		links = nil
	}
	for _, args := range links {
		if b, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", args, err, b)
		}
	}
	n, err := openNode(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go n.watch.Run(ctx)
	failed := make(chan error, 2)
	go func() { failed <- n.store.Run(ctx) }()
	go func() { failed <- n.server.ListenAndServeTLS("", "") }()
	out.Encode(answer{Epoch: n.store.Epoch()})
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return nil // the test is over
		}
		a, err := n.obey(ctx, o)
		select {
		case ferr := <-failed:
			err = errors.Join(err, errors.New("the node gave up"), ferr)
		default:
		}
		if err != nil {
			a.Err = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

type node struct {
	store  *kv.Store
	watch  *disk.Space
	reg    *prometheus.Registry
	server *http.Server
	meter  measure
}

func openNode(s setup) (*node, error) {
	cert, err := tls.X509KeyPair(s.ID.Cert, s.ID.Key)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.ID.Authority)
	n := &node{reg: prometheus.NewRegistry(), watch: disk.NewSpace(disk.SpaceOptions{Dir: s.Dir, Reserve: s.Reserve, Every: 20 * time.Millisecond})}
	cache := pebble.NewCache(16 << 20)
	defer cache.Unref()
	says := io.Writer(os.Stderr)
	if s.Loopback {
		says = io.Discard // a measurement has no faults to tell of, but processes that end
	}
	n.store, err = kv.Open(kv.Options{Dir: s.Dir, Node: s.Name, Cache: cache, MemSize: 4 << 20, Space: n.watch,
		Metrics: kv.NewMetrics(n.reg), Log: slog.New(slog.NewTextHandler(says, nil)).With("node", s.Name),
		Peers: &kv.PeerOptions{
			Client: &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
				DialContext:     (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
				TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool}}},
			Name: func(r *http.Request) (string, error) {
				return r.TLS.PeerCertificates[0].Subject.CommonName, nil // the listener lets nobody in without one
			},
			Gossip: &gossip.Options{Bind: s.IP + ":" + gossipPort, KeyFile: s.KeyFile},
		}})
	if err != nil {
		return nil, err
	}
	n.server = &http.Server{Addr: s.IP + ":" + feedPort, Handler: n.store.Handler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}}
	if n.store.Exists(space) {
		return n, nil
	}
	return n, n.store.Create(context.Background(), space, 1)
}

func (n *node) obey(ctx context.Context, o order) (a answer, err error) {
	ns := n.store.Namespace(space)
	switch o.Op {
	case "members":
		err = n.store.SetMembers(o.Members)
	case "put", "delete":
		a.Done, err = change(ctx, ns, o)
	case "get":
		a.Sum, err = sumOf(ctx, ns, o.Key)
	case "list":
		a.Keys, a.Sum, err = sumAll(ctx, ns)
	case "wait":
		wctx, cancel := context.WithTimeout(ctx, o.Within)
		defer cancel()
		begin := time.Now()
		err = n.store.Wait(wctx, o.Origin, o.Seq)
		a.Took = time.Since(begin)
	case "follow":
		n.meter.follow(ctx, n.store, o.Members)
	case "load":
		a.Acked, err = n.meter.load(ctx, n.store, o)
	case "arrivals":
		a.Arrivals = n.meter.arrived()
	case "state":
		a.RSS, a.Metrics, err = n.state()
	default:
		err = fmt.Errorf("unknown order %q", o.Op)
	}
	a.Epoch, a.Seq = n.store.Position()
	return a, err
}

func change(ctx context.Context, ns *kv.Namespace, o order) (done int, err error) {
	rng := rand.NewChaCha8([32]byte{o.Seed})
	value := make([]byte, o.Size)
	for i := range max(1, o.Count) {
		key := o.Key
		if o.Count > 0 {
			key += strconv.Itoa(i)
		}
		if o.Op == "delete" {
			err = ns.Delete(ctx, key)
		} else {
			rng.Read(value)
			err = ns.Put(ctx, key, value, kv.PutOptions{})
		}
		if err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

func sumOf(ctx context.Context, ns *kv.Namespace, key string) (string, error) {
	v, ok, err := ns.Get(ctx, key, nil)
	if err != nil || !ok {
		return "-", err
	}
	return fmt.Sprintf("%d %x", len(v), sha256.Sum256(v)), nil
}

func sumAll(ctx context.Context, ns *kv.Namespace) (keys int, sum string, err error) {
	h := sha256.New()
	cursor := ""
	for {
		page, err := ns.List(ctx, kv.ListOptions{Limit: 1000, Cursor: cursor})
		if err != nil {
			return 0, "", err
		}
		for _, k := range page.Keys {
			s, err := sumOf(ctx, ns, k)
			if err != nil {
				return 0, "", err
			}
			fmt.Fprintln(h, k, s)
			keys++
		}
		if cursor = page.Cursor; cursor == "" {
			return keys, fmt.Sprintf("%x", h.Sum(nil)), nil
		}
	}
}

func (n *node) state() (rss int64, metrics map[string]float64, err error) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, nil, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0, nil, err
	}
	families, err := n.reg.Gather()
	metrics = map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += "," + l.GetValue()
			}
			metrics[strings.TrimPrefix(name, "edged_kv_")] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return pages * int64(os.Getpagesize()), metrics, err
}

// Command bench measures a node beside its baselines, in one run. See README.md in this folder.
//
//	main.go        which parts run, and the report
//	process.go     node and baseline processes, and what they cost
//	workers.go     what is deployed on them
//	load.go        contenders under wrk, in alternating windows
//	gotest.go      the rooms' own benchmarks, read
//	hello.go       requests per second beside bare fasthttp
//	echo.go        bodies of 1 MiB
//	api.go         a JSON API, and a worker of 200 KB
//	reset.go       what a pristine sandbox costs
//	cold.go        first requests and deploys
//	memory.go      bytes per idle worker and per live sandbox
//	density.go     10,000 workers on one node
//	neighbours.go  a good tenant beside a hostile one
//	control.go     creates, one change, lists and a restart among many Resources
//	cpu.go         JavaScript kernels beside node
//	stores.go      kv and sql beside what they are made of, and from JavaScript
//	nodes.go       fleets of real nodes
//	converge.go    a fleet's KV: until all have a put
//	observe.go     what a node's KV has of the others
//	stopped.go     a fleet's KV while a node is stopped, and after
//	fleet.go       a fleet's plan: until all serve a change
//	queue.go       queues, to the end of a JavaScript consumer
//	objects.go     object buckets beside plain files, and through a worker
//	peers.go       other servers; peers/ has what they need
//
// Not here: benchmarks of single functions. Those stand beside what they measure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config is what the command line asks for.
type config struct {
	only    string
	windows int
	window  time.Duration
	binary  string

	resources int
	density   int
	peers     bool

	nodes int
	away  time.Duration
	token string // file with the token of a fleet's nodes; "" means each has its own
}

// fewer is for the parts that tell more than they prove: half as many windows, shorter ones.
func (c config) fewer() config {
	c.windows, c.window = max(1, c.windows/2), c.window*2/3
	return c
}

// report collects the lines of the run and the values that have a target.
type report struct{ missed []string }

func (r *report) line(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// target says a value with what it has to reach.
func (r *report) target(name string, value, want float64, atMost bool, unit string) {
	ok, sign := value >= want, ">="
	if atMost {
		ok, sign = value <= want, "<="
	}
	verdict := "met"
	if !ok {
		verdict = "MISSED"
		r.missed = append(r.missed, name)
	}
	r.line("  %-44s %8.2f %-4s (target %s %g: %s)", name, value, unit, sign, want, verdict)
}

func main() {
	var cfg config
	serve := flag.String("serve-fasthttp", "", "internal: serve the baseline on this address")
	flag.StringVar(&cfg.only, "only", "", "one part by name (default: all but "+strings.Join(long, ", ")+")")
	flag.IntVar(&cfg.windows, "windows", 7, "measuring windows per contender")
	flag.DurationVar(&cfg.window, "window", 3*time.Second, "length of a window")
	flag.StringVar(&cfg.binary, "binary", "bin/edged", "the program to measure")
	flag.IntVar(&cfg.resources, "resources", 100_000, "how many Resources the control part makes")
	flag.IntVar(&cfg.density, "density", 10_000, "how many workers the density part deploys")
	flag.IntVar(&cfg.nodes, "nodes", 0, "how many nodes the converge part runs (default: 3, 5 and 8 in turn)")
	flag.DurationVar(&cfg.away, "away", 10*time.Second, "how long the converge part stops one of 3 nodes")
	flag.BoolVar(&cfg.peers, "peers", false, "measure beside other servers instead")
	flag.Parse()
	if *serve != "" {
		serveFasthttp(*serve)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// long are the parts that run only when they are named: a run without names has to end within ten minutes.
var long = []string{"density", "databases", "converge", "fleet"}

// part is one of the measurements.
type part struct {
	name string
	run  func(context.Context, config, *report) error
}

func run(ctx context.Context, cfg config) error {
	parts := []part{{"hello", benchHello}, {"echo", benchEcho}, {"api", benchAPI}, {"bundle", benchBundle}, {"reset", benchReset}, {"cold", benchCold},
		{"deploy", benchDeploy}, {"memory", benchMemory}, {"density", benchDensity}, {"neighbours", benchNeighbours}, {"control", benchControl},
		{"kv", benchKV}, {"converge", benchConverge}, {"fleet", benchFleet}, {"sql", benchSQL}, {"databases", benchDatabases}, {"queue", benchQueue}, {"objects", benchObjects}, {"cpu", benchCPU}}
	if cfg.peers {
		parts = []part{{"hello", peerHello}, {"echo", peerEcho}, {"objects", peerObjects}, {"queue", peerQueue}}
	}
	if cfg.only != "" && !slices.ContainsFunc(parts, func(p part) bool { return p.name == cfg.only }) {
		var names []string
		for _, p := range parts {
			names = append(names, p.name)
		}
		return fmt.Errorf("there is no part %q; there are %s", cfg.only, strings.Join(names, ", "))
	}
	var r report
	r.line("machine: %s; %s", machine(), runtime.Version())
	r.line("command: bench %s", strings.Join(os.Args[1:], " "))
	var failed []string
	began := time.Now()
	for _, p := range parts {
		if cfg.only != "" && cfg.only != p.name || ctx.Err() != nil {
			continue
		}
		r.line("\n%s", p.name)
		if cfg.only == "" && slices.Contains(long, p.name) {
			r.line("  left out, it is long: -only %s", p.name)
			continue
		}
		start := time.Now()
		if err := p.run(ctx, cfg, &r); err != nil {
			r.line("  FAILED: %v", err)
			failed = append(failed, p.name)
		}
		r.line("  (%v)", time.Since(start).Round(time.Second))
	}
	r.line("\nlargest poll gap over all parts: %s", largestGap())
	r.line("took %v", time.Since(began).Round(time.Second))
	if len(r.missed) > 0 {
		r.line("targets missed: %s", strings.Join(r.missed, ", "))
	}
	if len(failed) > 0 {
		return fmt.Errorf("parts that failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// machine says what the numbers were measured on.
func machine() string {
	model, release := "unknown processor", "unknown kernel"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.Trim(name, "\t :\n")
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release = strings.TrimSpace(string(b))
	}
	return fmt.Sprintf("%s, %d cores, Linux %s", model, runtime.NumCPU(), release)
}

// spread is the median of some measurements, with the lowest and the highest.
type spread struct{ median, low, high float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	s := slices.Sorted(slices.Values(values))
	return spread{s[len(s)/2], s[0], s[len(s)-1]}
}

// quantile returns the q-quantile of values.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

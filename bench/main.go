// Command bench measures a node beside its baselines, in one run. See README.md in this folder.
//
//	main.go        which parts run
//	report.go      the lines of a run, values with their spread, the table of ratios
//	document.go    a run as a JSON document, and the kept ones
//	check.go       a run beside the kept ones, by ratio
//	plots.go       pictures, which plot/ draws
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
//	soak.go        ten times more than a node can serve
//	barrage.go     requests on a schedule, whatever their answers
//	control.go     creates, one change, lists and a restart among many Resources
//	cpu.go         JavaScript kernels beside node
//	unedited.go    the same beside the engine without our edits
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
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config is what the command line asks for.
type config struct {
	json    string // the document of the run; "" is none
	check   bool
	against string // a document or a folder of them
	plots   string // a folder for pictures; "" is none

	only    string
	windows int
	window  time.Duration
	binary  string
	beside  string // another build of the program for the hello part; "" is none

	resources int
	density   int
	soak      time.Duration
	peers     bool

	nodes int
	away  time.Duration
	token string // file with the token of a fleet's nodes; "" means each has its own
}

// suite is what the parts of this run belong to: names of parts are used in both.
func (c config) suite() string {
	if c.peers {
		return "peers"
	}
	return "rooms"
}

// named says whether the command line asks for a part by its name.
func (c config) named(part string) bool { return slices.Contains(strings.Split(c.only, ","), part) }

// fewer is for the parts that tell more than they prove: half as many windows, shorter ones.
func (c config) fewer() config {
	c.windows, c.window = max(1, c.windows/2), c.window*2/3
	return c
}

func main() {
	var cfg config
	serve := flag.String("serve-fasthttp", "", "internal: serve the baseline on this address")
	flag.StringVar(&cfg.only, "only", "", "parts by name, a comma between two (default: all but "+strings.Join(long, ", ")+")")
	flag.IntVar(&cfg.windows, "windows", 7, "measuring windows per contender")
	flag.DurationVar(&cfg.window, "window", 3*time.Second, "length of a window")
	flag.StringVar(&cfg.binary, "binary", "bin/edged", "the program to measure")
	flag.StringVar(&cfg.beside, "beside", "", "another build of the program, which the hello part loads in turn with the one to measure")
	flag.IntVar(&cfg.resources, "resources", 100_000, "how many Resources the control part makes")
	flag.IntVar(&cfg.density, "density", 10_000, "how many workers the density part deploys")
	flag.DurationVar(&cfg.soak, "soak", 5*time.Minute, "how long the soak part overloads the node")
	flag.IntVar(&cfg.nodes, "nodes", 0, "how many nodes the converge part runs (default: 3, 5 and 8 in turn)")
	flag.DurationVar(&cfg.away, "away", 10*time.Second, "how long the converge part stops one of 3 nodes")
	flag.BoolVar(&cfg.peers, "peers", false, "measure beside other servers instead")
	flag.StringVar(&cfg.json, "json", "", "write the run to this file, as JSON")
	flag.BoolVar(&cfg.check, "check", false, "compare by ratio with kept results, and fail if something regressed; with files named: those instead of a new run")
	flag.StringVar(&cfg.against, "against", "bench/results", "what -check compares with: a document, or the committed ones of a folder")
	flag.StringVar(&cfg.plots, "plot", "", "draw the run and the kept results into this folder, as PNG")
	flag.Parse()
	if *serve != "" {
		serveFasthttp(*serve)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := begin(ctx, cfg, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// begin runs parts, or compares documents that are there.
func begin(ctx context.Context, cfg config, files []string) error {
	switch {
	case len(files) == 0:
		return run(ctx, cfg)
	case !cfg.check:
		return fmt.Errorf("unknown argument %q (files are named for -check)", files[0])
	}
	return checkFiles(ctx, cfg, files)
}

// long are the parts that run only when they are named: a run without names has to end within ten minutes.
var long = []string{"density", "databases", "soak", "converge", "fleet", "engine"}

// part is one of the measurements.
type part struct {
	name string
	run  func(context.Context, config, *report) error
}

func run(ctx context.Context, cfg config) error {
	parts := []part{{"hello", benchHello}, {"echo", benchEcho}, {"api", benchAPI}, {"bundle", benchBundle}, {"reset", benchReset}, {"cold", benchCold},
		{"deploy", benchDeploy}, {"memory", benchMemory}, {"density", benchDensity}, {"neighbours", benchNeighbours}, {"soak", benchSoak}, {"control", benchControl},
		{"kv", benchKV}, {"converge", benchConverge}, {"fleet", benchFleet}, {"sql", benchSQL}, {"databases", benchDatabases}, {"queue", benchQueue}, {"objects", benchObjects}, {"cpu", benchCPU}, {"engine", benchEngine}}
	if cfg.peers {
		parts = []part{{"hello", peerHello}, {"echo", peerEcho}, {"objects", peerObjects}, {"queue", peerQueue}}
	}
	if err := cfg.known(parts); err != nil {
		return err
	}
	var r report
	doc := newDocument(ctx, cfg)
	if err := prepare(cfg.json); err != nil { // now, not after ten minutes
		return err
	}
	r.line("machine: %s; %s", doc.Machine, doc.Go)
	r.line("command: %s   (commit %s)", doc.Command, doc.Commit)
	var failed []string
	began := time.Now()
	for _, p := range parts {
		if cfg.only != "" && !cfg.named(p.name) || ctx.Err() != nil {
			continue
		}
		r.line("\n%s", p.name)
		if cfg.only == "" && slices.Contains(long, p.name) {
			r.line("  left out, it is long: -only %s", p.name)
			continue
		}
		r.part = p.name
		start, done := time.Now(), partRun{Name: p.name}
		if err := p.run(ctx, cfg, &r); err != nil {
			r.line("  FAILED: %v", err)
			failed, done.Failed = append(failed, p.name), firstLine(err)
		}
		done.Seconds = time.Since(start).Round(time.Second).Seconds()
		doc.Parts = append(doc.Parts, done)
		r.line("  (%v)", time.Since(start).Round(time.Second))
	}
	r.part = "all"
	if gap > 0 {
		r.note("largest poll gap", once(gap*1000), "ms")
	}
	r.table()
	r.line("\nlargest poll gap over all parts: %s", largestGap())
	r.line("took %v", time.Since(began).Round(time.Second))
	if len(r.missed) > 0 {
		r.line("targets missed: %s", strings.Join(r.missed, ", "))
	}
	doc.Seconds, doc.Results = time.Since(began).Round(time.Second).Seconds(), r.results
	err := doc.finish(ctx, cfg, &r)
	if len(failed) > 0 {
		err = errors.Join(fmt.Errorf("parts that failed: %s", strings.Join(failed, ", ")), err)
	}
	return err
}

// finish writes, draws and compares a run, as the command line asks.
func (d document) finish(ctx context.Context, cfg config, r *report) error {
	var bad []error
	if cfg.json != "" {
		bad = append(bad, d.write(cfg.json))
	}
	if cfg.plots != "" && ctx.Err() == nil {
		bad = append(bad, d.draw(ctx, cfg, r))
	}
	if cfg.check && ctx.Err() == nil {
		bad = append(bad, check(ctx, cfg, r, d))
	}
	return errors.Join(bad...)
}

// known is an error if the command line names a part that is not there.
func (c config) known(parts []part) error {
	if c.only == "" {
		return nil
	}
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	for name := range strings.SplitSeq(c.only, ",") {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no part %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// firstLine is what a document keeps of an error: the rest is what a node has logged.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

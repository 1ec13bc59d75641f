// Command conformance drives public test suites through real sandboxes: the web platform's (.any.js files) and test262.
// The suites are local copies that the caller names; nothing of them is in this project. docs/conformance.md holds the
// results and says how to read them.
//
//	main.go       flags, and what the run ends with
//	result.go     what became of a case, as one line of JSON
//	run.go        cases in parallel, each under its own limits
//	list.go       which cases are left out or known to fail, with reasons
//	report.go     counts per folder, what nobody expected
//	compare.go    two result files, line by line
//	invoke.go     one request into a sandbox
//	wpt.go        cases of the web platform tests: META lines, variants, scripts
//	wpthost.go    files of that suite, fetched by tests
//	wpt.js        the worker that runs such a case
//	test262.go    cases of test262: frontmatter, modes
//	test262run.go how they are run and judged
//	test262.js    the worker that runs such a case
//	wpt.list, test262.list   the lists
//
// Invariants: every case starts in a pristine sandbox; a case that is not run is counted with its reason; a failure that
// no list explains, and a listed one that passes, make the run fail.
//
// Not here: tests of our own. Those stand beside what they test.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

//go:embed wpt.list
var wptList []byte

//go:embed test262.list
var test262List []byte

// config is what the command line asks for.
type config struct {
	suite, dir string
	list       []byte        // what is left out, and known to fail
	json       string        // where results go, "" for nowhere
	only       []string      // prefixes of case names, none for all
	every      int           // run one case of so many
	parallel   int           // cases at once
	usual      time.Duration // for a case of the web platform tests
	long       time.Duration // for a case whose file asks for more, and the processor time of one of test262
	cache      string        // where the compiled engine is kept, "" for nowhere
	verbose    bool
}

// A suite finds its cases and runs them. Cases are run by many goroutines at once.
type suite interface {
	cases() ([]testCase, error)
	run(ctx context.Context, c testCase) result
	close() error
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

const usage = "usage: conformance [flags] wpt DIR | test262 DIR | compare FILE FILE"

func start(ctx context.Context, args []string, out io.Writer) error {
	var cfg config
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.StringVar(&cfg.json, "json", "", "write one line of JSON per case to this file")
	only := flags.String("only", "", "only cases whose names start with one of these, separated by commas")
	flags.IntVar(&cfg.every, "every", 1, "run one case of so many")
	flags.IntVar(&cfg.parallel, "parallel", runtime.GOMAXPROCS(0), "cases that run at once")
	flags.DurationVar(&cfg.usual, "time", 20*time.Second, "time for a case of the web platform tests")
	flags.DurationVar(&cfg.long, "long", time.Minute, "time for a case that asks for more, and processor time for one of test262")
	flags.StringVar(&cfg.cache, "cache", "", "keep the compiled engine in this folder")
	flags.BoolVar(&cfg.verbose, "v", false, "print the failures that the lists explain, too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *only != "" {
		cfg.only = strings.Split(*only, ",")
	}
	rest := flags.Args()
	if len(rest) == 3 && rest[0] == "compare" {
		return compare(rest[1], rest[2], out)
	}
	if len(rest) != 2 || cfg.every < 1 || cfg.parallel < 1 {
		return errors.New(usage)
	}
	cfg.suite, cfg.dir = rest[0], rest[1]
	switch cfg.suite {
	case "wpt":
		cfg.list = wptList
	case "test262":
		cfg.list = test262List
	default:
		return errors.New(usage)
	}
	return drive(ctx, &cfg, out)
}

// drive runs one suite and reports. The error says in one line what was not as expected.
func drive(ctx context.Context, cfg *config, out io.Writer) error {
	allowed := test262Kinds
	if cfg.suite == "wpt" {
		allowed = wptKinds
	}
	rules, err := parseList(bytes.NewReader(cfg.list), allowed)
	if err != nil {
		return fmt.Errorf("%s.list: %w", cfg.suite, err)
	}
	var s suite
	if cfg.suite == "wpt" {
		s, err = openWPT(cfg, rules)
	} else {
		s, err = openTest262(cfg, rules)
	}
	if err != nil {
		return err
	}
	begun := time.Now()
	rep, err := runAll(ctx, cfg, s, rules)
	if err = errors.Join(err, s.close()); err != nil {
		return err
	}
	if err := writeResults(cfg.json, rep.results); err != nil {
		return err
	}
	rep.print(out, cfg.verbose)
	fmt.Fprintf(out, "took %s\n", time.Since(begun).Round(time.Second))
	return rep.verdict()
}

package prelude

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/sandbox/engine"
	"edged/sandbox/engine/wasm"
)

var shared struct {
	once sync.Once
	e    *engine.Engine
	err  error
}

func TestMain(m *testing.M) {
	testkit.Main(m, goleak.Cleanup(func(code int) {
		if shared.e != nil {
			shared.e.Close()
		}
		os.Exit(code)
	}))
}

// testHost is what the files find of the host; reports is what reached host.report.
const testHost = "const reports = []; const host = { report(kind, text) { reports.push(kind + ': ' + text); }, hideSymbol() {} };\n"

// newGuest evaluates events and streams (files 00 to 39) and the given scripts of testdata in one scope, on an engine
// without host functions, and returns the object in which the scripts' last statement names what the test calls.
func newGuest(t testing.TB, last string, scripts ...string) (*engine.Instance, engine.Value) {
	t.Helper()
	code, man, err := wasm.Engine()
	if err != nil {
		t.Skip(fault.Detail(err))
	}
	shared.once.Do(func() {
		shared.e, shared.err = engine.New(context.Background(), engine.Options{Wasm: code, HostEntry: man.HostEntry})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	in, err := shared.e.NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	in.Arm(time.Minute)
	var src strings.Builder
	src.WriteString("(function () { 'use strict';\n" + testHost)
	names, err := fs.Glob(files, "[0-3]?-*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		src.Write(b)
	}
	for _, name := range append([]string{"frame.js"}, scripts...) {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		src.Write(b)
	}
	src.WriteString(last + "})()")
	v, err := in.Eval([]byte(src.String()), "prelude.js")
	if err != nil {
		t.Fatal(err)
	}
	return in, v
}

// Events, abort signals and streams behave as the standards say and as the runtime needs them (module-worker §3.1:
// back-pressure, cancellation; §5: the globals). Each script of testdata is a list of named tests.
func TestScripts(t *testing.T) {
	for _, script := range []string{"events.js", "streams.js"} {
		t.Run(script, func(t *testing.T) {
			in, api := newGuest(t, "return { run, results };", script)
			run := in.GetProp(api, "run")
			if _, err := in.Call(run, engine.Undefined); err != nil {
				t.Fatal(err)
			}
			if _, err := in.RunJobs(10_000_000); err != nil {
				t.Fatal(err)
			}
			v, err := in.Call(in.GetProp(api, "results"), engine.Undefined)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(in.Text(v), "\x01") {
				name, outcome, _ := strings.Cut(line, "\x00")
				t.Run(name, func(t *testing.T) {
					if outcome != "" {
						t.Error(outcome)
					}
				})
			}
		})
	}
}

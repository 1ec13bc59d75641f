package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"edged/internal/fault"
)

func testFlags() (*pflag.FlagSet, *string, *time.Duration, *[]string, *byteSize) {
	f := pflag.NewFlagSet("t", pflag.ContinueOnError)
	size := byteSize(128 << 20)
	f.Var(&size, "max-memory", "")
	f.String("config", "", "")
	return f, f.String("data-dir", "./data", ""), f.Duration("max-cpu", time.Second, ""), f.StringSlice("trusted-proxies", nil, ""), &size
}

// node-surface §2: file, overridden by environment, overridden by flags.
func TestApplyConfigPrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edged.toml")
	const file = "data_dir = \"file\"\nmax_cpu = \"3s\"\ntrusted_proxies = [\"10.0.0.1\", \"10.0.0.2\"]\nmax_memory = \"64MiB\"\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	flags, dir, cpu, proxies, size := testFlags()
	if err := flags.Parse([]string{"--max-cpu=5s"}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"EDGED_DATA_DIR": "env", "EDGED_MAX_CPU": "4s"}
	if err := applyConfig(flags, path, func(k string) (string, bool) { v, ok := env[k]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	if *dir != "env" || *cpu != 5*time.Second || strings.Join(*proxies, " ") != "10.0.0.1 10.0.0.2" || *size != 64<<20 {
		t.Fatalf("got %s %v %v %d", *dir, *cpu, *proxies, *size)
	}
}

// An unknown key is an error, and all faults are listed at once.
func TestApplyConfigListsAllFaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edged.toml")
	const file = "datadir = \"x\"\nmax_cpu = \"fast\"\nmax_memory = 1.5\nconfig = \"other\"\n"
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	flags, _, _, _, _ := testFlags()
	err := applyConfig(flags, path, func(k string) (string, bool) { return "many", k == "EDGED_MAX_MEMORY" })
	for _, want := range []string{`unknown key "datadir"`, `unknown key "config"`, `max_cpu: invalid value "fast"`, "max_memory: want a string", `EDGED_MAX_MEMORY: invalid value "many"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	flags, _, _, _, _ = testFlags()
	if err := os.WriteFile(path, []byte("a = \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := applyConfig(flags, path, os.LookupEnv); err == nil || !strings.Contains(err.Error(), path+":1:") {
		t.Errorf("malformed file: %v, want file and line", err)
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1024": 1024, "5B": 5, "64KiB": 64 << 10, "128MiB": 128 << 20, "2GiB": 2 << 30} {
		var b byteSize
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("%s: got %d, %v", text, b, err)
		}
		var again byteSize
		if err := again.Set(b.String()); err != nil || again != b {
			t.Errorf("%s renders as %s", text, b.String())
		}
	}
	for _, text := range []string{"", "-1", "1MB", "MiB", "9999999999GiB", "1.5GiB"} {
		if err := new(byteSize).Set(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// What is wrong with a start is told in sentences for people, one a line, without the places inside the program.
func TestWordsOfSeveralFaults(t *testing.T) {
	one := fault.New(fault.Unavailable, "node.bind", "--http: 127.0.0.1:1 is taken by another process")
	two := fault.New(fault.Unavailable, "node.bind", "--admin: 127.0.0.1:2 is taken by another process")
	got := explain(errors.Join(errors.Join(one, two), nil))
	if want := "--http: 127.0.0.1:1 is taken by another process\n--admin: 127.0.0.1:2 is taken by another process"; got.Error() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if fault.CodeOf(got) != fault.Unavailable {
		t.Errorf("the code became %v", fault.CodeOf(got))
	}
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edged/sandbox/engine/abi"
	"edged/sandbox/engine/wasm"
	"edged/sandbox/wasmpass"
)

// pinned returns the engine as the package ships it, or skips the test where the package was not fetched.
func pinned(t *testing.T) []byte {
	t.Helper()
	path := os.Getenv(packageVariable)
	if path == "" {
		path = filepath.Join("../../sandbox/engine/npm/node_modules", abi.PackageName)
	}
	code, err := readPackage(path)
	if err != nil {
		t.Skipf("needs the npm package: %v", err)
	}
	return code
}

// archive writes a .tgz with one file.
func archive(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "package.tgz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	a := tar.NewWriter(z)
	if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write(content); err != nil {
		t.Fatal(err)
	}
	for _, c := range []io.Closer{a, z, f} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func folder(t *testing.T, content []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, abi.PackageFile), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A folder, an archive, and the environment lead to the same engine, and a second run writes nothing.
func TestRunBuildsFromFolderAndArchive(t *testing.T) {
	code := pinned(t)
	out := t.TempDir()
	for i, step := range []struct {
		args  []string
		local string
		says  string
	}{
		{[]string{"-package", folder(t, code), "-out", out}, "/nonexistent", "loops counted"},
		{[]string{"-out", out}, archive(t, "package/"+abi.PackageFile, code), "is up to date"},
	} {
		var said strings.Builder
		if err := run(step.args, step.local, &said); err != nil || !strings.Contains(said.String(), step.says) {
			t.Fatalf("step %d: %q, %v", i, said.String(), err)
		}
	}
	files, err := os.ReadDir(out)
	if err != nil || len(files) != 2 || files[0].Name() != wasm.ManifestFile || files[1].Name() != wasm.EngineFile {
		t.Errorf("output is %v, %v", files, err)
	}
}

// What is embedded here is what this tool builds from the pinned package.
func TestEmbeddedEngineIsCurrent(t *testing.T) {
	res, err := build(pinned(t), false)
	if err != nil {
		t.Fatal(err)
	}
	_, man, err := wasm.Engine()
	if err != nil {
		t.Skipf("needs the built engine: %v", err)
	}
	if man != res.manifest {
		t.Errorf("embedded %+v, want %+v: run `make engine`", man, res.manifest)
	}
}

// The engine that results are compared with is another one, which the same program can run.
func TestSlowEngineIsAnother(t *testing.T) {
	code := pinned(t)
	fast, err := build(code, false)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := build(code, true)
	if err != nil {
		t.Fatal(err)
	}
	if slow.manifest.EngineSHA256 == fast.manifest.EngineSHA256 || slow.manifest.ABI != fast.manifest.ABI || slow.manifest.HostEntry != fast.manifest.HostEntry {
		t.Errorf("slow %+v, fast %+v", slow.manifest, fast.manifest)
	}
}

// An engine whose interpreter differs in any place that the pass edits is not built.
func TestBuildRefusesAnotherInterpreter(t *testing.T) {
	code := pinned(t)
	test := []byte{0x2d, 0, 0xf9, 5, 0x41, 0x80, 1, 0x71} // one of the tests of the dump flag
	for _, tc := range []struct {
		name string
		find []byte
		at   int
		put  byte
		why  string
	}{
		{"one test of the flag fewer", test, 2, 0xfa, "want {Function"},
		{"one test of another bit", test, 5, 0x81, "known way"},
		{"no byte before the switch", []byte{0x2d, 0, 0, 0x22, 12, 0x41, 2, 0x74}, 0, 0x2f, "0 switches"},
		{"another table", []byte{0x74, 0x28, 2, 0xf0, 0xc5, 0x42, 0x41, 2, 0x6b, 0x0e}, 3, 0xf4, "name an address in the table"},
		{"another setter", []byte("JS_SetDumpFlags"), 0, 'j', "JS_SetDumpFlags"},
		{"another place of the setter's write", []byte{0x3b, 0, 0xf9, 5}, 2, 0xfb, "0 times"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at := bytes.Index(code, tc.find)
			if at < 0 {
				t.Fatalf("%x is not in the engine", tc.find)
			}
			changed := bytes.Clone(code)
			changed[at+tc.at] = tc.put
			if _, err := build(changed, false); err == nil || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("build = %v, want %q", err, tc.why)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		why  string
	}{
		{"no package", []string{"-package", filepath.Join(t.TempDir(), "none")}, packageVariable},
		{"another file", []string{"-package", folder(t, []byte("other"))}, "is pinned as " + abi.PackageSHA256},
		{"empty folder", []string{"-package", t.TempDir()}, abi.PackageFile},
		{"archive of something else", []string{"-package", archive(t, "package/readme", nil)}, "has no package/"},
		{"archive with another file", []string{"-package", archive(t, "package/"+abi.PackageFile, []byte("other"))}, "is pinned as"},
		{"no archive", []string{"-package", filepath.Join(folder(t, []byte("other")), abi.PackageFile)}, "neither a folder nor a .tgz"},
		{"too large", []string{"-package", folder(t, make([]byte, maxEngineBytes+1))}, "is over"},
		{"argument", []string{"now"}, "unexpected argument"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			err := run(append([]string{"-out", out}, tc.args...), "", io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("run = %v, want %q", err, tc.why)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("something was written")
			}
		})
	}
}

// Every difference from the abi is reported, not just the first.
func TestAssertReportsEveryFault(t *testing.T) {
	// Imports env.host_interrupt of type "->" and h.f; exports a function "malloc" of type "->", "memory" as a
	// function, and "__stack_pointer" as an immutable global.
	m, err := wasmpass.Decode([]byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x04\x01\x60\x00\x00" +
		"\x02\x1c\x02\x03env\x0ehost_interrupt\x00\x00\x01h\x01f\x00\x00" +
		"\x06\x06\x01\x7f\x00\x41\x00\x0b" +
		"\x07\x25\x03\x06malloc\x00\x00\x06memory\x00\x00\x0f__stack_pointer\x03\x00"))
	if err != nil {
		t.Fatal(err)
	}
	got := assert(m)
	for _, want := range []string{
		"import env.host_interrupt is of type ->, want -> i32",
		"import h.f (func) is not one we provide",
		"import env.host_call is missing",
		"import wasi_snapshot_preview1.random_get is missing",
		"export malloc is func of type ->, want func of type i32 -> i32",
		"export JS_Eval is missing",
		"export memory is missing or not a memory",
		"export __indirect_function_table is missing or not a table",
		"0 mutable globals, want only __stack_pointer",
		"export __stack_pointer is not mutable",
	} {
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("%q is not reported", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

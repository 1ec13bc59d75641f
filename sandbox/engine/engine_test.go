package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"edged/internal/fault"
	"edged/internal/testkit"
	"edged/sandbox/engine/wasm"
)

// The engine is compiled once for the whole package, as a node does; the few tests that need an engine of their own take
// it from the same code cache.
var shared struct {
	once, dirOnce sync.Once
	dir           string
	e             *Engine
	err           error
}

func TestMain(m *testing.M) { testkit.Main(m, goleak.Cleanup(closeShared)) }

func closeShared(code int) {
	if shared.e != nil {
		shared.e.Close()
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

func options(t testing.TB) Options {
	t.Helper()
	code, man, err := wasm.Engine()
	if err != nil {
		t.Skip(fault.Detail(err))
	}
	shared.dirOnce.Do(func() {
		if shared.dir, err = os.MkdirTemp("", "engine"); err != nil {
			t.Fatal(err)
		}
	})
	return Options{Wasm: code, HostEntry: man.HostEntry, Hosts: testHosts, CacheDir: filepath.Join(shared.dir, "cache")}
}

func testEngine(t testing.TB) *Engine {
	t.Helper()
	opt := options(t)
	shared.once.Do(func() { shared.e, shared.err = New(context.Background(), opt) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.e
}

// testHosts is the table of the shared engine.
var testHosts = []Host{
	{"add", 2, func(in *Instance, args []Value) Value {
		x, ok1 := args[0].Float()
		y, ok2 := args[1].Float()
		if !ok1 || !ok2 {
			return in.ThrowType("two numbers, please")
		}
		return Float(x + y)
	}},
	{"user", 1, func(in *Instance, args []Value) Value { return in.User.(func(*Instance, []Value) Value)(in, args) }},
	{"call", 1, func(in *Instance, args []Value) Value { return in.TryCall(args[0], Undefined) }},
}

// fresh makes an instance whose scripts see `host`, armed with a generous budget.
func fresh(t testing.TB) *Instance {
	t.Helper()
	in, err := testEngine(t).NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	in.SetProp(in.Global(), "host", in.Dup(in.Host()))
	in.Arm(time.Minute)
	return in
}

// image builds an image of a script whose completion value is its only root.
func image(t testing.TB, e *Engine, src string, opt SnapshotOptions) *Image {
	t.Helper()
	in, err := e.NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.Arm(time.Minute)
	in.SetProp(in.Global(), "host", in.Dup(in.Host()))
	root, err := in.Eval([]byte(src), "image.js")
	if err != nil {
		t.Fatal(err)
	}
	in.Pack()
	opt.Roots = []Value{root}
	img, err := in.Snapshot(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(img.Close)
	return img
}

func clone(t testing.TB, img *Image) *Instance {
	t.Helper()
	in, err := img.engine.Clone(img)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	in.Arm(time.Minute)
	return in
}

// eval runs a script that must not fail and returns its result as text.
func eval(t testing.TB, in *Instance, src string) string {
	t.Helper()
	v, err := in.Eval([]byte(src), "test.js")
	if err != nil {
		t.Fatalf("%.80s: %v", src, err)
	}
	defer in.Free(v)
	return in.Text(v)
}

// All faults of the options are reported at once, each as Invalid.
func TestOptionsAreChecked(t *testing.T) {
	_, err := New(context.Background(), Options{MaxMemoryBytes: 1, StackBytes: 1 << 20, Grace: -1,
		Hosts: []Host{{Name: "x"}}})
	if fault.CodeOf(err) != fault.Invalid {
		t.Errorf("code %v, want invalid", fault.CodeOf(err))
	}
	for _, want := range []string{"module", "table index", "memory", "stack", "grace", "host function"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %q: %v", want, err)
		}
	}
}

// The cache holds code that the node executes: a folder that others may write to is refused.
func TestCacheFolderIsPrivate(t *testing.T) {
	dir := t.TempDir()
	fine, wide := filepath.Join(dir, "a", "cache"), filepath.Join(dir, "wide")
	if err := privateDir(fine); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(fine); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("made with mode %v, %v", st.Mode(), err)
	}
	if err := os.Mkdir(wide, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := privateDir(wide); err == nil {
		t.Error("a folder with mode 0755 was taken")
	}
	if err := os.Symlink(fine, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := privateDir(filepath.Join(dir, "link")); err == nil {
		t.Error("a symbolic link was taken")
	}
}

// The compile cache works, and an engine from it computes the same.
func TestCompileCache(t *testing.T) {
	opt := options(t)
	opt.CacheDir = filepath.Join(t.TempDir(), "cache")
	for range 2 {
		e, err := New(context.Background(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if e.Digest() != testEngine(t).Digest() {
			t.Error("the digest depends on the cache")
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

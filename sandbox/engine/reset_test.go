package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"edged/internal/testkit"
	"edged/sandbox/engine/abi"
)

// expected is the memory of the image that differences last looked at: tests do not run in parallel.
var expected struct {
	of    *Image
	bytes []byte
}

// differences compares an instance with its image, byte for byte, leaving out only the state of Math.random. "" means none.
func differences(in *Instance) string {
	mem, p := in.mem.view(), in.image.pages
	if uint64(len(mem)) != in.image.size {
		return fmt.Sprintf("%d bytes of memory, want %d", len(mem), in.image.size)
	}
	if expected.of != in.image {
		expected.of, expected.bytes = in.image, make([]byte, len(mem))
		for _, s := range p.spans {
			copy(expected.bytes[s.from:s.to], p.image[s.from-p.first:s.to-p.first])
		}
		for _, t := range p.tail {
			copy(expected.bytes[t.off:], t.data)
		}
	}
	want, at := expected.bytes, int(in.known.context+abi.RandomState)
	if bytes.Equal(mem[at:at+8], want[at:at+8]) {
		return "the state of Math.random is the image's"
	}
	if !bytes.Equal(mem[:at], want[:at]) || !bytes.Equal(mem[at+8:], want[at+8:]) {
		for i := range mem {
			if mem[i] != want[i] && (i < at || i >= at+8) {
				return fmt.Sprintf("the byte at %#x is %#x, want %#x", i, mem[i], want[i])
			}
		}
	}
	if in.sp.Get() != in.image.sp {
		return "the stack pointer moved"
	}
	if in.fuel.Get() != abi.Countdown || in.depth != 0 || in.failure != nil || in.stopped.Load() != nil {
		return "a counter or a failure is left"
	}
	return ""
}

const churn = `
globalThis.n = 0; globalThis.keep = [];
(kind, seed) => {
	n++; let s = seed;
	const next = (k) => (s = (s * 1103515245 + 12345) & 0x7fffffff) % k;
	switch (kind) {
	case 0: for (let i = next(2000); i > 0; i--) keep.push({i, t: 'k' + i}); break;
	case 1: Array.prototype.evil = seed; Object.prototype.toString = () => 'x'; JSON.parse = null; delete globalThis.Map; break;
	case 2: keep.push(new Uint8Array(next(3 << 20)).fill(7)); break;
	case 3: { const f = (d) => d > 0 ? f(d - 1) + 1 : 0; f(next(1500)); break; }
	case 4: keep.push('x'.repeat(next(1e6)) + Math.random()); break;
	case 5: for (let i = 0; i < 300; i++) globalThis['g' + next(1e9)] = Symbol(i); break;
	case 6: Promise.reject(1); new Promise(() => {}); queueMicrotask(() => {}); break;
	case 7: throw new Error('x'.repeat(next(1000)));
	case 8: { const m = new Map(); for (let i = 0; i < next(5000); i++) m.set('' + i, [i]); keep.push(m, new WeakRef(m)); break; }
	case 9: new RegExp('(a|b)*' + next(100)).exec('ab'.repeat(next(1000))); break;
	case 10: host.user(seed); host.call(() => 1); break;
	case 11: for (;;);
	}
	return n;
}`

// module-worker §7: every invocation starts byte for byte from the image. Whatever ran before, by whichever method
// written pages are found, the memory is the image's again, and the next invocation sees the state of the image.
func TestResetIsExact(t *testing.T) {
	methods := []ResetMethod{ResetScan, ResetRead, ResetWhole}
	for _, method := range methods {
		t.Run(method.String(), func(t *testing.T) {
			opt := options(t)
			opt.Reset = method
			e, err := New(context.Background(), opt)
			if err != nil && method != ResetWhole {
				t.Skipf("this kernel does not offer it: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			rng := testkit.Rand(t)
			img := image(t, e, churn, SnapshotOptions{MemoryBytes: 32 << 20, HeapLimit: heapLimit})
			in := clone(t, img)
			for range 150 {
				in.Arm(20 * time.Millisecond)
				in.User = func(in *Instance, args []Value) Value { in.NewBytes(make([]byte, 70<<10)); return args[0] }
				if rng.IntN(3) > 0 {
					in.Watch()
				}
				for range 1 + rng.IntN(3) {
					if rng.IntN(6) == 0 {
						in.Unwatch()
					}
					kind := rng.IntN(12)
					_, err := in.Call(img.Roots()[0], Undefined, Int(int32(kind)), Int(rng.Int32()))
					var script *ScriptError
					if err != nil && !errors.As(err, &script) && in.Err() == nil {
						t.Fatalf("kind %d: %v", kind, err)
					}
				}
				in.RunJobs(5)
				if err := in.Reset(); err != nil {
					t.Fatal(err)
				}
				if rng.IntN(4) == 0 {
					in.PageOut()
				}
				if diff := differences(in); diff != "" {
					t.Fatal(diff)
				}
				if in.User != nil {
					t.Fatal("User of the last invocation is still there")
				}
			}
			if v, err := in.Call(img.Roots()[0], Undefined, Int(100), Int(0)); err != nil || v != Int(1) {
				t.Errorf("the state after all resets is %v, %v", in.Text(v), err)
			}
			in.Close()
			img.Close()
		})
	}
}

// module-worker §7: every invocation gets fresh entropy. Two sandboxes of one image and two invocations of one sandbox
// differ.
func TestRandomIsFresh(t *testing.T) {
	img := image(t, testEngine(t), "globalThis.frozen = Math.random(); () => [Math.random(), Math.random()].join()", SnapshotOptions{})
	seen := map[string]bool{}
	a, b := clone(t, img), clone(t, img)
	for range 20 {
		for _, in := range []*Instance{a, b} {
			v, err := in.Call(img.Roots()[0], Undefined)
			if err != nil {
				t.Fatal(err)
			}
			got := in.Text(v)
			if seen[got] || !strings.Contains(got, "0.") {
				t.Errorf("%s was seen before", got)
			}
			seen[got] = true
			if err := in.Reset(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if eval(t, a, "frozen") != eval(t, b, "frozen") {
		t.Error("what the module computed is not common to all sandboxes")
	}
	// The offset is right: without the new state both would give the same numbers.
	for _, in := range []*Instance{a, b} {
		if err := in.Reset(); err != nil {
			t.Fatal(err)
		}
		s, ok := in.bytesAt(in.known.context+abi.RandomState, 8)
		if !ok {
			t.Fatal("no random state")
		}
		copy(s, "12345678")
	}
	if x, y := eval(t, a, "Math.random()"), eval(t, b, "Math.random()"); x != y {
		t.Errorf("the same state gave %s and %s: the offset is wrong", x, y)
	}
}

// A memory that outgrew its image cannot shrink: Reset says so, and nothing of it is used again.
func TestGrown(t *testing.T) {
	img := image(t, testEngine(t), "0", SnapshotOptions{})
	in := clone(t, img)
	eval(t, in, "globalThis.big = new Uint8Array(16 << 20); 0")
	if err := in.Reset(); !errors.Is(err, ErrGrown) {
		t.Errorf("got %v", err)
	}
	if _, err := in.Eval([]byte("1"), "x"); err == nil {
		t.Error("the instance works on")
	}
	if err := in.Remap(img); !errors.Is(err, ErrGrown) {
		t.Errorf("Remap: %v", err)
	}
}

// An instance serves one image after the other, of different sizes, and never shows the earlier one's bytes.
func TestRemap(t *testing.T) {
	e := testEngine(t)
	const marker = "MARKER-OF-THE-FIRST-TENANT"
	small := image(t, e, "'small'", SnapshotOptions{MemoryBytes: 24 << 20})
	large := image(t, e, "globalThis.a = Array.from({length: 50000}, (_, i) => ({i, s: 's' + i})); 'large'", SnapshotOptions{MemoryBytes: 24 << 20})
	bigger := image(t, e, "'bigger'", SnapshotOptions{MemoryBytes: 40 << 20})
	in := clone(t, large)
	for i, img := range []*Image{small, large, small, large, bigger} {
		in.Arm(time.Minute)
		eval(t, in, "globalThis.m = []; for (let i = 0; i < 30000; i++) m.push('"+marker+"' + i); m.length")
		if !bytes.Contains(in.mem.view(), []byte(marker)) {
			t.Fatal("the marker is not in memory: the test shows nothing")
		}
		if err := in.Remap(img); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if diff := differences(in); diff != "" {
			t.Fatalf("step %d: %s", i, diff)
		}
		if bytes.Contains(in.mem.view(), []byte(marker)) {
			t.Fatalf("step %d: the other image's bytes are still there", i)
		}
		if s, ok := in.String(img.Roots()[0]); !ok || in.Image() != img || s == "" {
			t.Errorf("the root is %q", s)
		}
	}
	if err := in.Remap(small); !errors.Is(err, ErrGrown) {
		t.Errorf("back to a smaller memory: %v", err)
	}
	for _, img := range []*Image{small, large} {
		if n := img.refs.Load(); n != 1 {
			t.Errorf("%d references to an image that nothing maps but its owner", n)
		}
	}
}

// Clones are cut off from each other and from the image.
func TestClonesAreSeparate(t *testing.T) {
	img := image(t, testEngine(t), "globalThis.n = 1; 0", SnapshotOptions{})
	a, b := clone(t, img), clone(t, img)
	eval(t, a, "n = 2; Object.prototype.x = 1; 0")
	if got := eval(t, b, "n + String(({}).x)"); got != "1undefined" {
		t.Errorf("the neighbour sees %s", got)
	}
	if got := eval(t, clone(t, img), "n + typeof ({}).x"); got != "1undefined" {
		t.Errorf("a later clone sees %s", got)
	}
}

// An image lives as long as anything maps it, and no longer.
func TestImageOutlivesItsOwner(t *testing.T) {
	img := image(t, testEngine(t), "'root'", SnapshotOptions{})
	in := clone(t, img)
	img.Close()
	img.Close()
	eval(t, in, "globalThis.x = 1")
	if err := in.Reset(); err != nil {
		t.Fatal(err)
	}
	if s, _ := in.String(img.Roots()[0]); s != "root" {
		t.Errorf("got %q", s)
	}
	in.Close()
	in.Close()
	if got := img.refs.Load(); got != 0 {
		t.Errorf("%d references are left", got)
	}
	if _, err := in.Eval([]byte("1"), "x"); err == nil {
		t.Error("a closed instance works")
	}
}

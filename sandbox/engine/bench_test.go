package engine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edged/sandbox/engine/abi"
)

// hello is about what a small handler does: it reads strings, makes objects and a string.
const hello = `(m, u, h) => {
	const l = h.split('\n'), o = {m, u, l, s: []};
	for (let i = 0; i < l.length; i++) o.s.push({k: l[i]});
	return m + u + l.length;
}`

func benchClone(b *testing.B, src string) *Instance {
	b.Helper()
	img := image(b, testEngine(b), src, SnapshotOptions{MemoryBytes: 136 << 20, HeapLimit: 128 << 20})
	in := clone(b, img)
	in.Arm(1 << 60)
	b.ReportAllocs()
	return in
}

func callHello(b *testing.B, in *Instance) {
	v, err := in.Call(in.image.roots[0], Undefined, in.NewString([]byte("GET")), in.NewString([]byte("http://127.0.0.1:8080/")),
		in.NewLatin1([]byte("host\n127.0.0.1:8080\nuser-agent\nwrk\naccept\n*/*\n")))
	if err != nil {
		b.Fatal(err)
	}
	if _, ok := in.String(v); !ok {
		b.Fatal("no answer")
	}
}

// A request with and without the reset that follows it; the difference is what isolation costs.
func BenchmarkReset(b *testing.B) {
	b.Run("impl=reused", func(b *testing.B) {
		in := benchClone(b, hello)
		for i := 0; b.Loop(); i++ {
			callHello(b, in)
			if i%1000 == 999 { // reused for ever it would only fill up
				_ = in.Reset()
				in.Arm(1 << 60)
			}
		}
	})
	b.Run("impl=reset", func(b *testing.B) {
		in := benchClone(b, hello)
		for b.Loop() {
			callHello(b, in)
			if err := in.Reset(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(in.stats.LastPages), "pages/op")
	})
}

// The ways to a pristine instance.
func BenchmarkPristine(b *testing.B) {
	e := testEngine(b)
	img := image(b, e, hello, SnapshotOptions{MemoryBytes: 136 << 20, HeapLimit: 128 << 20})
	other := image(b, e, hello, SnapshotOptions{MemoryBytes: 136 << 20, HeapLimit: 128 << 20})
	path := filepath.Join(b.TempDir(), "image")
	if err := img.Save(path); err != nil {
		b.Fatal(err)
	}
	run := func(b *testing.B, in *Instance, err error) {
		if err != nil {
			b.Fatal(err)
		}
		in.Arm(1 << 60)
		callHello(b, in)
	}
	b.Run("impl=clone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			in, err := e.Clone(img)
			if err != nil {
				b.Fatal(err)
			}
			in.Close()
		}
	})
	b.Run("impl=clone+call", func(b *testing.B) {
		for b.Loop() {
			in, err := e.Clone(img)
			run(b, in, err)
			in.Close()
		}
	})
	b.Run("impl=remap+call", func(b *testing.B) {
		in, err := e.Clone(img)
		run(b, in, err)
		for i := 0; b.Loop(); i++ {
			run(b, in, in.Remap([]*Image{img, other}[i&1]))
		}
		in.Close()
	})
	b.Run("impl=load+clone+call", func(b *testing.B) {
		for b.Loop() {
			loaded, err := e.LoadImage(path)
			if err != nil {
				b.Fatal(err)
			}
			in, err := e.Clone(loaded)
			run(b, in, err)
			in.Close()
			loaded.Close()
		}
	})
	b.Run("impl=build", func(b *testing.B) {
		for b.Loop() {
			in, err := e.NewInstance()
			if err != nil {
				b.Fatal(err)
			}
			in.Close()
		}
	})
}

// Crossing the boundary: an export, a function, a host function.
func BenchmarkCall(b *testing.B) {
	in := benchClone(b, "[() => 1, n => { for (let i = 0; i < n; i++) host.add(i, 1) }, n => { for (let i = 0; i < n; i++) ((a, b) => a + b)(i, 1) }]")
	root := in.image.roots[0]
	one, viaHost, viaJS := in.GetIndex(root, 0), in.GetIndex(root, 1), in.GetIndex(root, 2)
	b.Run("impl=export", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			in.op(abi.IsJobPending, uint64(in.known.runtime))
		}
	})
	b.Run("impl=function", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := in.Call(one, Undefined); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, f := range map[string]Value{"host": viaHost, "js": viaJS} {
		b.Run("impl="+name+"-x1000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := in.Call(f, Undefined, Int(1000)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Strings in place, against the engine's own conversion of the same.
func BenchmarkString(b *testing.B) {
	in := benchClone(b, "0")
	for _, n := range []int{20, 1000, 60000} {
		s := []byte(strings.Repeat("a", n))
		p := in.put(s)
		v := in.NewString(s)
		dst := make([]byte, 0, n)
		for name, f := range map[string]func(){
			"in/impl=ours":    func() { in.Free(in.NewString(s)) },
			"in/impl=engine":  func() { in.Free(in.opVal(abi.NewStringLen, in.cx(), uint64(p), uint64(n))) },
			"out/impl=ours":   func() { in.AppendString(dst, v) },
			"out/impl=engine": func() { in.appendCString(dst, v, n) },
			"bytes":           func() { in.Free(in.NewBytes(s)) },
		} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					f()
				}
			})
		}
	}
	if in.Err() != nil {
		b.Fatal(in.Err())
	}
}

// The hot functions allocate nothing.
func TestAllocations(t *testing.T) {
	if slowness > 1 {
		t.Skip("the race detector allocates by itself")
	}
	img := image(t, testEngine(t), "[() => 1, () => host.add(1, 2)]", SnapshotOptions{})
	in := clone(t, img)
	in.Arm(time.Hour)
	one, add := in.GetIndex(img.Roots()[0], 0), in.GetIndex(img.Roots()[0], 1)
	text := []byte("some text")
	dst := make([]byte, 0, 64)
	v := in.NewString(text)
	u := in.NewBytes(text)
	for name, f := range map[string]func(){
		"Call":         func() { _, _ = in.Call(one, Undefined) },
		"Call, 3 args": func() { _, _ = in.Call(one, Undefined, v, Int(1), u) },
		"host call":    func() { _, _ = in.Call(add, Undefined) },
		"NewString":    func() { in.Free(in.NewString(text)) },
		"NewLatin1":    func() { in.Free(in.NewLatin1(text)) },
		"AppendString": func() { _, _ = in.AppendString(dst, v) },
		"AppendLatin1": func() { _, _ = in.AppendLatin1(dst, v) },
		"NewBytes":     func() { in.Free(in.NewBytes(text)) },
		"Bytes":        func() { _, _ = in.Bytes(u) },
		"GetIndex":     func() { in.GetIndex(img.Roots()[0], 0) },
		"GetProp":      func() { in.GetProp(img.Roots()[0], "length") },
		"RunJobs":      func() { _, _ = in.RunJobs(10) },
		"clock":        func() { in.Resume(); in.Pause() },
	} {
		f()
		if n := testing.AllocsPerRun(200, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	if n := testing.AllocsPerRun(200, func() {
		_ = in.Reset()
		in.Arm(time.Hour)
		_, _ = in.Call(one, Undefined)
	}); n != 0 {
		t.Errorf("a call and a reset allocate %v times", n)
	}
	if in.Err() != nil {
		t.Error(in.Err())
	}
}

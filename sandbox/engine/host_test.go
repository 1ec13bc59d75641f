package engine

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"edged/sandbox/event"
)

// A host function gets its arguments, missing ones as undefined, surplus ones up to a bound, and what it throws is
// caught like anything.
func TestHostCalls(t *testing.T) {
	in := fresh(t)
	in.User = func(in *Instance, args []Value) Value { return Int(int32(len(args))) }
	for src, want := range map[string]string{
		"host.add(1, 2)":     "3",
		"host.add(0.5, 2)":   "2.5",
		"host.add(1, 2, 99)": "3",
		"try { host.add(1) } catch (e) { e instanceof TypeError && e.message }": "two numbers, please",
		"host.user()":                                      "1",
		"host.user(...Array(500).fill(0))":                 "16",
		"host.add.name + host.add.length":                  "add2",
		"Object.keys(host).join()":                         "add,user,call",
		"host.call(() => 5)":                               "5",
		"host.call(() => host.call(() => host.add(2, 3)))": "5",
		"try { host.call(() => { throw new Error('inner') }) } catch (e) { e.message }":    "inner",
		"try { (function f() { host.call(f) })() } catch (e) { e.name + ':' + e.message }": "RangeError:Maximum call stack size exceeded",
		"host.add.call(null, 1, 1)":                       "2",
		"try { new host.add(1, 1) } catch (e) { e.name }": "TypeError",
		"Reflect.apply(host.add, undefined, [3, 4])":      "7",
		"[1, 2].map(host.add).join()":                     "1,3",
	} {
		if got := eval(t, in, src); got != want {
			t.Errorf("%s gives %q, want %q", src, got, want)
		}
	}
}

// The arguments of a call stay what they are while a host function below it makes calls of its own.
func TestNestedArguments(t *testing.T) {
	in := fresh(t)
	inner, err := in.Eval([]byte("(...a) => a.length"), "x")
	if err != nil {
		t.Fatal(err)
	}
	in.User = func(in *Instance, args []Value) Value {
		if v, err := in.Call(inner, Undefined, Int(7), Int(7), Int(7)); err != nil || v != Int(3) {
			return in.ThrowError("", "the inner call went wrong")
		}
		return args[0]
	}
	// A native function reads its vector bit by bit, and runs code of ours in between.
	slow, err := in.Eval([]byte("({valueOf: () => host.user(1)})"), "x")
	if err != nil {
		t.Fatal(err)
	}
	most, err := in.Eval([]byte("Math.max"), "x")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := in.Call(most, Undefined, slow, Int(2), Int(3)); err != nil || v != Int(3) {
		t.Errorf("got %v, %v", in.Text(v), err)
	}
}

// Each Throw method throws what it says.
func TestThrow(t *testing.T) {
	in := fresh(t)
	// Replacing the globals must not change what host functions throw.
	eval(t, in, "globalThis.T = TypeError; globalThis.D = DOMException; globalThis.TypeError = globalThis.DOMException = function () { return {} }")
	for want, throw := range map[string]func() Value{
		"TypeError:a\u20ac:true:false":                       func() Value { return in.ThrowType("a\u20ac") },
		"RangeError:b:true:false":                            func() Value { return in.ThrowRange("b") },
		"Error:c:true:false":                                 func() Value { return in.ThrowError("", "c") },
		"Special:d:true:false":                               func() Value { return in.ThrowError("Special", "d") },
		"DataCloneError:e:true:true":                         func() Value { return in.ThrowDOM("DataCloneError", "e") },
		"Error:" + strings.Repeat("x", 3000) + ":true:false": func() Value { return in.ThrowError("", strings.Repeat("x", 3000)) },
	} {
		in.User = func(*Instance, []Value) Value { return throw() }
		got := eval(t, in, "try { host.user() } catch (e) { [e.name, e.message, e instanceof Error, e instanceof D].join(':') }")
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	in.User = func(in *Instance, _ []Value) Value { return in.Throw(Int(7)) }
	if got := eval(t, in, "try { host.user() } catch (e) { e }"); got != "7" {
		t.Errorf("Throw(7) gave %s", got)
	}
}

// An exception that nobody caught is a worker error whose texts are kept for the worker's log.
func TestUncaught(t *testing.T) {
	in := fresh(t)
	for src, want := range map[string]ScriptError{
		"null.x":  {Name: "TypeError", Message: "cannot read property 'x' of null"},
		"throw 5": {Message: "5"}, "throw undefined": {Message: "undefined"}, "throw Symbol('s')": {Message: "Symbol()"},
		"throw {toString() { throw 1 }}":                                                           {},
		"throw Object.assign(new Error('m'), {name: 'N'})":                                         {Name: "N", Message: "m"},
		"throw new DOMException('m', 'AbortError')":                                                {Name: "AbortError", Message: "m"},
		"throw new Error('x'.repeat(1e6))":                                                         {Name: "Error", Message: strings.Repeat("x", maxErrorText)},
		"const e = new Error('m'); Object.defineProperty(e, 'stack', {get() { throw 1 }});throw e": {Name: "Error", Message: "m"},
	} {
		_, err := in.Eval([]byte("{"+src+"}"), "x")
		var got *ScriptError
		if !errors.As(err, &got) || !errors.Is(err, event.ErrWorker) {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got.Name != want.Name || got.Message != want.Message {
			t.Errorf("%s: %q %.40q, want %q %.40q", src, got.Name, got.Message, want.Name, want.Message)
		}
	}
	if in.Err() != nil {
		t.Errorf("exceptions made the instance fail: %v", in.Err())
	}
	_, err := in.Eval([]byte("(function deep() { throw new Error('m') })()"), "file.js")
	var e *ScriptError
	if !errors.As(err, &e) || !strings.Contains(e.Stack, "deep (file.js:1:") {
		t.Errorf("no stack in %+v", e)
	}
}

// Bytes travel as copies into the guest and as views out of it.
func TestBytes(t *testing.T) {
	in := fresh(t)
	for _, n := range []int{0, 1, 1000, ioBytes, ioBytes + 1, 3 << 20} {
		b := bytes.Repeat([]byte{7, 0, 255}, n/3+1)[:n]
		for name, v := range map[string]Value{"Uint8Array": in.NewBytes(b), "ArrayBuffer": in.NewArrayBuffer(b)} {
			if got, ok := in.Bytes(v); !ok || !bytes.Equal(got, b) {
				t.Errorf("%d bytes as %s came back as %d, %v", n, name, len(got), ok)
			}
			in.SetProp(in.Global(), "v", v)
			if got := eval(t, in, "[v.constructor.name, v.byteLength].join()"); got != name+","+in.Text(Int(int32(n))) {
				t.Errorf("got %s", got)
			}
		}
	}
	for src, want := range map[string]string{
		"new Uint8Array([1, 2, 3, 4]).subarray(1, 3)": "\x02\x03", "new Uint16Array([0x0201])": "\x01\x02",
		"new Uint8Array([9, 8]).buffer": "\x09\x08", "new Uint8ClampedArray([300])": "\xff",
		"new Uint8Array(new ArrayBuffer(4, {maxByteLength: 8}))": "\x00\x00\x00\x00",
	} {
		v, err := in.Eval([]byte(src), "x")
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := in.Bytes(v); !ok || string(got) != want {
			t.Errorf("%s: %x %v", src, got, ok)
		}
	}
	for _, src := range []string{"1", "'ab'", "[1, 2]", "({byteLength: 5})", "new Proxy(new Uint8Array(4), {})",
		"{const b = new ArrayBuffer(8); const u = new Uint8Array(b); b.transfer(); u}"} {
		v, err := in.Eval([]byte(src), "x")
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := in.Bytes(v); len(got) != 0 || ok && src[0] != '{' {
			t.Errorf("%s has bytes: %x", src, got)
		}
	}
	if got := eval(t, in, "1 + 1"); got != "2" {
		t.Errorf("an exception is left: %s", got)
	}
}

// Promises are looked at without running code, and jobs run in bounds.
func TestPromises(t *testing.T) {
	in := fresh(t)
	v, err := in.Eval([]byte("globalThis.p = Promise.resolve(1).then(x => x + 1); p"), "x")
	if err != nil {
		t.Fatal(err)
	}
	if s := in.PromiseState(v); s != Pending {
		t.Errorf("state %v", s)
	}
	if !in.JobsPending() {
		t.Error("no job waits")
	}
	if n, err := in.RunJobs(100); n != 1 || err != nil || in.JobsPending() {
		t.Errorf("ran %d, %v", n, err)
	}
	if s, r := in.PromiseState(v), in.PromiseResult(v); s != Fulfilled || r != Int(2) {
		t.Errorf("state %v, result %v", s, in.Text(r))
	}
	for src, want := range map[string]PromiseState{"({then() {}})": NotPromise, "1": NotPromise, "Promise.reject(3)": Rejected,
		"new Promise(() => {})": Pending, "(async () => 5)()": Fulfilled} {
		v, _ := in.Eval([]byte(src), "x")
		if got := in.PromiseState(v); got != want {
			t.Errorf("%s is %v, want %v", src, got, want)
		}
	}
	eval(t, in, "queueMicrotask(() => { throw new Error('in a job') }); queueMicrotask(() => { globalThis.after = 1 })")
	if _, err := in.RunJobs(100); err == nil || !strings.Contains(err.Error(), "in a job") {
		t.Errorf("got %v", err)
	}
	if _, err := in.RunJobs(100); err != nil || eval(t, in, "after") != "1" {
		t.Errorf("the next job did not run: %v", err)
	}
	eval(t, in, "(function again() { Promise.resolve().then(again) })()")
	if n, err := in.RunJobs(1000); n != 1000 || err != nil {
		t.Errorf("ran %d jobs of an endless chain, %v", n, err)
	}
}

// Rejections without a handler are told, and told again when a handler comes.
func TestRejections(t *testing.T) {
	in := fresh(t)
	var log []string
	in.OnRejection = func(_, reason Value, handled bool) {
		n, _ := reason.Int()
		log = append(log, string(rune('0'+n)), map[bool]string{true: "handled", false: "unhandled"}[handled])
	}
	eval(t, in, "globalThis.p = Promise.reject(3); Promise.reject(4).catch(() => {}); 0")
	eval(t, in, "p.catch(() => {}); 0")
	if got := strings.Join(log, " "); got != "3 unhandled 4 unhandled 4 handled 3 handled" {
		t.Errorf("got %s", got)
	}
}

// Objects, arrays and JSON.
func TestValues(t *testing.T) {
	in := fresh(t)
	o := in.NewObject()
	in.SetProp(o, "a", in.NewArray(Int(1), True, Null, in.NewString([]byte("x"))))
	in.SetProp(in.Global(), "o", in.Dup(o))
	if got := eval(t, in, "JSON.stringify(o)"); got != `{"a":[1,true,null,"x"]}` {
		t.Errorf("got %s", got)
	}
	a := in.GetProp(o, "a")
	if !in.IsArray(a) || in.IsArray(o) || in.GetIndex(a, 0) != Int(1) || in.GetProp(a, "length") != Int(4) {
		t.Error("reading back went wrong")
	}
	v := in.JSON([]byte(`{"__proto__": 1, "x": [2]}`))
	in.SetProp(in.Global(), "j", v)
	if got := eval(t, in, "Object.keys(j).join() + j.x[0]"); got != "__proto__,x2" {
		t.Errorf("got %s", got)
	}
	if v := in.JSON([]byte(`{`)); !v.IsException() {
		t.Error("bad JSON was parsed")
	}
	in.swallow()
	d, err := in.Construct(in.GetProp(in.Global(), "Date"), Int(0))
	if err != nil || in.Text(in.GetProp(d, "constructor")) == "" {
		t.Errorf("new Date: %v", err)
	}
	f, _ := in.Eval([]byte("(function (...a) { return this + a.length + a[15] })"), "x")
	args := make([]Value, 16)
	for i := range args {
		args[i] = Int(int32(i))
	}
	if v, err := in.Call(f, Int(100), args...); err != nil || v != Int(131) {
		t.Errorf("16 arguments: %v %v", in.Text(v), err)
	}
	if v, err := in.Call(f, Int(100), append(args, Int(1), Int(2))...); err != nil || v != Int(133) {
		t.Errorf("18 arguments: %v %v", in.Text(v), err)
	}
}

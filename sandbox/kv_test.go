package sandbox

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/binding"
)

// memoryKV is a namespace in memory. It keeps no limits but the key's length.
type memoryKV struct {
	mu      sync.Mutex
	entries map[string]binding.KVEntry
	ttl     map[string]time.Duration
	hang    bool // until the context is done
	fail    error
}

var errTestKey = fault.Name(fault.Invalid, "invalid_key", 60001)

func (m *memoryKV) check(ctx context.Context, key string) error {
	if m.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if m.fail != nil {
		return m.fail
	}
	if key == "" || len(key) > 467 {
		return errTestKey.New("test", "the key has a wrong length")
	}
	return nil
}

func (m *memoryKV) Get(ctx context.Context, key string) (binding.KVEntry, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	return e, ok, m.check(ctx, key)
}

func (m *memoryKV) Put(ctx context.Context, key string, e binding.KVEntry, ttl time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check(ctx, key); err != nil {
		return err
	}
	m.entries[key], m.ttl[key] = e, ttl
	return nil
}

func (m *memoryKV) Delete(ctx context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, key)
	return m.check(ctx, key)
}

func (m *memoryKV) List(ctx context.Context, q binding.KVQuery) (binding.KVPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := keysAfter(m.entries, q.Prefix, q.Cursor)
	if len(keys) > q.Limit {
		return binding.KVPage{Keys: keys[:q.Limit], Cursor: keys[q.Limit-1]}, nil
	}
	return binding.KVPage{Keys: keys}, nil
}

// keysAfter returns the keys with a prefix behind the cursor, in order.
func keysAfter[V any](m map[string]V, prefix, cursor string) []string {
	var keys []string
	for k := range m {
		if strings.HasPrefix(k, prefix) && k > cursor {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}

func newMemoryKV() *memoryKV {
	return &memoryKV{entries: map[string]binding.KVEntry{}, ttl: map[string]time.Duration{}}
}

// told is a script expression: what a promise comes to, as text.
const told = `const told = (p) => p.then((v) => v === undefined ? 'undefined' : JSON.stringify(v instanceof ArrayBuffer ? [...new Uint8Array(v)] : v), (e) => e.name);`

// kv §3: methods, results, errors and types as JavaScript sees them.
func TestKVBinding(t *testing.T) {
	s := newBox(t, Options{})
	kv := newMemoryKV()
	for _, c := range []struct{ script, want string }{
		{`env.CACHE.get('none')`, `null`},
		{`env.CACHE.put('a', 'hé')`, `undefined`},
		{`env.CACHE.get('a')`, `[104,195,169]`},
		{`env.CACHE.put('b', new Uint16Array([1, 2, 3]).subarray(1, 2), {metadata: {x: 'y'}, expirationTtlSeconds: 60})`, `undefined`},
		{`env.CACHE.getWithMetadata('b').then((r) => [...new Uint8Array(r.value), r.metadata])`, `[2,0,{"x":"y"}]`},
		{`env.CACHE.getWithMetadata('a').then((r) => Object.keys(r))`, `["value"]`},
		{`env.CACHE.getWithMetadata('none')`, `null`},
		{`env.CACHE.put('c', new ArrayBuffer(2))`, `undefined`},
		{`env.CACHE.put('\ud800', 'x')`, `invalid_key`},
		{`env.CACHE.get('')`, `invalid_key`},
		{`env.CACHE.get('k'.repeat(468))`, `invalid_key`},
		{`env.CACHE.get(1)`, `TypeError`},
		{`env.CACHE.get('a', 'b')`, `TypeError`},
		{`env.CACHE.get()`, `TypeError`},
		{`env.CACHE.put('a', 1)`, `TypeError`},
		{`env.CACHE.put('a', null)`, `TypeError`},
		{`env.CACHE.put('a', 'x', {ttl: 1})`, `TypeError`},
		{`env.CACHE.put('a', 'x', {expirationTtlSeconds: 59})`, `TypeError`},
		{`env.CACHE.put('a', 'x', {expirationTtlSeconds: 60.5})`, `TypeError`},
		{`env.CACHE.put('a', 'x', {expirationTtlSeconds: 315360001})`, `TypeError`},
		{`env.CACHE.put('a', 'x', {metadata: {a: 1}})`, `TypeError`},
		{`env.CACHE.put('a', 'x', {metadata: []})`, `TypeError`},
		{`env.CACHE.put('a', 'x', null)`, `TypeError`},
		{`env.CACHE.put('big', new Uint8Array(26214401))`, `value_too_large`},
		{`env.CACHE.list()`, `{"keys":[{"name":"a"},{"name":"b"},{"name":"c"}],"listComplete":true}`},
		{`env.CACHE.list({limit: 2})`, `{"keys":[{"name":"a"},{"name":"b"}],"listComplete":false,"cursor":"b"}`},
		{`env.CACHE.list({limit: 2, cursor: 'b'})`, `{"keys":[{"name":"c"}],"listComplete":true}`},
		{`env.CACHE.list({prefix: 'zz'})`, `{"keys":[],"listComplete":true}`},
		{`env.CACHE.list({limit: 0})`, `TypeError`},
		{`env.CACHE.list({limit: 1001})`, `TypeError`},
		{`env.CACHE.list({prefix: 'p'.repeat(468)})`, `TypeError`},
		{`env.CACHE.list({cursor: ''})`, `invalid_cursor`},
		{`env.CACHE.delete('a')`, `undefined`},
		{`env.CACHE.delete('a')`, `undefined`},
		{`Promise.all([env.CACHE.get('a'), env.CACHE.get('b')]).then((r) => r.map((x) => x && x.byteLength))`, `[null,2]`},
		{`env.CACHE.get.call({}, 'a')`, `TypeError`},
		{`env.CACHE.get.call({...env.CACHE}, 'a')`, `TypeError`},
		{`Promise.resolve(Object.keys(env))`, `["V","S","CACHE","__proto__"]`},
		{`Promise.resolve([env.V, env.S, Object.keys(env.CACHE)])`, `[1,"hush",[]]`},
		{`Object.getOwnPropertyDescriptor(env, '__proto__').value.get('b').then((v) => v.byteLength)`, `2`},
	} {
		v := openVersion(t, s, Spec{
			Vars: []byte(`{"V":1}`), Secrets: map[string]string{"S": "hush"},
			Bindings: []binding.Binding{{Name: "CACHE", KV: kv}, {Name: "__proto__", KV: kv}},
			Graph:    graphOf(told + `export default { async fetch(request, env) { return new Response(await told(` + c.script + `)) } }`),
		})
		if got := serve(t, v, request()); got.body != c.want {
			t.Errorf("%s: got %d %q, want %q", c.script, got.status, got.body, c.want)
		}
	}
	if kv.ttl["b"] != time.Minute || kv.ttl["c"] != 0 {
		t.Errorf("times to live %v, want a minute for b and none for c", kv.ttl)
	}
}

// README §4: what goes wrong behind a binding is backend_unavailable, and its text stays on the node.
func TestBindingFailureIsNotTold(t *testing.T) {
	s := newBox(t, Options{})
	kv := newMemoryKV()
	kv.fail = fmt.Errorf("disk at /secret/path broke")
	v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "KV", KV: kv}},
		Graph: graphOf(`export default { async fetch(request, env) { try { await env.KV.get('a') } catch (e) { return new Response(e.name + ' ' + e.message + ' ' + (e instanceof Error)) } } }`)})
	if got := serve(t, v, request()); got.body != "backend_unavailable the call could not be done now true" {
		t.Errorf("got %q", got.body)
	}
}

// A host call does not outlive its invocation: it is cut short when the handler has answered without waiting for it.
func TestHostCallEndsWithInvocation(t *testing.T) {
	s := newBox(t, Options{})
	kv := newMemoryKV()
	kv.hang = true
	v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "KV", KV: kv}},
		Graph: graphOf(`export default { fetch(request, env) { env.KV.get('a'); return new Response('done') } }`)})
	for range 3 {
		if got := serve(t, v, request()); got.body != "done" {
			t.Fatalf("got %+v", got)
		}
	}
	kv.mu.Lock() // no call is left that would hold it
	defer kv.mu.Unlock()
}

// module-worker §6: an invocation that waits for a binding past its wall limit ends.
func TestHostCallMeetsTheWallLimit(t *testing.T) {
	s := newBox(t, Options{MaxWall: 50 * time.Millisecond})
	kv := newMemoryKV()
	kv.hang = true
	v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "KV", KV: kv}},
		Graph: graphOf(`export default { async fetch(request, env) { await env.KV.get('a') } }`)})
	if got := fault.NameOf(serveErr(v)); got != "wall_exceeded" {
		t.Errorf("got %q, want wall_exceeded", got)
	}
}

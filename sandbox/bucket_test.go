package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

var (
	errTestBody  = fault.Name(fault.Invalid, "invalid_body", 60010)
	errTestCond  = fault.Name(fault.Conflict, "precondition_failed", 60011)
	errTestRange = fault.Name(fault.Invalid, "range_not_satisfiable", 60012)
	errTestPart  = fault.Name(fault.Invalid, "invalid_part", 60013)
	errTestLoad  = fault.Name(fault.NotFound, "upload_not_found", 60014)
)

// memoryBucket is a bucket in memory with enough of the rules to see arguments and results.
type memoryBucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	kinds   map[string]string
	parts   map[int][]byte
	opened  int // bodies that were not closed
}

func newMemoryBucket() *memoryBucket {
	return &memoryBucket{objects: map[string][]byte{}, kinds: map[string]string{}, parts: map[int][]byte{}}
}

func (m *memoryBucket) info(key string) binding.ObjectInfo {
	return binding.ObjectInfo{Key: key, ETag: fmt.Sprintf("e%d", len(m.objects[key])), Size: int64(len(m.objects[key])), ContentType: m.kinds[key], UploadedMillis: 7}
}

func (m *memoryBucket) Head(_ context.Context, key string) (binding.ObjectInfo, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.objects[key]
	return m.info(key), ok, nil
}

type countedBody struct {
	io.Reader
	m *memoryBucket
}

func (c *countedBody) Close() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.opened--
	return nil
}

func (m *memoryBucket) Get(_ context.Context, key string, q binding.ObjectQuery) (o binding.Object, body io.ReadCloser, found bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.objects[key]
	if !ok {
		return o, nil, false, nil
	}
	o.ObjectInfo = m.info(key)
	if q.IfMatch != "" && q.IfMatch != o.ETag || q.IfNoneMatch == o.ETag {
		return o, nil, false, errTestCond
	}
	if q.Ranged && q.Offset >= o.Size {
		return o, nil, false, errTestRange
	}
	b = b[q.Offset:]
	if q.Length > 0 && q.Length < int64(len(b)) {
		b = b[:q.Length]
	}
	o.Offset, o.Length = q.Offset, int64(len(b))
	m.opened++
	return o, &countedBody{bytes.NewReader(b), m}, true, nil
}

func readBody(body io.Reader, length int64) ([]byte, error) {
	b, err := io.ReadAll(body)
	if err != nil || length >= 0 && int64(len(b)) != length {
		return nil, errTestBody.New("test", "the body is not what was said")
	}
	return b, nil
}

func (m *memoryBucket) Put(_ context.Context, key string, body io.Reader, p binding.ObjectPut) (binding.ObjectInfo, error) {
	b, err := readBody(body, p.Length)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		return binding.ObjectInfo{}, err
	}
	if _, is := m.objects[key]; is && p.IfAbsent || p.IfMatch != "" && p.IfMatch != m.info(key).ETag {
		return binding.ObjectInfo{}, errTestCond
	}
	m.objects[key], m.kinds[key] = b, p.ContentType
	return m.info(key), nil
}

func (m *memoryBucket) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

func (m *memoryBucket) List(_ context.Context, q binding.ObjectListQuery) (page binding.ObjectPage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keysAfter(m.objects, q.Prefix, q.Cursor) {
		if rest := k[len(q.Prefix):]; q.Delimiter != "" && strings.Contains(rest, q.Delimiter) {
			page.Prefixes = append(page.Prefixes, q.Prefix+rest[:strings.Index(rest, q.Delimiter)+1])
			continue
		}
		if len(page.Objects) == q.Limit {
			page.Cursor = page.Objects[len(page.Objects)-1].Key
			break
		}
		page.Objects = append(page.Objects, m.info(k))
	}
	return page, nil
}

func (m *memoryBucket) CreateMultipartUpload(_ context.Context, key, contentType string) (string, error) {
	return "upload-" + key + contentType, nil
}

func (m *memoryBucket) UploadPart(_ context.Context, key, uploadID string, number int, body io.Reader, length int64) (string, error) {
	b, err := readBody(body, length)
	if err != nil {
		return "", err
	}
	if uploadID != "upload-"+key {
		return "", errTestLoad
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts[number] = b
	return fmt.Sprintf("p%d", number), nil
}

func (m *memoryBucket) CompleteMultipartUpload(_ context.Context, key, uploadID string, parts []binding.ObjectPart) (binding.ObjectInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var whole []byte
	for _, p := range parts {
		if p.ETag != fmt.Sprintf("p%d", p.Number) {
			return binding.ObjectInfo{}, errTestPart
		}
		whole = append(whole, m.parts[p.Number]...)
	}
	m.objects[key] = whole
	return m.info(key), nil
}

func (m *memoryBucket) AbortMultipartUpload(_ context.Context, key, uploadID string) error {
	if uploadID != "upload-"+key {
		return errTestLoad
	}
	return nil
}

// bodyScript is a script: a stream that gives these sizes and then ends, or fails.
const bodyScript = `const stream = (sizes, fail) => { let i = 0; return new ReadableStream({pull(c) { if (i < sizes.length) c.enqueue(new Uint8Array(sizes[i++]).fill(97)); else if (fail) c.error(new Error('x')); else c.close(); }}) };
	const all = async (o) => o === null ? null : {...o, body: await new Response(o.body).text()};`

// objects §3 (both facades, §6): methods, results, errors and types as JavaScript sees them.
func TestBucketBinding(t *testing.T) {
	s := newBox(t, Options{})
	m := newMemoryBucket()
	for _, c := range []struct{ script, want string }{
		{`env.B.head('k')`, `null`},
		{`env.B.get('k')`, `null`},
		{`env.B.put('k', 'hé', {contentType: 'text/plain'})`, `{"etag":"e3","size":3}`},
		{`env.B.head('k')`, `{"etag":"e3","size":3,"contentType":"text/plain","uploadedAtMillis":7}`},
		{`env.B.get('k').then(all)`, `{"body":"hé","etag":"e3","size":3,"partial":false,"contentType":"text/plain"}`},
		{`env.B.get('k', {range: {offset: 1, length: 9}}).then(all).then((o) => [o.partial, o.range, o.size])`, `[true,{"offset":1,"length":2},3]`},
		{`env.B.get('k', {range: {offset: 64}})`, `range_not_satisfiable`},
		{`env.B.get('k', {ifMatch: 'e3'}).then(all).then((o) => o.size)`, `3`},
		{`env.B.get('k', {ifMatch: 'x'})`, `precondition_failed`},
		{`env.B.get('k', {ifNoneMatch: 'e3'})`, `precondition_failed`},
		{`env.B.get('k', {ifNoneMatch: 'a', ifMatch: 'b'})`, `TypeError`},
		{`env.B.get('k', {ifMatch: ''})`, `TypeError`},
		{`env.B.get('k', {ifMatch: 'x'.repeat(257)})`, `TypeError`},
		{`env.B.get('k', {range: {}})`, `TypeError`},
		{`env.B.get('k', {range: {offset: -1}})`, `TypeError`},
		{`env.B.get('k', {range: {offset: 0, length: 0}})`, `TypeError`},
		{`env.B.get('k', {range: {offset: 5368709121}})`, `TypeError`},
		{`env.B.get('k', {range: {offset: 0, end: 1}})`, `TypeError`},
		{`env.B.get('k', {other: 1})`, `TypeError`},
		{`env.B.get('')`, `invalid_key`},
		{`env.B.get('\ud800')`, `invalid_key`},
		{`env.B.get(1)`, `TypeError`},
		{`env.B.put('k', 'x', {ifNoneMatch: '*'})`, `precondition_failed`},
		{`env.B.put('k', 'x', {ifNoneMatch: 'e'})`, `TypeError`},
		{`env.B.put('k', 'x', {ifMatch: 'e3'})`, `{"etag":"e1","size":1}`},
		{`env.B.put('k', new ArrayBuffer(4), {contentLength: 4})`, `{"etag":"e4","size":4}`},
		{`env.B.put('k', new ArrayBuffer(4), {contentLength: 5})`, `invalid_body`},
		{`env.B.put('k', 'é', {contentLength: 1})`, `invalid_body`},
		{`env.B.put('k', 'é', {contentLength: '2'})`, `TypeError`},
		{`env.B.put('k', new Uint8Array(4))`, `TypeError`},
		{`env.B.put('k', {})`, `TypeError`},
		{`env.B.put('k', null)`, `TypeError`},
		{`env.B.put('k', 'x', {contentType: ''})`, `TypeError`},
		{`env.B.put('s', stream([100000, 3]), {contentLength: 100003})`, `{"etag":"e100003","size":100003}`},
		{`env.B.put('s', stream([5]), {contentLength: 6})`, `invalid_body`},
		{`env.B.put('s', stream([5]), {contentLength: 4})`, `invalid_body`},
		{`env.B.put('s', stream([5], true), {contentLength: 5})`, `invalid_body`},
		{`env.B.put('s', stream([5]))`, `invalid_body`},
		{`env.B.put('s', stream([5]), {contentLength: NaN})`, `invalid_body`},
		{`env.B.put('s', stream([5]), {contentLength: 314572801})`, `value_too_large`},
		{`env.C.put('s', stream([5, 6]))`, `{"etag":"e11","size":11}`},
		{`env.C.put('s', stream([5], true))`, `invalid_body`},
		{`env.C.put('s', stream([5]), {contentLength: 6})`, `invalid_body`},
		{`env.C.put('s', new ReadableStream({start(c) { c.enqueue('text'); c.close() }}))`, `invalid_body`},
		{`{ const x = stream([5]); x.getReader(); env.C.put('s', x) }`, `TypeError`},
		{`env.C.put('copy', (await env.C.get('s')).body)`, `{"etag":"e11","size":11}`},
		{`env.B.put('d/one', '1').then(() => env.B.put('d/two', '22')).then(() => env.B.list({prefix: 'd/'}))`,
			`{"objects":[{"key":"d/one","etag":"e1","size":1,"uploadedAtMillis":7},{"key":"d/two","etag":"e2","size":2,"uploadedAtMillis":7}],"truncated":false}`},
		{`env.B.list({prefix: 'd/', limit: 1})`, `{"objects":[{"key":"d/one","etag":"e1","size":1,"uploadedAtMillis":7}],"truncated":true,"cursor":"d/one"}`},
		{`env.B.list({prefix: 'd', delimiter: '/'})`, `{"objects":[],"truncated":false,"prefixes":["d/","d/"]}`},
		{`env.B.list({delimiter: ''})`, `TypeError`},
		{`env.B.list({delimiter: 'x'.repeat(17)})`, `TypeError`},
		{`env.B.list({delimiter: '😀'.repeat(16), prefix: 'zz'})`, `{"objects":[],"truncated":false,"prefixes":[]}`},
		{`env.B.list({limit: 0})`, `TypeError`},
		{`env.B.list({cursor: ''})`, `invalid_cursor`},
		{`env.B.delete('d/one')`, `undefined`},
		{`env.B.createMultipartUpload('m')`, `{"uploadId":"upload-m"}`},
		{`env.B.uploadPart('m', 'upload-m', 1, 'abc')`, `{"partNumber":1,"etag":"p1"}`},
		{`env.B.uploadPart('m', 'upload-m', 2, stream([2]), {contentLength: 2})`, `{"partNumber":2,"etag":"p2"}`},
		{`env.B.uploadPart('m', 'no', 2, 'x')`, `upload_not_found`},
		{`env.B.uploadPart('m', 'upload-m', 0, 'x')`, `TypeError`},
		{`env.B.uploadPart('m', 'upload-m', 10001, 'x')`, `TypeError`},
		{`env.B.completeMultipartUpload('m', 'upload-m', [{partNumber: 1, etag: 'p1'}, {partNumber: 2, etag: 'p2'}])`, `{"etag":"e5","size":5}`},
		{`env.B.completeMultipartUpload('m', 'upload-m', [{partNumber: 2, etag: 'p2'}, {partNumber: 1, etag: 'p1'}])`, `TypeError`},
		{`env.B.completeMultipartUpload('m', 'upload-m', [{partNumber: 1, etag: 'p1', more: 1}])`, `TypeError`},
		{`env.B.completeMultipartUpload('m', 'upload-m', [])`, `TypeError`},
		{`env.B.completeMultipartUpload('m', 'upload-m', [{partNumber: 1, etag: 'p9'}])`, `invalid_part`},
		{`env.B.abortMultipartUpload('m', 'no')`, `upload_not_found`},
		{`env.B.abortMultipartUpload('m', 'upload-m')`, `undefined`},
		{`env.B.get('k').then(() => 'left alone')`, `"left alone"`},
	} {
		script := c.script
		if !strings.HasPrefix(script, "{") {
			script = "return " + script
		} else {
			script = strings.Replace(strings.TrimSuffix(strings.TrimPrefix(script, "{"), "}"), "env.C", "return env.C", 1)
		}
		v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "B", Bucket: m}, {Name: "C", Bucket: m, Counted: true}},
			Graph: graphOf(told + bodyScript + `export default { async fetch(request, env) { return new Response(await told((async () => {` + script + `})())) } }`)})
		if got := serve(t, v, request()); got.body != c.want {
			t.Errorf("%s: got %d %q, want %q", c.script, got.status, got.body, c.want)
		}
	}
	if m.opened != 0 {
		t.Errorf("%d bodies were not closed", m.opened)
	}
}

// A body that a worker only forwards between client and bucket never enters the guest.
func TestBucketBodiesAreSpliced(t *testing.T) {
	s := newBox(t, Options{})
	m := newMemoryBucket()
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "C", Bucket: m, Counted: true}}, Graph: graphOf(fetcher(`
		if (request.method === 'PUT') return Response.json(await env.C.put('k', request.body));
		return new Response((await env.C.get('k')).body);`))})
	req := request()
	req.Method, req.Length, req.Body = []byte("PUT"), -1, &slowBody{bytes.NewReader(want), make(chan struct{})}
	if got := serve(t, v, req); got.body != fmt.Sprintf(`{"etag":"e%d","size":%d}`, len(want), len(want)) {
		t.Fatalf("put: %d %q", got.status, got.body)
	}
	var res event.Response
	res.Reset()
	if err := v.Serve(context.Background(), request(), &res); err != nil || res.Stream == nil {
		t.Fatalf("get: %v", err)
	}
	got, err := io.ReadAll(res.Stream)
	res.Stream.Close()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := v.Retire(context.Background()); err != nil {
		t.Fatal(err)
	}
	in, out, spliced := counted(t, s.opt.Metrics.bodyIn), counted(t, s.opt.Metrics.bodyOut), counted(t, s.opt.Metrics.bodySpliced)
	if in != 0 || out != 0 || spliced != float64(2*len(want)) {
		t.Errorf("%v bytes in, %v out, %v spliced", in, out, spliced)
	}
}

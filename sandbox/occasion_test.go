package sandbox

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// module-worker §3.2: three arguments, the members of the event, a throw is a failed invocation.
func TestScheduled(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	ev := event.Scheduled{Cron: "*/5 * * * *", ScheduledTime: 1767225600000}
	v := openVersion(t, s, Spec{Handlers: []string{"scheduled"}, Vars: []byte(`{"V":1}`), Graph: graphOf(`
		export default { tag: 'me', async scheduled(...args) {
			const [event, env, ctx] = args;
			ctx.waitUntil(Promise.resolve());
			console.log(JSON.stringify([args.length, event, env, this.tag]));
		} }`)})
	if reached, err := v.Scheduled(context.Background(), ev); err != nil || !reached {
		t.Fatalf("reached %v, %v", reached, err)
	}
	want := `[3,{"scheduledTime":1767225600000,"cron":"*/5 * * * *"},{"V":1},"me"]`
	if !strings.Contains(l.String(), ": "+want+"\n") {
		t.Errorf("logged %q, want %s", l.String(), want)
	}
	for _, source := range []string{
		`export default { scheduled() { throw new Error('x') } }`,
		`export default { async scheduled() { throw new Error('x') } }`,
		`export default { scheduled() { return new Promise(() => {}) } }`,
	} {
		v := openVersion(t, s, Spec{Handlers: []string{"scheduled"}, Graph: graphOf(source)})
		if reached, err := v.Scheduled(context.Background(), ev); !reached || fault.NameOf(err) != "worker_error" {
			t.Errorf("%s: reached %v, %v; want a worker_error", source, reached, err)
		}
	}
	if reached, _ := openWorker(t, s, `export default { fetch() {} }`).Scheduled(context.Background(), ev); reached {
		t.Error("a version without the handler was reached")
	}
}

// module-worker §3.4: waitUntil outlives the handler, its rejection does not fail the invocation, and the version is not
// retired before it settled.
func TestWaitUntilAfterScheduled(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openVersion(t, s, Spec{Handlers: []string{"scheduled"}, Graph: graphOf(`
		export default { scheduled(event, env, ctx) {
			ctx.waitUntil(new Promise((ok) => setTimeout(() => { console.log('late'); ok() }, 20)));
			ctx.waitUntil(Promise.reject(new Error('aside')));
		} }`)})
	if reached, err := v.Scheduled(context.Background(), event.Scheduled{}); err != nil || !reached {
		t.Fatalf("reached %v, %v", reached, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := v.Retire(ctx); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(l.String(), ": "+"late"+"\n") {
		t.Errorf("logged %q; the task did not run to its end", l.String())
	}
}

// An invocation without a client ends when whoever wanted it gives it up.
func TestOccasionIsGivenUp(t *testing.T) {
	s := newBox(t, Options{})
	v := openVersion(t, s, Spec{Handlers: []string{"scheduled"}, Graph: graphOf(`
		export default { async scheduled() { await new Promise((ok) => setTimeout(ok, 3600000)) } }`)})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if reached, err := v.Scheduled(ctx, event.Scheduled{}); !reached || fault.CodeOf(err) != fault.Canceled {
		t.Errorf("reached %v, %v; want Canceled", reached, err)
	}
}

// recorder is a Settler that remembers the calls.
type recorder struct {
	mu      sync.Mutex
	calls   []string
	settled map[string]bool
}

var (
	errTestSettled = fault.Name(fault.Conflict, "already_settled", 60002)
	errTestMessage = fault.Name(fault.NotFound, "unknown_message", 60003)
)

func (r *recorder) note(call string) (event.Durable, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
	return func(context.Context) error { return nil }, nil
}

func (r *recorder) one(id, call string) (event.Durable, error) {
	switch {
	case !strings.HasPrefix(id, "m"):
		return nil, errTestMessage.New("test", "")
	case r.settled[id]:
		return nil, errTestSettled.New("test", "")
	}
	r.settled[id] = true
	return r.note(call)
}

func (r *recorder) Acknowledge(id string) (event.Durable, error) { return r.one(id, "ack "+id) }
func (r *recorder) Retry(id string, delay int) (event.Durable, error) {
	return r.one(id, fmt.Sprint("retry ", id, " ", delay))
}
func (r *recorder) AcknowledgeAll() (event.Durable, error) { return r.note("ackAll") }
func (r *recorder) RetryAll(delay int) (event.Durable, error) {
	return r.note(fmt.Sprint("retryAll ", delay))
}

// module-worker §3.3, queue §5: the members of a batch, settlement in the order of the calls, errors and types.
func TestQueueDelivery(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, c := range []struct {
		body, settled, want string
		fails               bool
	}{
		{`console.log(JSON.stringify([args.length, batch.batchId, batch.queue, batch.messages.map((m) => [m.id, m.timestampMillis, m.attempts, m.body.length])]))`,
			``, `[3,"b-1","tasks",[["m1",1767225600000,1,256],["m2",1767225600001,3,0]]]`, false},
		{`const b = batch.messages[0].body; console.log(b instanceof Uint8Array && b.every((x, i) => x === i))`, ``, `true`, false},
		{`'use strict'; try { batch.messages[0].id = 'x'; } catch (e) { console.log(e.name) }`, ``, `TypeError`, false},
		{`batch.retry('m2', 7); batch.acknowledge('m1'); batch.retryAll(); batch.acknowledgeAll()`, `retry m2 7,ack m1,retryAll -1,ackAll`, ``, false},
		{`console.log(await told(batch.acknowledge('m1')), await told(batch.acknowledge('m1')), await told(batch.retry('x')))`,
			`ack m1`, `undefined already_settled unknown_message`, false},
		{`console.log(await told(batch.acknowledge()), await told(batch.acknowledge(1)), await told(batch.acknowledge('m1', 2)), await told(batch.retry('m1', -1)), await told(batch.retry('m1', 43201)), await told(batch.retry('m1', 1.5)), await told(batch.acknowledgeAll(1)), await told(batch.retryAll(1, 2)))`,
			``, `TypeError TypeError TypeError TypeError TypeError TypeError TypeError TypeError`, false},
		{`ctx.waitUntil((async () => { await new Promise((ok) => setTimeout(ok, 20)); console.log(await told(batch.acknowledge('m1')), await told(batch.retryAll())) })())`,
			``, `unknown_batch unknown_batch`, false},
		{`batch.acknowledge('m1'); throw new Error('x')`, `ack m1`, ``, true},
	} {
		var l logs
		s := newBox(t, Options{Console: l.add})
		r := &recorder{settled: map[string]bool{}}
		v := openVersion(t, s, Spec{Handlers: []string{"queue"}, Graph: graphOf(told +
			`export default { async queue(...args) { const [batch, env, ctx] = args; ` + c.body + ` } }`)})
		reached, err := v.Queue(context.Background(), &event.Batch{ID: "b-1", Queue: "tasks", Settler: r, Messages: []event.Message{
			{ID: "m1", Timestamp: 1767225600000, Attempts: 1, Body: all}, {ID: "m2", Timestamp: 1767225600001, Attempts: 3}}})
		if !reached || (err != nil) != c.fails {
			t.Errorf("%s: reached %v, %v", c.body, reached, err)
		}
		if err := v.Retire(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.calls, ","); got != c.settled {
			t.Errorf("%s: settled %q, want %q", c.body, got, c.settled)
		}
		if c.want != "" && !strings.Contains(l.String(), ": "+c.want+"\n") {
			t.Errorf("%s: logged %q, want %s", c.body, l.String(), c.want)
		}
	}
}

// producer is a queue that gives ids.
type producer struct{ sent []binding.Message }

func (p *producer) Send(_ context.Context, messages []binding.Message) ([]string, error) {
	p.sent = append(p.sent, messages...)
	ids := make([]string, len(messages))
	for i, m := range messages {
		ids[i] = fmt.Sprintf("id%d-%d-%d", i, len(m.Body), m.DelaySeconds)
	}
	return ids, nil
}

// echoSQL shows what it was given.
type echoSQL struct{}

func (echoSQL) Execute(_ context.Context, sql string, params []byte) ([]byte, error) {
	return fmt.Appendf(nil, `{"execute":%q,"params":%s}`, sql, params), nil
}
func (echoSQL) Query(_ context.Context, sql string, params []byte) ([]byte, error) {
	return fmt.Appendf(nil, `{"query":%q,"params":%s}`, sql, params), nil
}
func (echoSQL) Transaction(_ context.Context, statements []byte) ([]byte, error) {
	return statements, nil
}

// queue §3, sql §§2–3: arguments, types and the order in which a message's faults count.
func TestQueueAndSQLBindings(t *testing.T) {
	s := newBox(t, Options{})
	for _, c := range []struct{ script, want string }{
		{`env.Q.send('hé')`, `"id0-3--1"`},
		{`env.Q.send(new Uint8Array(5).subarray(1), {delaySeconds: 0})`, `"id0-4-0"`},
		{`env.Q.send(new ArrayBuffer(127000), {delaySeconds: 43200})`, `"id0-127000-43200"`},
		{`env.Q.send(new ArrayBuffer(127001))`, `message_too_large`},
		{`env.Q.send('é'.repeat(63501))`, `message_too_large`},
		{`env.Q.send('é'.repeat(63500))`, `"id0-127000--1"`},
		{`env.Q.send({})`, `invalid_body`},
		{`env.Q.send()`, `TypeError`},
		{`env.Q.send(undefined)`, `invalid_body`},
		{`env.Q.send('x', {delaySeconds: 43201})`, `TypeError`},
		{`env.Q.send('x', {delay: 1})`, `TypeError`},
		{`env.Q.send('x', {}, 1)`, `TypeError`},
		{`env.Q.sendBatch([{body: 'a'}, {body: new Uint8Array(2), delaySeconds: 3}])`, `["id0-1--1","id1-2-3"]`},
		{`env.Q.sendBatch([])`, `TypeError`},
		{`env.Q.sendBatch('x')`, `TypeError`},
		{`env.Q.sendBatch(Array.from({length: 101}, () => ({body: 'a'})))`, `batch_too_large`},
		{`env.Q.sendBatch([{body: 'a'}, {body: new ArrayBuffer(127001)}, {body: 1}])`, `message_too_large`},
		{`env.Q.sendBatch([{body: 1}, {body: 'a', other: 1}])`, `invalid_body`},
		{`env.Q.sendBatch([{body: 'a', other: 1}])`, `TypeError`},
		{`Promise.resolve(Object.keys(Object.getPrototypeOf(env.Q)))`, `["send","sendBatch"]`},

		{`env.DB.execute('x')`, `{"execute":"x","params":[]}`},
		{`env.DB.query('x', [{type: 'null'}, {type: 'integer', value: '9223372036854775807'}, {type: 'real', value: 1}, {type: 'text', value: 'é'}, {type: 'blob', base64: 'AA=='}])`,
			`{"query":"x","params":[{"type":"null"},{"type":"integer","value":"9223372036854775807"},{"type":"real","value":1},{"type":"text","value":"é"},{"type":"blob","base64":"AA=="}]}`},
		{`env.DB.transaction([{sql: 'a'}, {sql: 'b', params: [{type: 'null'}]}])`, `[{"sql":"a","params":[]},{"sql":"b","params":[{"type":"null"}]}]`},
		{`env.DB.execute('x', [1])`, `TypeError`},
		{`env.DB.execute('x', ['a'])`, `TypeError`},
		{`env.DB.execute('x', [true])`, `TypeError`},
		{`env.DB.execute('x', [null])`, `TypeError`},
		{`env.DB.execute('x', [10n])`, `TypeError`},
		{`env.DB.execute('x', [new ArrayBuffer(1)])`, `TypeError`},
		{`env.DB.execute('x', [{type: 'boolean', value: true}])`, `TypeError`},
		{`env.DB.execute('x', [{type: 'text', value: 'a', extra: 1}])`, `TypeError`},
		{`env.DB.execute('x', [{type: 'integer', value: 1}])`, `TypeError`},
		{`env.DB.execute('x', [{type: 'constructor', value: 1}])`, `TypeError`},
		{`env.DB.execute('x', [{type: 'real', value: Infinity}])`, `numeric_out_of_range`},
		{`env.DB.execute('x', [{type: 'real', value: NaN}])`, `numeric_out_of_range`},
		{`env.DB.execute('x', Array.from({length: 101}, () => ({type: 'null'})))`, `TypeError`},
		{`env.DB.execute(1)`, `TypeError`},
		{`env.DB.transaction([])`, `TypeError`},
		{`env.DB.transaction(Array.from({length: 101}, () => ({sql: 'a'})))`, `TypeError`},
		{`env.DB.transaction([{sql: 'a', more: 1}])`, `TypeError`},
		{`env.DB.transaction([undefined])`, `TypeError`},
		{`env.DB.execute('x', [], 1)`, `TypeError`},
	} {
		v := openVersion(t, s, Spec{Bindings: []binding.Binding{{Name: "Q", Queue: &producer{}}, {Name: "DB", SQL: echoSQL{}}},
			Graph: graphOf(told + `export default { async fetch(request, env) { return new Response(await told(` + c.script + `)) } }`)})
		if got := serve(t, v, request()); got.body != c.want {
			t.Errorf("%s: got %d %q, want %q", c.script, got.status, got.body, c.want)
		}
	}
}

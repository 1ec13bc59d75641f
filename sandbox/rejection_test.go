package sandbox

import (
	"strings"
	"testing"
	"time"
)

// HTML: rejections that nobody handles are told after the microtasks, and told again if somebody handles them after all;
// what a listener prevents is not logged, and everything else is.
func TestRejectionEvents(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openWorker(t, s, fetcher(`
		const told = [];
		addEventListener('unhandledrejection', (e) => {
			told.push('lost ' + e.reason.message + (e.promise instanceof Promise) + e.cancelable);
			if (e.reason.message.startsWith('mine')) e.preventDefault();
		});
		onrejectionhandled = (e) => { told.push('found ' + e.reason.message); };
		const late = Promise.reject(new Error('mine, later'));
		const soon = Promise.reject(new Error('soon'));
		queueMicrotask(() => soon.catch(() => {}));
		Promise.reject(new Error('nobody'));
		await new Promise(r => setTimeout(r, 1));
		late.catch(() => {});
		await new Promise(r => setTimeout(r, 1));
		await new Promise(r => setTimeout(r, 1));
		return new Response(told.join())`))
	got := serve(t, v, request())
	if want := "lost mine, latertruetrue,lost nobodytruetrue,found mine, later"; got.body != want {
		t.Errorf("got %s\nwant %s", got.body, want)
	}
	log := l.String()
	if !strings.Contains(log, "in a promise: uncaught Error: nobody") || strings.Contains(log, "mine") || strings.Contains(log, "soon") {
		t.Errorf("log %s", log)
	}
}

// Between two tasks that are due at once there is time for the event too.
func TestRejectionsBetweenTasks(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`
		let told = 0;
		onunhandledrejection = (e) => { told++; e.preventDefault(); };
		const seen = new Promise((r) => {
			setTimeout(() => { Promise.reject(1); }, 0);
			setTimeout(() => r(told), 0);
			for (const end = Date.now() + 5; Date.now() < end;);
		});
		return new Response(await seen + '')`))
	if got := serve(t, v, request()); got.body != "1" {
		t.Errorf("got %+v", got)
	}
}

// A listener that loses a promise each time it is told of one is ended by the CPU limit, and by no recursion.
func TestRejectionsWithoutEnd(t *testing.T) {
	s := newBox(t, Options{MaxCPU: 500 * time.Millisecond}) // to load takes of it too, and longer on a busy machine
	v := openWorker(t, s, fetcher(`
		onunhandledrejection = () => { Promise.reject(1); };
		Promise.reject(1);
		return new Response('fine')`))
	for range 2 {
		if got := serve(t, v, request()); got.body != "fine" {
			t.Errorf("got %+v", got)
		}
	}
}

// An error that a listener of the global object prevents is not in the log; one that it does not prevent is.
func TestErrorEventsAndTheLog(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openWorker(t, s, fetcher(`
		const seen = [];
		onerror = (message) => { seen.push(message); return message.includes('mine'); };
		setTimeout(() => { throw new Error('mine') }, 0);
		setTimeout(() => { throw new Error('yours') }, 0);
		await new Promise(r => setTimeout(r, 2));
		return new Response(seen.join())`))
	if got := serve(t, v, request()); got.body != "Uncaught Error: mine,Uncaught Error: yours" {
		t.Errorf("got %q", got.body)
	}
	if log := l.String(); !strings.Contains(log, "Error: yours") || strings.Contains(log, "mine") {
		t.Errorf("log %s", log)
	}
}

// A message is a task: a handler that waits for one is not taken for stuck.
func TestMessagesAreTasks(t *testing.T) {
	s := newBox(t, Options{})
	v := openWorker(t, s, fetcher(`
		const { port1, port2 } = new MessageChannel();
		let n = 0;
		const done = new Promise(r => { port2.onmessage = (e) => { n++; if (e.data < 200) port1.postMessage(e.data + 1); else r(); }; });
		port1.postMessage(1);
		await done;
		return new Response(n + '')`))
	if got := serve(t, v, request()); got.body != "200" {
		t.Errorf("got %+v", got)
	}
}

// Messages that module code left on the way are discarded (module-worker §7), and do not block the port.
func TestMessagesOfModuleCode(t *testing.T) {
	for _, isolation := range []Isolation{IsolateRequest, IsolateWorker} {
		s := newBox(t, Options{Isolation: isolation})
		v := openWorker(t, s, `
			const { port1, port2 } = new MessageChannel();
			let got;
			port2.onmessage = (e) => got(e.data);
			port1.postMessage('old');
			export default { async fetch() {
				const first = new Promise((r) => { got = r; });
				port1.postMessage('new');
				const said = await first;
				port1.postMessage('never seen');
				return new Response(said);
			} }`)
		for range 3 {
			if got := serve(t, v, request()); got.body != "new" {
				t.Errorf("isolation %v: %+v", isolation, got)
			}
		}
	}
}

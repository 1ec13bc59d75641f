package sandbox

import (
	"strings"
	"testing"
	"time"

	"edged/internal/testkit"
)

// The same random operations on timers and on a plain list agree: due ones come out by time, then by age.
func TestTimersModel(t *testing.T) {
	rng := testkit.Rand(t)
	type entry struct {
		id  int32
		due time.Time
	}
	var got timers
	var want []entry
	drop := func(id int32) {
		for i, e := range want {
			if e.id == id {
				want = append(want[:i], want[i+1:]...)
				return
			}
		}
	}
	now := time.Unix(0, 0)
	for range 20_000 {
		id := int32(rng.IntN(30))
		switch rng.IntN(4) {
		case 0, 1:
			due := now.Add(time.Duration(rng.IntN(20)))
			got.set(id, due)
			drop(id)
			want = append(want, entry{id, due})
		case 2:
			got.clear(id)
			drop(id)
		default:
			now = now.Add(time.Duration(rng.IntN(5)))
			first := -1
			for i, e := range want {
				if !e.due.After(now) && (first < 0 || e.due.Before(want[first].due)) {
					first = i
				}
			}
			g, ok := got.pop(now)
			if ok != (first >= 0) || ok && g != want[first].id {
				t.Fatalf("popped %d, %v, want entry %d of %v", g, ok, first, want)
			}
			if ok {
				drop(g)
			}
		}
		if got.len() != len(want) {
			t.Fatalf("%d timers, want %d", got.len(), len(want))
		}
	}
}

// Timers as the HTML standard has them.
func TestTimersInWorker(t *testing.T) {
	s := newBox(t, Options{})
	for _, c := range []struct{ name, body, want string }{
		{"arguments and this", `const out = await new Promise(r => setTimeout(function (a, b) { r([a, b, this === globalThis]) }, 0, 1, 'x')); return new Response(String(out))`, "1,x,true"},
		{"order", `const out = []; for (const [n, ms] of [['c', 9], ['a', 1], ['b', 1], ['z', -5], ['y']]) setTimeout(() => out.push(n), ms);
			await new Promise(r => setTimeout(r, 30)); return new Response(out.join(''))`, "zyabc"},
		{"jobs run between timers", `const out = []; setTimeout(() => { out.push(1); Promise.resolve().then(() => out.push(2)) }); setTimeout(() => out.push(3));
			await new Promise(r => setTimeout(r, 10)); return new Response(out.join(''))`, "123"},
		{"clear", `let n = 0; const a = setTimeout(() => n++, 1); clearTimeout(a); const b = setInterval(() => { n += 10; if (n === 30) clearInterval(b) }, 1);
			clearTimeout(undefined); clearInterval(12345); clearTimeout();
			await new Promise(r => { const c = setInterval(() => { if (n >= 30) { clearInterval(c); setTimeout(r, 10) } }, 1) }); return new Response(String(n))`, "30"},
		{"an interval survives a throw", `let n = 0; await new Promise(r => { const i = setInterval(() => { if (++n === 3) { clearInterval(i); r() } throw new Error('x') }, 1) }); return new Response(String(n))`, "3"},
		{"clamped when nested", `const at = performance.now(); let n = 0; await new Promise(r => { const f = () => ++n === 10 ? r() : setTimeout(f, 0); f() });
			return new Response(String(performance.now() - at >= 12))`, "true"},
		{"delays wrap", `const at = performance.now(); await new Promise(r => setTimeout(r, 2 ** 32 + 1)); return new Response(String(performance.now() - at < 5000))`, "true"},
		{"shape", `return new Response([setTimeout.name, setTimeout.length, clearInterval.length, typeof setTimeout(() => {}), Object.keys(globalThis).includes('setTimeout'),
			(() => { try { new setTimeout(() => {}) } catch (e) { return e.name } })(), (() => { try { setTimeout('code') } catch (e) { return e.name } })()].join())`,
			"setTimeout,1,0,number,true,TypeError,TypeError"},
		{"clocks run", `const a = Date.now(), b = performance.now(); await new Promise(r => setTimeout(r, 5)); return new Response(String(Date.now() > a && performance.now() > b))`, "true"},
	} {
		if got := text(t, openWorker(t, s, fetcher(c.body))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A worker that logs without end is cut off, and the cut is told.
func TestConsoleIsBounded(t *testing.T) {
	var l logs
	s := newBox(t, Options{Console: l.add})
	v := openVersion(t, s, Spec{Tenant: "t", Worker: "w", Graph: graphOf(fetcher(`for (let i = 0; i < 3000; i++) console.info('line', i); console.warn('x'.repeat(100000)); return new Response('')`))})
	text(t, v)
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.list); n < 900 || n > 2500 {
		t.Errorf("%d of 3001 entries", n)
	}
	if e := l.list[0]; e.Text != "line 0" || e.Level != LevelInfo || e.Worker != "w" || e.Tenant != "t" {
		t.Errorf("entry %+v", e)
	}
	for _, e := range l.list {
		if len(e.Text) > maxEntryBytes || strings.Contains(e.Text, "\n") {
			t.Errorf("an entry of %d bytes", len(e.Text))
		}
	}
	if v.rate.dropped.Load() == 0 {
		t.Error("nothing was counted as dropped")
	}
}

package hostapi

import (
	"fmt"
	"strings"
	"testing"
)

// Stored images hold positions in the table: it only grows at its end.
func TestTableIsGolden(t *testing.T) {
	var b strings.Builder
	for i, h := range Table() {
		fmt.Fprintf(&b, "%d %s/%d\n", i, h.Name, h.Argc)
	}
	const want = `0 log/2
1 urlParse/3
2 urlSet/4
3 percentDecode/1
4 utf8Encode/1
5 utf8EncodeInto/3
6 utf8Decode/2
7 encodingName/1
8 decode/4
9 randomFill/1
10 randomUUID/0
11 digest/2
12 classID/1
13 headerName/1
14 headerValue/1
15 mimeType/1
16 formParse/2
17 codecOpen/2
18 codecRun/2
19 codecClose/1
20 hideSymbol/1
21 patternCompile/3
22 patternURL/1
23 intlNumber/2
24 intlDate/2
25 intlZone/1
26 intlCurrency/1
`
	if b.String() != want {
		t.Fatalf("got\n%swant\n%s", b.String(), want)
	}
}

// No argument, however wrong, does more than throw a TypeError.
func TestWrongArguments(t *testing.T) {
	w := newWorld(t)
	for _, h := range Table() {
		got := w.eval(fmt.Sprintf(`
			const detached = () => { const b = new ArrayBuffer(36), u = new Uint8Array(b); b.transfer(); return [b, u]; };
			const values = [undefined, null, true, -1, 0, 3, 1e300, NaN, 2**31, '', 'utf-8', 'http://a/', '\ud800', 'x'.repeat(5000), 1n, Symbol(), {}, [], () => 1, new Uint8Array(0),
				new Uint8Array(7), new Uint8Array(8), new Uint8Array(16).fill(255), new Uint8Array(36), new ArrayBuffer(3), new Float64Array(4), new DataView(new ArrayBuffer(1)),
				...detached(), new Proxy({}, {}), new SharedArrayBuffer(4)];
			let calls = 0;
			const fn = inner.host[%q], args = [];
			const fill = (at) => {
				if (at < %d) {
					for (let i = at < 2 ? 0 : calls %% 7; i < values.length; i += at < 2 ? 1 : 7) { args[at] = values[i]; fill(at + 1); }
					return;
				}
				calls++;
				try { fn(...args); } catch (e) { if (!(e instanceof TypeError) && e.message !== 'too many compression streams are open') throw e; }
			};
			fill(0);
			return calls > 0;`, h.Name, h.Argc))
		if got != "true" {
			t.Errorf("%s: %s", h.Name, got)
		}
	}
}

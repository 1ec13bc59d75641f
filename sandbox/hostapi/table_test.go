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
20 subtleImport/4
21 subtleExport/3
22 subtleGenerate/4
23 subtlePublic/2
24 subtleRSA/2
25 subtleSign/4
26 subtleVerify/5
27 subtleCrypt/6
28 subtleDerive/8
29 hideSymbol/1
30 patternCompile/3
31 patternURL/1
32 intlNumber/2
33 intlDate/2
34 intlZone/1
35 intlCurrency/1
36 wasmSetup/5
37 wasmCompile/1
38 wasmValidate/1
39 wasmDescribe/1
40 wasmCustom/2
41 wasmInstantiate/2
42 wasmMemoryNew/2
43 wasmMemoryBuffer/1
44 wasmMemoryGrow/2
45 wasmTableNew/4
46 wasmTableSize/1
47 wasmTableGet/2
48 wasmTableSet/3
49 wasmTableGrow/3
50 wasmGlobalNew/3
51 wasmGlobalGet/1
52 wasmGlobalSet/2
53 wasmGlobalInit/2
54 wasmTableType/1
`
	if b.String() != want {
		t.Fatalf("got\n%swant\n%s", b.String(), want)
	}
}

// No argument, however wrong, does more than throw a TypeError.
func TestWrongArguments(t *testing.T) {
	w := newWorld(t)
	for _, h := range Table() {
		step := 7
		if h.Argc > 4 { // fewer values for each of many
			step = 31
		}
		got := w.eval(fmt.Sprintf(`
			const detached = () => { const b = new ArrayBuffer(36), u = new Uint8Array(b); b.transfer(); return [b, u]; };
			const values = [undefined, null, true, -1, 0, 3, 1e300, NaN, 2**31, '', 'utf-8', 'http://a/', '\ud800', 'x'.repeat(5000), 1n, Symbol(), {}, [], () => 1, new Uint8Array(0),
				new Uint8Array(7), new Uint8Array(8), new Uint8Array(16).fill(255), new Uint8Array(36), new ArrayBuffer(3), new Float64Array(4), new DataView(new ArrayBuffer(1)),
				...detached(), new Proxy({}, {}), new SharedArrayBuffer(4)];
			let calls = 0;
			const fn = inner.host[%[1]q], args = [];
			const fill = (at) => {
				if (at < %[2]d) {
					for (let i = at < 2 ? 0 : calls %% %[3]d; i < values.length; i += at < 2 ? 1 : %[3]d) { args[at] = values[i]; fill(at + 1); }
					return;
				}
				calls++;
				try { fn(...args); } catch (e) { if (!(e instanceof TypeError) && e.message !== 'too many compression streams are open') throw e; }
			};
			fill(0);
			return calls > 0;`, h.Name, h.Argc, step))
		if got != "true" {
			t.Errorf("%s: %s", h.Name, got)
		}
	}
}

package sandbox

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// What docs/runtime.md says is there, and what it says is missing, is held to a real sandbox: the tests read the page, so
// that neither can change without the other.

// chapter is the text of a heading of docs/runtime.md, up to the next heading of any level.
func chapter(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/runtime.md has no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// sentences are those of a chapter's paragraphs and list items, each on one line.
func sentences(text string) (all []string) {
	for _, part := range regexp.MustCompile(`\n\n(- )?|\n- `).Split(text, -1) {
		for _, s := range strings.SplitAfter(strings.Join(strings.Fields(part), " "), ". ") {
			if s = strings.TrimSpace(s); s != "" {
				all = append(all, s)
			}
		}
	}
	return all
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

func codeSpans(text string) (all []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// prober is a worker that runs the script of a request's body and answers with what it returns.
func prober(t *testing.T, s *Sandbox) func(script string) (string, error) {
	v := openVersion(t, s, Spec{Graph: graphOf(`
		import pure from './empty.wasm';
		globalThis.import = { meta: import.meta };
		globalThis.module = pure;
		globalThis.find = (path) => path.split('.').reduce((o, name) => o === undefined || o === null ? undefined : o[name], globalThis);
		globalThis.thrown = (f) => { try { f(); return 'none'; } catch (e) { return e.name; } };
		globalThis.all = (want, ...made) => made.map(thrown).filter((name) => name !== want).join();
		const Async = (async () => {}).constructor;
		export default { async fetch(request) { return new Response(await new Async(await request.text())()) } }`,
		Module{Path: "empty.wasm", MediaType: "application/wasm", Bytes: []byte("\x00asm\x01\x00\x00\x00")})})
	return func(script string) (string, error) {
		var res event.Response
		body := newBody()
		body.push(script)
		body.end(nil)
		err := v.Serve(t.Context(), &event.Request{Method: []byte("POST"), URL: []byte("http://worker.test/"), Body: body, Length: int64(len(script))}, &res)
		return collect(&res).body, err
	}
}

// claim is a sentence of the page about what is not there, and how one sees that it is true.
type claim struct {
	sentence string
	absent   string       // paths from the global object that lead nowhere
	script   string       // returns nothing
	want     *fault.Named // or ends the invocation so
}

var missing = []claim{
	{sentence: "It throws or is absent, it never pretends:"},
	{
		sentence: "`Temporal`, `Atomics`; of `WebAssembly`: `compileStreaming`, `instantiateStreaming`, `Tag` and `Exception`, shared memories, the proposals after version 2 of the standard (see above), and `structuredClone` of a module.",
		absent:   "Temporal Atomics WebAssembly.compileStreaming WebAssembly.instantiateStreaming WebAssembly.Tag WebAssembly.Exception WebAssembly.JSTag WebAssembly.Suspending WebAssembly.promising WebAssembly.Function",
		script: `const compile = (...sections) => () => new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, ...sections]));
			const nothing = [1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0];
			compile(...nothing, 10, 4, 1, 2, 0, 0x0b)(); // version 1, to see that what follows fails for what it has
			return all('TypeError', () => new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true })) + all('DataCloneError', () => structuredClone(module)) +
				all('CompileError', compile(5, 4, 1, 3, 1, 1), compile(5, 5, 2, 0, 1, 0, 1), compile(...nothing, 10, 6, 1, 4, 0, 0x12, 0, 0x0b), compile(1, 4, 1, 0x60, 0, 0, 13, 3, 1, 0, 0), compile(1, 3, 1, 0x5f, 0))`,
	},
	{
		sentence: "`URL.createObjectURL`, `FileReaderSync`, `BroadcastChannel`, `XMLHttpRequest`, `WebSocket`, `EventSource`, `localStorage`, `caches`, `performance.mark` and `measure`, `scheduler`, `import.meta.resolve`; of `navigator` everything but `userAgent`.",
		absent:   "URL.createObjectURL URL.revokeObjectURL FileReaderSync BroadcastChannel XMLHttpRequest WebSocket EventSource localStorage sessionStorage indexedDB caches performance.mark performance.measure scheduler import.meta.resolve",
		script: `const own = []; for (let o = navigator; o !== Object.prototype; o = Object.getPrototypeOf(o)) own.push(...Reflect.ownKeys(o));
			return own.filter((name) => typeof name === 'string' && name !== 'userAgent' && name !== 'constructor').join()`,
	},
	{
		sentence: "`Intl` beyond the subset above.",
		script:   `return Object.getOwnPropertyNames(Intl).filter((name) => name !== 'NumberFormat' && name !== 'DateTimeFormat').join()`,
	},
	{
		sentence: "Timers take functions, no source text.",
		script:   `globalThis.ran = ''; const r = all('TypeError', () => setTimeout('ran = 1', 0), () => setInterval('ran = 1', 0)); await new Promise((done) => setTimeout(done, 1)); return r + ran`,
	},
	{
		sentence: "An object that a `Proxy` stands for counts as that object where one of the classes above is expected.",
		script:   `return await Response.prototype.text.call(new Proxy(new Response('x'), {})) === 'x' && new URLSearchParams.prototype.constructor('a=b').get.call(new Proxy(new URLSearchParams('a=c'), {}), 'a') === 'c' ? '' : 'it does not'`,
	},
	{
		sentence: "Request headers that browsers forbid may be set.",
		script:   `return ['cookie', 'origin', 'referer', 'date', 'sec-x'].filter((name) => new Request('http://a/', { headers: { [name]: 'x' } }).headers.get(name) !== 'x').join()`,
	},
	{
		sentence: "With `mode: \"no-cors\"` a request keeps only what a form could send.",
		script:   `const h = new Request('http://a/', { method: 'POST', mode: "no-cors", headers: { accept: 'a/b', 'x-a': '1', authorization: 'x', 'content-type': 'text/plain' } }).headers; return [...h.keys()].filter((name) => name !== 'accept' && name !== 'content-type').join() + (h.get('accept') === 'a/b' ? '' : 'lost')`,
	},
	{
		sentence: "Out of memory cannot be caught: it ends the invocation.",
		script:   `try { const kept = []; for (;;) kept.push(new Uint8Array(1 << 20)); } catch { return 'caught' } finally { return 'lived on' }`,
		want:     event.ErrMemory,
	},
	{
		sentence: "`Intl` knows the locale `en-US` (also as `en`), the Gregorian calendar, Latin digits, the time zone `UTC` and offsets such as `+02:00`; `UTC` is the default.",
		script: `const o = new Intl.DateTimeFormat().resolvedOptions();
			const got = [o.locale, o.calendar, o.numberingSystem, o.timeZone, new Intl.NumberFormat('en').resolvedOptions().locale, new Intl.NumberFormat('en-US').format(1234.5), new Date(0).toLocaleTimeString('en-US', { timeZone: '+02:00' })].join(' ');
			return got === 'en-US gregory latn UTC en 1,234.5 2:00:00 AM' ? '' : got`,
	},
	{
		sentence: "Everything else is a `RangeError` that says so: other locales, named time zones, the styles `unit` and `currencyDisplay: \"name\"`, rounding modes, eras and day periods.",
		script: `const n = (o) => () => new Intl.NumberFormat('en-US', o), d = (o) => () => new Intl.DateTimeFormat('en-US', o);
			return all('RangeError', () => (1).toLocaleString('de-DE'), () => new Date().toLocaleString('en-GB'), d({ timeZone: 'Europe/Berlin' }), d({ calendar: 'hebrew' }), d({ numberingSystem: 'arab' }),
				n({ style: 'unit', unit: 'meter' }), n({ style: 'currency', currency: 'EUR', currencyDisplay: "name" }), n({ roundingMode: 'floor' }), d({ era: 'short' }), d({ dayPeriod: 'short' }))`,
	},
	{
		sentence: "`Intl.Collator`, `PluralRules`, `ListFormat`, `RelativeTimeFormat`, `Segmenter`, `DisplayNames`, `Locale` and the `formatRange` methods are absent; `localeCompare` compares code points.",
		absent: "Intl.Collator Intl.PluralRules Intl.ListFormat Intl.RelativeTimeFormat Intl.Segmenter Intl.DisplayNames Intl.Locale " +
			"Intl.NumberFormat.prototype.formatRange Intl.DateTimeFormat.prototype.formatRange Intl.DateTimeFormat.prototype.formatRangeToParts",
		script: `const sorted = ['ä', 'b', 'Z', 'a'].sort((a, b) => a.localeCompare(b)).join(''); return sorted === 'Zabä' ? '' : sorted`,
	},
}

// docs/runtime.md, "What is missing" and "Language": every sentence is checked, and what it names is absent or throws.
func TestPageSaysWhatIsMissing(t *testing.T) {
	probe := prober(t, newBox(t, Options{}))
	said := append(sentences(chapter(t, "## What is missing")), sentences(chapter(t, "### Language"))...)
	for _, c := range missing {
		if !slices.Contains(said, c.sentence) {
			t.Errorf("docs/runtime.md no longer says: %s", c.sentence)
		}
		for _, name := range strings.Fields(c.absent) {
			if got, err := probe(`return find('` + name + `') === undefined ? '' : 'there'`); got != "" || err != nil {
				t.Errorf("%s is %s (%v), and the page says that it is absent", name, got, err)
			}
		}
		if c.script == "" {
			continue
		}
		if got, err := probe(c.script); c.want != nil {
			wantErr(t, err, c.want)
		} else if got != "" || err != nil {
			t.Errorf("not so: %s\n got %s (%v)", c.sentence, got, err)
		}
	}
	for _, sentence := range said {
		i := slices.IndexFunc(missing, func(c claim) bool { return c.sentence == sentence })
		if i < 0 {
			t.Errorf("docs/runtime.md says this, and nothing checks it: %s", sentence)
			continue
		}
		for _, name := range codeSpans(sentence) {
			if !strings.Contains(missing[i].absent+" "+missing[i].script, name) {
				t.Errorf("the check of this sentence does not look at %s: %s", name, sentence)
			}
		}
	}
}

// words of the table of globals that are no names of objects or members, and how one sees that they are true.
var globalOptions = map[string]string{
	"http:":       `return (await fetch('http://outside.test/')).status === 204`,
	"https:":      `return (await fetch('https://outside.test/')).status === 204`,
	"data:":       `return await (await fetch('data:,x')).text() === 'x'`,
	"v":           `return new URLPattern({ pathname: '/([[a-z]--[b]])' }).test('http://a/c')`,
	"ignoreCase":  `return new URLPattern('http://a/b', { ignoreCase: true }).test('http://a/B')`,
	"gzip":        `return new CompressionStream('gzip') && new DecompressionStream('gzip')`,
	"deflate":     `return new CompressionStream('deflate') && new DecompressionStream('deflate')`,
	"deflate-raw": `return new CompressionStream('deflate-raw') && new DecompressionStream('deflate-raw')`,
	"edged":       `return navigator.userAgent === 'edged'`,
}

// language are the properties of the global object in ECMAScript, with those of using and of annex B, without
// what the page lists as missing.
const language = `globalThis Infinity NaN undefined eval isFinite isNaN parseFloat parseInt decodeURI decodeURIComponent encodeURI encodeURIComponent escape unescape
	AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array
	Function Int8Array Int16Array Int32Array Iterator Map Number Object Promise Proxy RangeError ReferenceError RegExp Set SharedArrayBuffer String Symbol SyntaxError
	TypeError Uint8Array Uint8ClampedArray Uint16Array Uint32Array URIError WeakMap WeakRef WeakSet JSON Math Reflect AsyncDisposableStack DisposableStack SuppressedError`

// docs/runtime.md, "Globals": what the table names is there, and what is there it names.
func TestPageSaysWhatIsThere(t *testing.T) {
	outside := funcFetcher(func(_ context.Context, _ *binding.Outbound, res *event.Response) error {
		res.Status, res.Null = 204, true
		return nil
	})
	probe := prober(t, newBox(t, Options{Fetch: outside}))
	var rows [][]string
	for line := range strings.Lines(chapter(t, "## Globals")) {
		if words := codeSpans(line); strings.HasPrefix(line, "| ") && len(words) > 0 {
			rows = append(rows, words)
		}
	}
	named := slices.Concat(rows...)
	list, _ := json.Marshal(rows)
	// A word is a path from the global object, or a member of an object or class that its row names.
	got, err := probe(`return JSON.stringify(` + string(list) + `.flatMap((row) => {
		const holders = row.flatMap((name) => [find(name), find(name)?.prototype, find(name.split('.').slice(0, -1).join('.'))]).filter((o) => o !== undefined && o !== null).map(Object);
		return row.filter((name) => find(name) === undefined && !holders.some((o) => name in o) && !(name in globalThis));
	}))`)
	var options []string
	if json.Unmarshal([]byte(got), &options) != nil || err != nil {
		t.Fatal(got, err)
	}
	for _, word := range options {
		script, ok := globalOptions[word]
		if !ok {
			t.Errorf("docs/runtime.md names %s, which is not there", word)
		} else if got, err := probe(script); err != nil || got == "false" {
			t.Errorf("%s: %s, %v", word, got, err)
		}
	}
	for word := range globalOptions {
		if !slices.Contains(options, word) {
			t.Errorf("the table of globals no longer says %s", word)
		}
	}
	got, err = probe(`return ['import', 'module', 'find', 'thrown', 'all'].every((name) => delete globalThis[name]) && Object.getOwnPropertyNames(globalThis).join(' ')`)
	if err != nil {
		t.Fatal(err)
	}
	there, lang := strings.Fields(got), strings.Fields(language)
	for _, name := range there {
		if !slices.Contains(lang, name) && !slices.ContainsFunc(named, func(word string) bool { return word == name || strings.HasPrefix(word, name+".") }) {
			t.Errorf("the global %s is there, and docs/runtime.md does not name it", name)
		}
	}
	for _, name := range lang {
		if !slices.Contains(there, name) {
			t.Errorf("the language's %s is absent", name)
		}
	}
}

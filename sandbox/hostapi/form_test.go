package hostapi

import (
	"strings"
	"testing"
)

// Blob and File: parts, slices that share, types, streams, what the constructor refuses.
func TestBlob(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const b = new Blob(['a\ud800', new Uint8Array([66, 67]).subarray(1), new Blob(['d']), 5], { type: 'Text/X' }); return [b.size, b.type, await b.text()].join()`, "7,text/x,a\ufffdCd5"},
		{`return (await new Blob(['a\r\nb\rc\n'], { endings: 'native' }).text()).replaceAll('\n', '|') + new Blob([], { type: 'a\u00e9' }).type`, "a|b|c|"},
		{`const b = new Blob(['0123456789']); return [await b.slice(2, -2).text(), await b.slice(-3).text(), b.slice(5, 1).size, b.slice(0, 1, 'A/B').type, await b.slice(2, 8).slice(1, 3).text()].join()`, "234567,789,0,a/b,34"},
		{`const u = new Uint8Array([1, 2]), b = new Blob([u]); u[0] = 9; const c = await b.bytes(); c[1] = 9; return (await b.bytes()).join()`, "1,2"},
		{`let n = 0, chunks = 0; for await (const c of new Blob([new Uint8Array(200000)]).stream()) { n += c.length; chunks++; } return n + ' ' + chunks`, "200000 4"},
		{`const r = new Blob(['abc']).stream().getReader({ mode: 'byob' }); return (await r.read(new Uint8Array(2))).value.join()`, "97,98"},
		{`return new Blob('text')`, "throws TypeError: Blob: the parts are not a sequence"},
		{`return new Blob([], { endings: 'x' })`, `throws TypeError: Blob: "x" is no value of endings`},
		{`const f = new File(['x'], 'a/\ud800', { type: 't/x', lastModified: 5.9 }); return [f.name, f.size, f.type, f.lastModified, f instanceof Blob, Math.abs(new File([], 'n').lastModified - Date.now()) < 60000].join()`, "a/\ufffd,1,t/x,5,true,true"},
		{`return new File(['x'])`, "throws TypeError: File needs 2 arguments, got 1"},
		{`const c = structuredClone({ f: new File(['abc'], 'n', { type: 'a/b', lastModified: 7 }), b: new Blob(['x']) }); return [c.f instanceof File, c.f.name, c.f.type, c.f.lastModified, await c.f.text(), c.b.constructor.name, c.b.size].join()`, "true,n,a/b,7,abc,Blob,1"},
		{`return [Object.create(new Blob([])), { ...new Blob([]) }].map((v) => { try { return Blob.prototype.slice.call(v); } catch (e) { return e.name; } }).join()`, "TypeError,TypeError"},
	})
}

func TestFormData(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const f = new FormData(); f.append('a', 1); f.append('b', 'x'); f.append('a', '2'); f.set('b', 'y'); f.set('c', 'z'); return JSON.stringify([...f]) + f.getAll('a') + f.has('d') + f.get('d')`, `[["a","1"],["b","y"],["a","2"],["c","z"]]1,2falsenull`},
		{`const f = new FormData(); f.append('a', new Blob(['x'], { type: 't/x' })); f.append('a', new File(['y'], 'n'), 'm'); return f.getAll('a').map((v) => v.constructor.name + v.name + v.type).join()`, "Fileblobt/x,Filem"},
		{`new FormData().append('a', 'text', 'name')`, "throws TypeError: FormData.append: a value with a file name must be a Blob"},
		{`new FormData({})`, "throws TypeError: FormData: there are no forms to take the entries of"},
		// What a body of a form says, byte for byte.
		{`const f = new FormData(); f.append('a"\r\nb', 'l1\nl2'); f.append('f', new File(['x'], 'q"\n.txt')); const r = new Response(f), type = r.headers.get('content-type'); const b = type.split('boundary=')[1];
			return type.startsWith('multipart/form-data; boundary=----') + '|' + (await r.text()).replaceAll(b, 'B').replaceAll('\r\n', '|')`,
			`true|--B|Content-Disposition: form-data; name="a%22%0D%0Ab"||l1|l2|--B|Content-Disposition: form-data; name="f"; filename="q%22%0A.txt"|Content-Type: application/octet-stream||x|--B--|`},
		// There and back again.
		{`const f = new FormData(); f.append('ü"', 'text\r\n--x'); f.append('file', new File([new Uint8Array([0, 255, 13, 10])], 'näme.bin', { type: 'a/b' })); const g = await new Request('http://a/', { method: 'POST', body: f }).formData();
			return [...g.keys()].join() + g.get('ü"') + [g.get('file').name, g.get('file').type, (await g.get('file').bytes()).join()].join('|')`, "ü\",filetext\r\n--xnäme.bin|a/b|0,255,13,10"},
		{`return JSON.stringify([...await new Response('?a=1&b=%20+x', { headers: { 'content-type': 'application/x-www-form-urlencoded; charset=latin1' } }).formData()])`, `[["?a","1"],["b","  x"]]`},
		{`return new Response('x').formData()`, "throws TypeError: The body is not a form: its Content-Type is neither multipart/form-data nor application/x-www-form-urlencoded"},
		{`return new Response('--x', { headers: { 'content-type': 'multipart/form-data; boundary=x' } }).formData()`, "throws TypeError: The body is not a well-formed multipart/form-data"},
		{`return new Response('--x--', { headers: { 'content-type': 'multipart/form-data' } }).formData()`, "throws TypeError: The body is not a well-formed multipart/form-data"},
		{`const r = new Response('x'); await r.text(); return r.formData()`, "throws TypeError: The body was already read or is locked"},
	})
}

// Bodies of blobs, and blobs of bodies.
func TestBlobBodies(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const r = new Response(new Blob(['abc'], { type: 'A/B' })); const b = await r.blob(); return [r.headers.get('content-type'), b.type, await b.text()].join()`, "a/b,a/b,abc"},
		{`return String(new Response(new Blob(['abc'])).headers.get('content-type'))`, "null"},
		{`const blob = new Blob(['abc']), r = new Response(blob); (await r.bytes())[0] = 0; return blob.text()`, "abc"},
		{`const b = await new Response('x', { headers: { 'content-type': 'Text/HTML ; Charset="a b";x=y' } }).blob(); return b.type`, `text/html;charset="a b";x=y`},
		{`return (await new Response(null).blob()).size + (await new Response('x', { headers: { 'content-type': 'nonsense' } }).blob()).type`, "0"},
		{`return [new Response(new Blob([])), new Response(new FormData())].map((r) => r.body instanceof ReadableStream).join()`, "true,true"},
	})
}

// The bytes that clients and attackers send.
func TestParseForm(t *testing.T) {
	const head = "--B\r\nContent-Disposition: form-data; "
	for _, c := range []struct{ body, want string }{
		{head + "name=\"a\"\r\n\r\n1\r\n--B--\r\n", "a=1"},
		{"\r\n" + head + "name=a; filename=f\r\ncontent-type:  x/y \r\nX-Other: 1\r\n\r\n\r\n\r\n--B--epilogue", "a<f x/y>=\r\n"},
		{head + "filename=\"c:\\d.txt\"; name=\"q%22%0d%0A\"\r\n\r\n\r\n--B \t\r\nContent-Disposition: FORM-DATA; NAME=\"b\"\r\n\r\n--B-\r\n--B--", "q\"\r\n<c:\\d.txt text/plain>=&b=--B-"},
		{"--B--", ""},
		{"", "bad"},
		{"--B", "bad"},
		{"preamble\r\n" + head + "name=a\r\n\r\n1\r\n--B--", "bad"},
		{head + "name=\"a\"\r\n\r\n1--B--\r\n", "bad"},
		{head + "name=\"a\r\n\r\n1\r\n--B--\r\n", "bad"},
		{head + "filename=\"a\"\r\n\r\n1\r\n--B--\r\n", "bad"},
		{"--B\r\nContent-Type: a/b\r\n\r\n1\r\n--B--\r\n", "bad"},
		{"--B\r\nContent-Disposition: attachment; name=a\r\n\r\n1\r\n--B--\r\n", "bad"},
		{"--B\r\nX: " + strings.Repeat("x", maxPartHeaders) + "\r\n" + head[5:] + "name=a\r\n\r\n1\r\n--B--", "bad"},
		{strings.Repeat(head+"name=a\r\n\r\n1\r\n", maxFormParts+1) + "--B--", "bad"},
	} {
		parts, ok := parseForm([]byte(c.body), "B")
		var got []string
		for _, p := range parts {
			s := p.name
			if p.isFile {
				s += "<" + p.filename + " " + p.kind + ">"
			}
			got = append(got, s+"="+c.body[p.from:p.to])
		}
		text := strings.Join(got, "&")
		if !ok {
			text = "bad"
		}
		if text != c.want {
			t.Errorf("%.60q: got %q, want %q", c.body, text, c.want)
		}
	}
	if _, ok := parseForm([]byte("--\r\n"), ""); ok {
		t.Error("an empty boundary was accepted")
	}
}

// MIME Sniffing and Fetch: one type out of a whole header.
func TestMIMEType(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{"Text/HTML;Charset=UTF-8", "text/html;charset=UTF-8"},
		{" text/html ; a = b; c=\"d\\\"e\"; a=2 ;;f; g=\"\" h=1;i=j", `text/html;c="d\"e";a=2;g="";i=j`},
		{"text/html;charset=gbk, text/html", "text/html;charset=gbk"},
		{"text/html;charset=gbk, text/plain", "text/plain"},
		{"text/plain, */*, junk", "text/plain"},
		{`a/b;x="1,2", nothing`, `a/b;x="1,2"`},
		{`a/b;x="unended`, `a/b;x=unended`},
		{"text", ""}, {"/x", ""}, {"text/", ""}, {"te xt/a", ""}, {"", ""},
	} {
		m, ok := extractMIME(c.header)
		got := ""
		if ok {
			got = m.String()
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.header, got, c.want)
		}
	}
}

func FuzzParseForm(f *testing.F) {
	f.Add("--B\r\nContent-Disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\n1\r\n--B--\r\n", "B")
	f.Add("\r\n--B \r\n\r\n", "B")
	f.Fuzz(func(t *testing.T, body, boundary string) {
		parts, _ := parseForm([]byte(body), boundary)
		at := 0
		for _, p := range parts {
			if p.from < at || p.to < p.from || p.to > len(body) {
				t.Fatalf("a part from %d to %d behind %d, of %d bytes", p.from, p.to, at, len(body))
			}
			at = p.to
		}
	})
}

// A serialised type parses to itself.
func FuzzMIMEType(f *testing.F) {
	f.Add(`text/html;charset="a\"b", */*`)
	f.Fuzz(func(t *testing.T, header string) {
		m, ok := extractMIME(header)
		if !ok {
			return
		}
		if again, ok := parseMIME(m.String()); !ok || again.String() != m.String() {
			t.Fatalf("%q gives %q, and that %q", header, m.String(), again.String())
		}
	})
}

package hostapi

import "testing"

// File API: a reader's events come in order, each in its own task; a busy reader refuses; an abort ends it.
func TestFileReader(t *testing.T) {
	const run = `const run = (start, r = new FileReader()) => new Promise((done) => { const seen = [];
		for (const type of ['loadstart', 'progress', 'load', 'abort', 'error', 'loadend']) r.addEventListener(type, (e) => {
			seen.push(type + e.loaded); if (type === 'loadend') done([seen.join(), r.readyState, r.result, r.error?.name].join('|')); });
		start(r); });`
	scripts(t, []struct{ script, want string }{
		{run + `return run((r) => r.readAsText(new Blob(['aé'])))`, "loadstart0,progress3,load3,loadend3|2|aé|"},
		{run + `return run((r) => r.readAsText(new Blob([])))`, "loadstart0,load0,loadend0|2||"},
		{run + `return run((r) => r.readAsDataURL(new Blob([new Uint8Array([0, 255, 1])], { type: 'x/y' })))`, "loadstart0,progress3,load3,loadend3|2|data:x/y;base64,AP8B|"},
		{run + `return run((r) => r.readAsBinaryString(new Blob([new Uint8Array([0x41, 0xff])])))`, "loadstart0,progress2,load2,loadend2|2|A\u00ff|"},
		{run + `return run((r) => { r.readAsText(new Blob(['x'])); r.abort(); })`, "abort0,loadend0|2||AbortError"},
		{`const r = new FileReader(); r.readAsText(new Blob(['x'])); r.readAsText(new Blob(['y']))`, "throws InvalidStateError: The reader is busy"},
		{`new FileReader().readAsText('x')`, "throws TypeError: FileReader.readAsText: the argument is not a Blob"},
		// A mark goes before a label, a label before the blob's charset.
		{`const text = (blob, label) => new Promise((done) => { const r = new FileReader(); r.onload = () => done(r.result); r.readAsText(blob, label); });
			return [await text(new Blob([new Uint8Array([0xfe, 0xff, 0, 0x41])]), 'utf-8'), await text(new Blob([new Uint8Array([0xe9])], { type: 'text/plain;charset=utf-8' }), 'latin1'),
			await text(new Blob([new Uint8Array([0xe9])], { type: 'text/plain;charset=latin1' }))].join()`, "A,é,é"},
	})
}

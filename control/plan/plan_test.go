package plan

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"edged/control/form"
	"edged/control/state"
	"edged/internal/fault"
)

// filled returns a state with one whole worker, driven by commands alone.
func filled(t testing.TB, workers int) *state.State {
	t.Helper()
	s := state.New(form.Builtin())
	n := int64(0)
	create := func(formURL, uid, spec string) {
		t.Helper()
		n++
		out := s.Apply(&state.Command{
			Kind: state.CreateResource, At: n, Actor: state.Actor{Tenant: "t", Principal: "p", Role: state.Editor}, Lane: "v2", Key: uid,
			Fingerprint: []byte(uid), UID: uid, Operation: "op-" + uid, Form: formURL, Space: "s", Name: uid, Spec: json.RawMessage(spec), Window: 1,
			Inspected: &state.Inspected{Bundle: "b", Exports: []string{"fetch"}}, Address: uid + ".edge.test", Proven: true, Sealed: "set-1",
		})
		if out.Refusal != nil {
			t.Fatal(out.Refusal)
		}
		if !out.Operation.Status.Terminal() {
			index := &form.Index{SHA256: "m", Entrypoint: "main.js", Files: []form.File{{Path: "index.html", MediaType: "text/html", SHA256: "f", Size: 3}}}
			s.Apply(&state.Command{Kind: state.EndOperation, At: n, Operation: out.Operation.ID, OK: true, Index: index})
		}
	}
	artifact := `{"artifact":{"url":"https://a.test/","sha256":"` + strings.Repeat("a", 64) + `"}}`
	create(form.WorkerBundleURL, "b", artifact)
	create(form.StaticAssetBundleURL, "a", artifact)
	for i := range workers {
		id := string([]byte{'0' + byte(i/1000%10), '0' + byte(i/100%10), '0' + byte(i/10%10), '0' + byte(i%10)})
		w := "w" + id
		create(form.ModuleWorkerURL, w, `{}`)
		create(form.WorkerVersionURL, "v"+id, `{"worker":{"resourceUid":"`+w+`"},"bundle":{"resourceUid":"b"},"handlers":["fetch"],"vars":{"N":1.0},
			"assets":{"bundle":{"resourceUid":"a"},"runWorkerFirst":true,"notFoundHandling":"single_page_application"}}`)
		create(form.WorkerDeploymentURL, "d"+id, `{"worker":{"resourceUid":"`+w+`"},"versions":[{"workerVersion":{"resourceUid":"v`+id+`"},"weight":10000}]}`)
		create(form.WorkerEndpointURL, "e"+id, `{"worker":{"resourceUid":"`+w+`"}}`)
		create(form.CustomDomainURL, "c"+id, `{"worker":{"resourceUid":"`+w+`"},"hostname":"Z`+id+`.test."}`)
	}
	return s
}

// The plan holds all that a node needs, canonical and in order, and survives its file.
func TestDerive(t *testing.T) {
	p := Derive(filled(t, 1), 7)
	got, content, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"format":1,"index":7,"hosts":[{"name":"e0000.edge.test","worker":"w0000","resource":"e0000","tenant":"t","endpoint":true},` +
		`{"name":"z0000.test","worker":"w0000","resource":"c0000","tenant":"t"}],` +
		`"workers":[{"uid":"w0000","tenant":"t","space":"s","name":"w0000","deployment":"d0000","weights":[{"version":"v0000","weight":10000}]}],` +
		`"versions":[{"uid":"v0000","worker":"w0000","tenant":"t","ready":true,"handlers":["fetch"],"vars":{"N":1.0},` +
		`"bundle":{"resource":"b","sha256":"m","entrypoint":"main.js","files":[{"path":"index.html","mediaType":"text/html","sha256":"f","size":3}]},` +
		`"assets":{"resource":"a","sha256":"m","files":[{"path":"index.html","mediaType":"text/html","sha256":"f","size":3}],"runWorkerFirst":true,"spa":true},"sealed":"set-1"}]}` + "\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := SaveEncoded(path, got); err != nil {
		t.Fatal(err)
	}
	back, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, same, _ := back.Encode(); string(again) != want || !bytes.Equal(same, content) {
		t.Errorf("the file gives\n%s", again)
	}
	if err := SaveEncoded(path, []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a damaged file gives %v", err)
	}
}

// Linear in the number of Resources: the time per worker is what to look at.
func BenchmarkDerive(b *testing.B) {
	s := filled(b, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if p := Derive(s, 1); len(p.Workers) != 1000 {
			b.Fatal(len(p.Workers))
		}
	}
}

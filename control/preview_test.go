package control

import (
	"bytes"
	"fmt"
	"testing"

	"edged/control/form"
)

func (n *node) preview(body any) answer {
	n.t.Helper()
	return n.do("POST", root+"/previews", body)
}

// foretold checks a preview: no code means valid.
func (n *node) foretold(body any, code string) {
	n.t.Helper()
	a := n.preview(body)
	a.is(n.t, 200, "")
	errs := a.member(n.t, "errors").([]any)
	if a.member(n.t, "valid") != (code == "") || len(errs) > 0 != (code != "") || code != "" && errs[0].(map[string]any)["code"] != code {
		n.t.Errorf("preview of %v says %s, want %q", body, a.body, code)
	}
}

// host-api §10: a preview says what the mutation would, by the same checks in the same order, and changes nothing.
func TestPreviews(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	b := n.code("b", "fetch")
	v := n.version(w, "v", "fetch")
	n.made(form.WorkerDeploymentURL, "d", weighted(w, v, 10000))
	create := func(formURL, name string, s any, more ...any) spec {
		in := spec{"form": formURL, "space": "default", "name": name, "spec": s}
		for i := 0; i < len(more); i += 2 {
			in[more[i].(string)] = more[i+1]
		}
		return spec{"action": "create", "input": in}
	}
	update := func(uid string, g int, in spec) spec {
		return spec{"action": "update", "uid": uid, "expectedGeneration": g, "input": in}
	}
	secret := n.secretSpec(w, "s", "KEY")
	var before bytes.Buffer
	if err := n.c.state.Freeze().Write(&before); err != nil {
		t.Fatal(err)
	}
	index := n.c.machine.applied.at()
	for _, row := range []struct {
		body spec
		code string
	}{
		{create(form.ModuleWorkerURL, "new", spec{}), ""},
		{create("https://nowhere.test/", "new", spec{}), "unsupported_form"},
		{create(form.ModuleWorkerURL, "new", spec{}, "privateInputs", spec{}), "capability_required"},
		{create(form.ModuleWorkerURL, "new", spec{}, "offering", spec{"id": "a", "revision": "b"}), "invalid_request"},
		{create(form.ModuleWorkerURL, "new", spec{"x": 1}), "invalid_spec"},
		{create(form.ModuleWorkerURL, "web", spec{}), "name_conflict"},
		{create(form.WorkerVersionURL, "new", spec{"worker": ref("never"), "bundle": ref(b), "handlers": []string{"fetch"}}), "not_found"},
		{create(form.WorkerVersionURL, "new", spec{"worker": ref(w), "bundle": ref(b), "handlers": []string{"fetch"}}), ""},
		{create(form.WorkerVersionURL, "new", spec{"worker": ref(w), "bundle": ref(b), "handlers": []string{"queue"}}), "invalid_spec"}, // it evaluates the bundle
		{create(form.WorkerVersionURL, "new", secret, "privateInputs", spec{"KEY": "x"}), ""},
		{create(form.WorkerVersionURL, "new", secret, "privateInputs", spec{"OTHER": "x"}), "invalid_spec"},
		{create(form.WorkerVersionURL, "new", secret), "invalid_spec"},
		{create(form.WorkerDeploymentURL, "new", weighted(w, v, 10000)), "invalid_spec"}, // one per worker
		{create(form.WorkerEndpointURL, "new", spec{"worker": ref(w)}), ""},
		{update(w, 1, spec{"spec": spec{}}), ""},
		{update(w, 7, spec{"spec": spec{}}), "generation_conflict"},
		{update(w, 1, spec{"spec": spec{}, "privateInputs": spec{}}), "capability_required"},
		{spec{"action": "delete", "uid": w, "expectedGeneration": 1}, "dependency_conflict"},
		{spec{"action": "delete", "uid": b, "expectedGeneration": 1.0}, ""},
	} {
		n.foretold(row.body, row.code)
	}
	for i, row := range []struct {
		body   any
		status int
		code   string
	}{
		{spec{}, 400, "invalid_request"},
		{[]int{}, 400, "invalid_request"},
		{spec{"action": "replace", "uid": w}, 400, "invalid_request"},
		{spec{"action": "create", "uid": w, "input": spec{}}, 400, "invalid_request"},
		{spec{"action": "create", "input": spec{"form": form.ModuleWorkerURL}}, 400, "invalid_request"},
		{spec{"action": "create", "input": spec{"form": form.ModuleWorkerURL, "space": "default", "name": "n", "spec": spec{}, "x": 1}}, 400, "invalid_request"},
		{spec{"action": "create", "input": 1}, 400, "invalid_request"},
		{spec{"action": "delete", "uid": w, "expectedGeneration": 1, "input": spec{}}, 400, "invalid_request"},
		{spec{"action": "delete", "uid": w}, 400, "invalid_request"},
		{spec{"action": "delete", "uid": w, "expectedGeneration": "1"}, 400, "invalid_request"},
		{spec{"action": "delete", "uid": w, "expectedGeneration": -1}, 400, "invalid_request"},
		{spec{"action": "delete", "uid": 1, "expectedGeneration": 1}, 400, "invalid_request"},
		{spec{"action": "delete", "uid": "never", "expectedGeneration": 1}, 404, "not_found"},
	} {
		if a := n.preview(row.body); a.status != row.status || a.text(t, "code") != row.code {
			t.Errorf("row %d: %d %s", i, a.status, a.body)
		}
	}
	var after bytes.Buffer
	if err := n.c.state.Freeze().Write(&after); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before.Bytes(), after.Bytes()) || n.c.machine.applied.at() != index {
		t.Error("a preview changed the state")
	}
}

// host-api §10: authorization errors are ordinary Problems, the same ones that the mutation would have.
func TestPreviewsAreAuthorized(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	w := n.made(form.ModuleWorkerURL, "web", spec{})
	gone := n.made(form.ModuleWorkerURL, "gone", spec{})
	n.succeeded(n.del(gone))
	token := func(in spec) string {
		return "Bearer " + n.do("POST", "/operator/v1/control/tokens", in).text(t, "token")
	}
	reader := token(spec{"tenant": "default", "principal": "r", "role": "reader"})
	elsewhere := token(spec{"tenant": "default", "principal": "e", "role": "editor", "spaces": []string{"other"}})
	stranger := token(spec{"tenant": "t2", "principal": "s", "role": "operator"})
	create := spec{"action": "create", "input": spec{"form": form.ModuleWorkerURL, "space": "default", "name": "x", "spec": spec{}}}
	remove := func(uid string) spec { return spec{"action": "delete", "uid": uid, "expectedGeneration": 1} }
	for i, row := range []struct {
		auth   string
		body   spec
		status int
	}{
		{reader, create, 403}, {reader, remove(w), 403}, {elsewhere, create, 403}, {elsewhere, remove(w), 403},
		{stranger, create, 200}, {stranger, remove(w), 404}, {reader, remove(gone), 403}, {stranger, remove(gone), 404}, {"Bearer " + n.token, remove(gone), 410},
	} {
		if a := n.do("POST", root+"/previews", row.body, "Authorization", row.auth); a.status != row.status {
			t.Errorf("row %d: %d %s", i, a.status, a.body)
		}
	}
	a, b := n.do("POST", root+"/previews", remove(w), "Authorization", stranger), n.do("POST", root+"/previews", remove("never"), "Authorization", stranger)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("a stranger tells %s from %s", a.body, b.body)
	}
}

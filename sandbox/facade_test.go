package sandbox

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"edged/sandbox/binding"
	"edged/sandbox/event"
	"edged/sandbox/facade"
)

// README §8: each binding's methods and error names stand in one table. Its names are well formed and unique, and what
// JavaScript sees are its methods and no others.
func TestFacadesAreTheTable(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for kind, methods := range facade.Methods {
		seen := map[string]bool{}
		for _, m := range methods {
			if seen[m.Name] {
				t.Errorf("%s.%s stands twice", kind, m.Name)
			}
			seen[m.Name] = true
			for i, name := range m.Errors {
				if !word.MatchString(name) || slices.Index(m.Errors, name) != i {
					t.Errorf("%s.%s: error name %q", kind, m.Name, name)
				}
			}
		}
	}
	s := newBox(t, Options{})
	v := openVersion(t, s, Spec{Handlers: []string{"fetch", "queue"}, Bindings: []binding.Binding{
		{Name: "kv", KV: newMemoryKV()}, {Name: "sql", SQL: echoSQL{}}, {Name: "queue", Queue: &producer{}},
		{Name: "bucket", Bucket: newMemoryBucket()}, {Name: "counted", Bucket: newMemoryBucket(), Counted: true}, {Name: "service", Service: funcService(nil)},
	}, Graph: graphOf(`
		const methods = (o) => Object.keys(Object.getPrototypeOf(o));
		export default {
			fetch(request, env) { return Response.json(Object.fromEntries(Object.entries(env).map(([k, o]) => [k, methods(o)]))) },
			queue(b) { if (Object.getOwnPropertyNames(Object.getPrototypeOf(b)).filter((k) => k !== 'constructor').join() !== 'acknowledge,retry,acknowledgeAll,retryAll') throw 1 },
		};`)})
	var got map[string][]string
	if err := json.Unmarshal([]byte(serve(t, v, request()).body), &got); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{"kv": "kv", "sql": "sql", "queue": "queue", "bucket": "bucket", "counted": "bucket", "service": "service"} {
		var want []string
		for _, m := range facade.Methods[kind] {
			want = append(want, m.Name)
		}
		if !slices.Equal(got[name], want) {
			t.Errorf("%s has %v, want %v", name, got[name], want)
		}
	}
	if _, err := v.Queue(t.Context(), &event.Batch{ID: "b"}); err != nil {
		t.Errorf("the batch has other methods: %v", err)
	}
}

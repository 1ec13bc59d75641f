package form

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"edged/control/rules"
)

const (
	worker = `"worker":{"resourceUid":"w-1"}`
	bundle = `"bundle":{"resourceUid":"b-1"}`
	code   = worker + `,` + bundle + `,"handlers":[]`
	static = worker + `,"handlers":[],"assets":{"bundle":{"resourceUid":"a-1"},"runWorkerFirst":false,"notFoundHandling":"none"}`
)

func numbered(n int, format string) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(out, ",")
}

func nested(n int) string { return strings.Repeat("[", n) + "1" + strings.Repeat("]", n) }

// worker-version §§1 to 3 and the rows of §11 that a spec shows by itself. "" accepts; otherwise the rule and a part of
// the pointer of the refusal.
func TestWorkerVersionSpec(t *testing.T) {
	tests := []struct{ name, spec, rule, pointer string }{
		{"code", code, "", ""},
		{"static", static, "", ""},
		{"code and assets", code + `,"assets":{"bundle":{"resourceUid":"a-1"},"runWorkerFirst":false,"notFoundHandling":"single_page_application"}`, "", ""},
		{"three handlers", worker + "," + bundle + `,"handlers":["queue","fetch","scheduled"]`, "", ""},
		{"handler twice", worker + "," + bundle + `,"handlers":["fetch","fetch"]`, "spec", "/handlers/1"},
		{"unknown handler", worker + "," + bundle + `,"handlers":["tail"]`, "spec", "/handlers/0"},
		{"four handlers", worker + "," + bundle + `,"handlers":["fetch","scheduled","queue","tail"]`, "spec", "/handlers"},
		{"handlers missing", worker + "," + bundle, "spec", "/handlers"},
		{"handler number", worker + "," + bundle + `,"handlers":[1]`, "spec", "/handlers/0"},
		{"64 vars", code + `,"vars":{` + numbered(64, `"k%d":1`) + `}`, "", ""},
		{"65 vars", code + `,"vars":{` + numbered(65, `"k%d":1`) + `}`, "spec", "/vars"},
		{"var starts with digit", code + `,"vars":{"1a":1}`, "spec", "/vars/1a"},
		{"var of 64", code + `,"vars":{"` + strings.Repeat("a", 64) + `":1}`, "", ""},
		{"var of 65", code + `,"vars":{"` + strings.Repeat("a", 65) + `":1}`, "spec", "/vars/"},
		{"var with newline", code + `,"vars":{"a\n":1}`, "spec", "/vars/"},
		{"constructor is a var", code + `,"vars":{"constructor":1}`, "", ""},
		{"nested key", code + `,"vars":{"a":{"_x":1}}`, "spec", "/vars/a/_x"},
		{"array of 64", code + `,"vars":{"a":[` + numbered(64, `%d`) + `]}`, "", ""},
		{"array of 65", code + `,"vars":{"a":[` + numbered(65, `%d`) + `]}`, "spec", "/vars/a"},
		{"object of 65", code + `,"vars":{"a":{` + numbered(65, `"k%d":0`) + `}}`, "spec", "/vars/a"},
		{"string of 8192 astral", code + `,"vars":{"a":"` + strings.Repeat("😀", 8192) + `"}`, "", ""},
		{"string of 8193", code + `,"vars":{"a":"` + strings.Repeat("é", 8193) + `"}`, "spec", "/vars/a"},
		{"8 levels", code + `,"vars":{"a":` + nested(8) + `}`, "", ""},
		{"9 levels", code + `,"vars":{"a":` + nested(9) + `}`, "spec", "/vars/a/0/0/0/0/0/0/0/0"},
		{"empty values", code + `,"vars":{"a":"","b":[],"c":{},"d":null,"e":true}`, "", ""},
		{"vars null", code + `,"vars":null`, "spec", "/vars"},
		{"secret", code + `,"requiredSensitiveVars":["API_KEY"]`, "", ""},
		{"secret lower", code + `,"requiredSensitiveVars":["api_key"]`, "spec", "/requiredSensitiveVars/0"},
		{"64 secrets", code + `,"requiredSensitiveVars":[` + numbered(64, `"K%d"`) + `]`, "", ""},
		{"65 secrets", code + `,"requiredSensitiveVars":[` + numbered(65, `"K%d"`) + `]`, "spec", "/requiredSensitiveVars"},
		{"secret twice", code + `,"requiredSensitiveVars":["A","A"]`, "WA-6.1", "/requiredSensitiveVars/1"},
		{"64 bindings", code + `,"kvBindings":[` + numbered(64, `{"name":"k%d","resource":{"resourceUid":"k"}}`) + `]`, "", ""},
		{"65 bindings", code + `,"kvBindings":[` + numbered(65, `{"name":"k%d","resource":{"resourceUid":"k"}}`) + `]`, "spec", "/kvBindings"},
		{"binding name", code + `,"kvBindings":[{"name":"a-b","resource":{"resourceUid":"k"}}]`, "spec", "/kvBindings/0/name"},
		{"binding __proto__", code + `,"kvBindings":[{"name":"__proto__","resource":{"resourceUid":"k"}}]`, "", ""},
		{"binding extra member", code + `,"kvBindings":[{"name":"a","resource":{"resourceUid":"k"},"x":1}]`, "spec", "/kvBindings/0/x"},
		{"reference extra member", code + `,"kvBindings":[{"name":"a","resource":{"resourceUid":"k","x":1}}]`, "REL-0", "/kvBindings/0/resource/x"},
		{"reference empty", `"worker":{"resourceUid":""},` + bundle + `,"handlers":[]`, "REL-0", "/worker/resourceUid"},
		{"reference number", `"worker":{"resourceUid":1},` + bundle + `,"handlers":[]`, "REL-0", "/worker/resourceUid"},
		{"reference string", `"worker":"w-1",` + bundle + `,"handlers":[]`, "REL-0", "/worker"},
		{"unknown key", code + `,"extra":1`, "spec", "/extra"},
		{"bundle null", worker + `,"bundle":null,"handlers":[]`, "REL-0", "/bundle"},
		{"assets null", code + `,"assets":null`, "spec", "/assets"},
		{"assets two keys", worker + `,"handlers":[],"assets":{"bundle":{"resourceUid":"a-1"},"runWorkerFirst":false}`, "spec", "/assets/notFoundHandling"},
		{"assets handling", worker + `,"handlers":[],"assets":{"bundle":{"resourceUid":"a-1"},"runWorkerFirst":false,"notFoundHandling":"404"}`, "spec", "/assets/notFoundHandling"},
		{"assets number", worker + `,"handlers":[],"assets":{"bundle":{"resourceUid":"a-1"},"runWorkerFirst":0,"notFoundHandling":"none"}`, "spec", "/assets/runWorkerFirst"},
		{"static and var", static + `,"vars":{"a":1}`, "worker-version §3", "/vars/a"},
		{"static and empty vars", static + `,"vars":{},"kvBindings":[]`, "", ""},
		{"static and binding", static + `,"kvBindings":[{"name":"a","resource":{"resourceUid":"k"}}]`, "worker-version §3", "/kvBindings/0/name"},
		{"static first", strings.Replace(static, "false", "true", 1), "worker-version §3", "/assets/runWorkerFirst"},
		{"neither", worker + `,"handlers":[]`, "worker-version §3", "/bundle"},
		{"handlers without bundle", strings.Replace(static, "[]", `["fetch"]`, 1), "worker-version §3", "/handlers"},
		{"worker first without fetch", worker + "," + bundle + `,"handlers":["queue"],"assets":{"bundle":{"resourceUid":"a-1"},"runWorkerFirst":true,"notFoundHandling":"none"}`, "worker-version §3", "/assets/runWorkerFirst"},
		// binding-name-collision-rejected, one row for each pair of kinds.
		{"var and secret", code + `,"vars":{"A":1},"requiredSensitiveVars":["A"]`, "WA-6.1", "/requiredSensitiveVars/0"},
		{"var and binding", code + `,"vars":{"A":1},"kvBindings":[{"name":"A","resource":{"resourceUid":"k"}}]`, "WA-6.1", "/kvBindings/0/name"},
		{"secret and binding", code + `,"requiredSensitiveVars":["A"],"kvBindings":[{"name":"A","resource":{"resourceUid":"k"}}]`, "WA-6.1", "/kvBindings/0/name"},
		{"two lists", code + `,"kvBindings":[{"name":"A","resource":{"resourceUid":"k"}}],"containerBindings":[{"name":"A","resource":{"resourceUid":"k"}}]`, "WA-6.1", "/containerBindings/0/name"},
		{"one list", code + `,"kvBindings":[{"name":"A","resource":{"resourceUid":"k"}},{"name":"A","resource":{"resourceUid":"l"}}]`, "WA-6.1", "/kvBindings/1/name"},
		{"number out of any use", code + `,"vars":{"a":1e-9999999999999999999}`, "spec", "/vars"},
	}
	d := workerVersion()
	for _, tt := range tests {
		_, v := d.Parse(json.RawMessage("{" + tt.spec + "}"))
		checkVerdict(t, tt.name, v, tt.rule, tt.pointer)
	}
	for _, raw := range []string{"null", "[]", `"x"`, "1"} {
		_, v := d.Parse(json.RawMessage(raw))
		checkVerdict(t, raw, v, "spec", "")
	}
}

func checkVerdict(t *testing.T, name string, v *rules.Verdict, rule, pointer string) {
	t.Helper()
	switch {
	case v == nil && rule != "":
		t.Errorf("%s: accepted, want %s", name, rule)
	case v != nil && rule == "":
		t.Errorf("%s: refused: %s", name, v.Detail())
	case v != nil && (v.Rule != rule || !strings.HasPrefix(v.Pointer, pointer) || v.Seed != rules.InvalidArgument):
		t.Errorf("%s: refused by %s at %q (%s), want %s at %q", name, v.Rule, v.Pointer, v.Detail(), rule, pointer)
	case v != nil && pointer != "" && rule != "WA-6.1" && !strings.Contains(v.Sentence, pointer):
		t.Errorf("%s: sentence %q does not name %s", name, v.Sentence, pointer)
	}
}

// Every binding list carries the mark and takes part in rule 6 without further code (D-49).
func TestEveryBindingListTakesNames(t *testing.T) {
	lists := 0
	for _, f := range workerVersion().Fields {
		if !f.Binding {
			continue
		}
		lists++
		raw := fmt.Sprintf(`{%s,"vars":{"A":1},%q:[{"name":"A","resource":{"resourceUid":"x"}}]}`, code, f.Name)
		_, v := workerVersion().Parse(json.RawMessage(raw))
		checkVerdict(t, f.Name, v, "WA-6.1", "/"+f.Name+"/0/name")
	}
	if lists != 8 {
		t.Errorf("%d binding lists, the Form has 8", lists)
	}
}

// worker-version §4: which specs are the same.
func TestWorkerVersionEquality(t *testing.T) {
	bindings := `"kvBindings":[{"name":"a","resource":{"resourceUid":"k"}},{"name":"b","resource":{"resourceUid":"l"}}]`
	base := worker + "," + bundle + `,"handlers":["fetch","queue"],"vars":{"n":1,"o":{"x":1,"y":2},"l":[1,2]},` + bindings
	tests := []struct {
		name, spec string
		same       bool
	}{
		{"itself", base, true},
		{"handlers reordered", strings.Replace(base, `"fetch","queue"`, `"queue","fetch"`, 1), true},
		{"bindings reordered", worker + "," + bundle + `,"handlers":["fetch","queue"],"vars":{"n":1,"o":{"x":1,"y":2},"l":[1,2]},"kvBindings":[{"name":"b","resource":{"resourceUid":"l"}},{"name":"a","resource":{"resourceUid":"k"}}]`, true},
		{"explicit defaults", base + `,"requiredSensitiveVars":[],"sqliteBindings":[]`, true},
		{"number spelled otherwise", strings.Replace(base, `"n":1`, `"n":1.0e0`, 1), true},
		{"keys reordered", strings.Replace(base, `"x":1,"y":2`, `"y":2,"x":1`, 1), true},
		{"array reordered", strings.Replace(base, `[1,2]`, `[2,1]`, 1), false},
		{"other number", strings.Replace(base, `"n":1`, `"n":1.00000000000000000000001`, 1), false},
		{"assets added", base + `,"assets":{"bundle":{"resourceUid":"a"},"runWorkerFirst":false,"notFoundHandling":"none"}`, false},
		{"other bundle", strings.Replace(base, "b-1", "b-2", 1), false},
		{"handler dropped", strings.Replace(base, `"fetch","queue"`, `"fetch"`, 1), false},
		{"binding renamed", strings.Replace(base, `"name":"a"`, `"name":"c"`, 1), false},
	}
	old := parse(t, workerVersion(), base)
	for _, tt := range tests {
		got := workerVersion().Frozen(old, parse(t, workerVersion(), tt.spec)) == ""
		if got != tt.same {
			t.Errorf("%s: same is %t, want %t", tt.name, got, tt.same)
		}
	}
	a := parse(t, workerVersion(), code)
	if b := parse(t, workerVersion(), code+`,"vars":{}`); a.Digest != b.Digest {
		t.Error("omitted vars and vars:{} differ")
	}
}

func parse(t testing.TB, d *Driver, spec string) *Spec {
	t.Helper()
	s, v := d.Parse(json.RawMessage("{" + spec + "}"))
	if v != nil {
		t.Fatalf("%s: %s", spec, v.Detail())
	}
	return s
}

// worker-deployment §1.
func TestWorkerDeploymentSpec(t *testing.T) {
	entry := func(uid, weight string) string {
		return `{"workerVersion":{"resourceUid":"` + uid + `"},"weight":` + weight + `}`
	}
	of := func(entries ...string) string { return worker + `,"versions":[` + strings.Join(entries, ",") + `]` }
	nine := make([]string, 9)
	for i := range nine {
		nine[i] = entry(fmt.Sprint("v", i), "1")
	}
	tests := []struct{ name, spec, rule, pointer string }{
		{"one", of(entry("v", "10000")), "", ""},
		{"integral spelling", of(entry("v", "1e4")), "", ""},
		{"eight", of(nine[:8]...), "", ""},
		{"nine", of(nine...), "spec", "/versions"},
		{"none", of(), "spec", "/versions"},
		{"zero", of(entry("v", "0")), "spec", "/versions/0/weight"},
		{"negative", of(entry("v", "-1")), "spec", "/versions/0/weight"},
		{"fraction", of(entry("v", "1.5")), "spec", "/versions/0/weight"},
		{"string", of(entry("v", `"1"`)), "spec", "/versions/0/weight"},
		{"too heavy", of(entry("v", "10001")), "spec", "/versions/0/weight"},
		{"huge", of(entry("v", "1e300")), "spec", "/versions/0/weight"},
		{"member", worker + `,"versions":[{"workerVersion":{"resourceUid":"v"},"weight":10000,"x":1}]`, "spec", "/versions/0/x"},
		{"worker missing", `"versions":[` + entry("v", "10000") + `]`, "spec", "/worker"},
	}
	for _, tt := range tests {
		_, v := workerDeployment().Parse(json.RawMessage("{" + tt.spec + "}"))
		checkVerdict(t, tt.name, v, tt.rule, tt.pointer)
	}
	a, b := parse(t, workerDeployment(), of(entry("v1", "4000"), entry("v2", "6000"))), parse(t, workerDeployment(), of(entry("v2", "6000"), entry("v1", "4000.0")))
	if a.Digest != b.Digest {
		t.Error("the order of versions makes a difference")
	}
	if c := parse(t, workerDeployment(), of(entry("v1", "6000"), entry("v2", "4000"))); a.Digest == c.Digest {
		t.Error("weights make no difference")
	}
}

// worker-bundle §1, module-worker §1, attachments §2.
func TestOtherSpecs(t *testing.T) {
	sum := strings.Repeat("a", 64)
	art := func(url, sum string) string { return `"artifact":{"url":"` + url + `","sha256":"` + sum + `"}` }
	tests := []struct {
		d                         *Driver
		name, spec, rule, pointer string
	}{
		{moduleWorker(), "empty", "", "", ""},
		{moduleWorker(), "member", `"x":1`, "spec", "/x"},
		{workerBundle(), "ok", art("https://a.test/m.json", sum), "", ""},
		{workerBundle(), "http", art("http://a.test/m", sum), "spec", "/artifact/url"},
		{workerBundle(), "query", art("https://a.test/m?x", sum), "spec", "/artifact/url"},
		{workerBundle(), "fragment", art("https://a.test/m#x", sum), "spec", "/artifact/url"},
		{workerBundle(), "userinfo", art("https://u@a.test/m", sum), "spec", "/artifact/url"},
		{workerBundle(), "not ASCII", art("https://a.test/é", sum), "spec", "/artifact/url"},
		{workerBundle(), "long", art("https://a.test/"+strings.Repeat("a", 8192), sum), "spec", "/artifact/url"},
		{workerBundle(), "upper digest", art("https://a.test/m", strings.Repeat("A", 64)), "spec", "/artifact/sha256"},
		{workerBundle(), "short digest", art("https://a.test/m", sum[1:]), "spec", "/artifact/sha256"},
		{workerBundle(), "missing", "", "spec", "/artifact"},
		{workerBundle(), "extra", `"artifact":{"url":"https://a.test/m","sha256":"` + sum + `","x":1}`, "spec", "/artifact/x"},
		{staticAssets(), "ok", art("https://a.test/m.json", sum), "", ""},
		{workerEndpoint(), "ok", worker, "", ""},
		{workerEndpoint(), "extra", worker + `,"x":1`, "spec", "/x"},
		{customDomain(), "ok", worker + `,"hostname":"a.test"`, "", ""},
		{customDomain(), "bad", worker + `,"hostname":"*.a.test"`, "CL-2", "/hostname"},
		{customDomain(), "number", worker + `,"hostname":1`, "spec", "/hostname"},
	}
	for _, tt := range tests {
		_, v := tt.d.Parse(json.RawMessage("{" + tt.spec + "}"))
		checkVerdict(t, tt.d.Kind+" "+tt.name, v, tt.rule, tt.pointer)
	}
}

// CL-1, CL-2: host names are made canonical, never converted.
func TestCanonicalHost(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	long := strings.Repeat(label63+".", 3) + strings.Repeat("b", 61)
	tests := []struct{ in, want string }{
		{"www.example.test", "www.example.test"},
		{"WWW.Example.TEST.", "www.example.test"},
		{"xn--bcher-kva.test", "xn--bcher-kva.test"},
		{label63 + ".test", label63 + ".test"},
		{long, long}, // 253 characters
		{long + "b", ""},
		{"a" + label63 + ".test", ""},
		{"bücher.test", ""}, {"*.test", ""}, {"a.*", ""}, {"localhost", ""}, {"", ""}, {".", ""}, {"a..b", ""}, {"a.test..", ""}, {".a.test", ""},
		{"1.2.3.4", ""}, {"1.2.3.4.", ""}, {"a.0x7f", ""}, {"a.1", ""}, {"::1", ""}, {"[::1]", ""}, {"-a.test", ""}, {"a-.test", ""}, {"a_b.test", ""}, {"a b.test", ""}, {"a.test\n", ""}, {"a.test:80", ""},
	}
	for _, tt := range tests {
		got, reason := CanonicalHost(tt.in)
		if got != tt.want && reason == "" || (reason == "") != (tt.want != "") {
			t.Errorf("CanonicalHost(%q) = %q, %q, want %q", tt.in, got, reason, tt.want)
		}
	}
	s := parse(t, customDomain(), worker+`,"hostname":"A.Test."`)
	if want := `{"hostname":"a.test","worker":{"resourceUid":"w-1"}}`; string(s.Echo) != want {
		t.Errorf("echo is %s, want %s", s.Echo, want)
	}
}

// host-api §2.3: the Form URL is opaque, but its grammar is not.
func TestIsFormURL(t *testing.T) {
	for _, ok := range []string{"https://a.test/x/", "https://a.test", "HTTPS://a.test/", "https://a.test:8443/x%20y", "https://[::1]/x"} {
		if !IsFormURL(ok) {
			t.Errorf("%q is refused", ok)
		}
	}
	for _, bad := range []string{"", "https://", "https:///x", "http://a.test/", "a.test", "https://u@a.test/", "https://a.test/?q", "https://a.test/#f", "https://a.test/ x", "https://a.test/é", `https://a.test/\x`, "https://a.test/%zz", "https://a.test:x/", "https://:80/", "https://[::1/"} {
		if IsFormURL(bad) {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// D-20 and the load order of worker-version §3.
func TestCheckExports(t *testing.T) {
	tests := []struct {
		declared string
		exported []string
		word     string
	}{
		{`"fetch"`, []string{"fetch"}, ""},
		{``, nil, ""},
		{`"fetch","queue"`, []string{"fetch"}, "queue"},
		{`"fetch"`, []string{"fetch", "scheduled"}, "scheduled"},
		{``, []string{"fetch"}, "fetch"},
	}
	for _, tt := range tests {
		v := CheckExports(parse(t, workerVersion(), worker+","+bundle+`,"handlers":[`+tt.declared+`]`), tt.exported)
		if (v == nil) != (tt.word == "") || v != nil && !strings.Contains(v.Sentence, "handler "+tt.word) {
			t.Errorf("declared %s, exported %v: %v", tt.declared, tt.exported, v)
		}
	}
}

// No spec can make a parser panic, and what it accepts it accepts again from its own echo, as the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{code, static, worker + `,"hostname":"a.test."`, worker + `,"versions":[]`, `"artifact":{"url":"https://a.test/","sha256":""}`} {
		f.Add([]byte("{" + s + "}"))
	}
	drivers := Builtin()
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, d := range drivers {
			s, v := d.Parse(raw)
			if v != nil {
				continue
			}
			again, v := d.Parse(s.Echo)
			if v != nil || again.Digest != s.Digest {
				t.Fatalf("%s: echo %s of %s is not the same: %v", d.Kind, s.Echo, raw, v)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	raw := json.RawMessage(`{` + worker + `,` + bundle + `,"handlers":["fetch"],"vars":{"A":"x","B":[1,2,3]},"kvBindings":[{"name":"KV","resource":{"resourceUid":"k"}}]}`)
	d := workerVersion()
	b.ReportAllocs()
	for b.Loop() {
		if _, v := d.Parse(raw); v != nil {
			b.Fatal(v)
		}
	}
}

// worker-version §4: a member that is absent differs from every one that is present, also from its neighbour's.
func TestAbsentDiffersFromPresent(t *testing.T) {
	same := func(_ *Spec, _ string, val any) (any, *rules.Verdict) { return val, nil }
	d := &Driver{Fields: []Field{{Name: "a", Read: same}, {Name: "b", Read: same}}}
	digests := map[[32]byte]string{}
	for _, raw := range []string{`{}`, `{"a":1}`, `{"b":1}`, `{"a":1,"b":1}`} {
		s, v := d.Parse([]byte(raw))
		if v != nil {
			t.Fatal(v)
		}
		if other, taken := digests[s.Digest]; taken {
			t.Errorf("%s equals %s", raw, other)
		}
		digests[s.Digest] = raw
	}
}

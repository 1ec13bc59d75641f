package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"edged/control/form"
)

// reader turns one document into a Manifest and collects what is wrong with it.
type reader struct {
	m      Manifest
	tree   map[string]any // nil if the document is no TOML
	lines  *lines
	faults Faults
}

// parse reads a manifest without looking at any other file.
func parse(file string, b []byte) *reader {
	r := &reader{m: Manifest{File: file}}
	var tree map[string]any
	if err := toml.Unmarshal(b, &tree); err != nil {
		line := 0
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ = at.Position()
		}
		r.faults = append(r.faults, Fault{File: file, Line: line, Text: strings.TrimPrefix(err.Error(), "toml: ")})
		return r
	}
	if tree == nil {
		tree = map[string]any{}
	}
	r.tree, r.lines = tree, readLines(b)
	r.keys("", tree, "name", "main", "handlers", "endpoint", "domains", "vars", "assets", "secrets", "bindings", "consumers", "crons")
	r.name()
	r.handlers()
	r.m.Endpoint, _ = read[bool](r, tree, "", "endpoint")
	r.domains()
	r.assets()
	r.vars()
	r.secrets()
	r.bindings()
	r.crons()
	r.consumers()
	r.shape()
	return r
}

func (r *reader) fault(pointer, format string, args ...any) {
	r.faults = append(r.faults, Fault{File: r.m.File, Line: r.lines.of(pointer), Text: fmt.Sprintf(format, args...)})
}

// keys refuses every key of a table that is not in the list.
func (r *reader) keys(pointer string, table map[string]any, known ...string) {
	for key := range table {
		if !slices.Contains(known, key) {
			r.fault(pointer+"/"+escape(key), "unknown key %q%s", key, in(pointer))
		}
	}
}

func in(pointer string) string {
	if pointer == "" {
		return ""
	}
	return " in [" + strings.TrimPrefix(pointer, "/") + "]"
}

// kinds are the names of the types that keys have.
var kinds = map[string]string{"string": "a string", "bool": "true or false", "int64": "a whole number", "[]interface {}": "an array",
	"map[string]interface {}": "a table"}

// read returns the value of a key of a table; ok false if it is absent or, which is a fault, of another type.
func read[T any](r *reader, table map[string]any, pointer, key string) (val T, ok bool) {
	raw, present := table[key]
	if !present {
		return val, false
	}
	if val, ok = raw.(T); !ok {
		r.fault(pointer+"/"+key, "%s must be %s", key, kinds[fmt.Sprintf("%T", val)])
	}
	return val, ok
}

// texts reads an array of strings; bad elements are faults and left out.
func (r *reader) texts(key string) (list []string, pointers []string) {
	items, _ := read[[]any](r, r.tree, "", key)
	for i, item := range items {
		at := fmt.Sprintf("/%s/%d", key, i)
		text, ok := item.(string)
		if !ok {
			r.fault(at, "%s must hold strings", key)
			continue
		}
		list, pointers = append(list, text), append(pointers, at)
	}
	return list, pointers
}

// nameGrammar is node-surface §6; longer names would not leave room for the roles behind them.
var nameGrammar = regexp.MustCompile(`\A[a-z0-9][a-z0-9-]{0,62}\z`)

func (r *reader) name() {
	name, ok := read[string](r, r.tree, "", "name")
	if _, present := r.tree["name"]; !present {
		r.fault("/name", "name is missing")
	} else if ok && !nameGrammar.MatchString(name) {
		r.fault("/name", "name %.80q must be 1 to 63 lower-case letters, digits and hyphens, and not begin with a hyphen", name)
	}
	r.m.Name, r.m.NameLine = name, r.lines.of("/name")
}

func (r *reader) handlers() {
	r.m.Main, _ = read[string](r, r.tree, "", "main")
	if main, present := r.tree["main"]; present && main == "" {
		r.fault("/main", "main must name the entry module")
	}
	list, pointers := r.texts("handlers")
	for i, h := range list {
		switch {
		case !slices.Contains(form.Handlers[:], h):
			r.fault(pointers[i], "unknown handler %.80q: a handler is %s", h, strings.Join(form.Handlers[:], ", "))
		case slices.Contains(list[:i], h):
			r.fault(pointers[i], "handler %q stands twice", h)
		}
	}
	for _, h := range form.Handlers {
		if slices.Contains(list, h) {
			r.m.Handlers = append(r.m.Handlers, h)
		}
	}
}

func (r *reader) domains() {
	list, pointers := r.texts("domains")
	for i, d := range list {
		host, why := form.CanonicalHost(d)
		switch {
		case why != "":
			r.fault(pointers[i], "domain %.300q %s", d, why)
		case slices.Contains(r.m.Domains, host):
			r.fault(pointers[i], "domain %s stands twice", host)
		default:
			r.m.Domains = append(r.m.Domains, host)
		}
	}
}

func (r *reader) assets() {
	table, ok := read[map[string]any](r, r.tree, "", "assets")
	if !ok {
		return
	}
	const at = "/assets"
	r.keys(at, table, "directory", "run_worker_first", "not_found")
	a := &Assets{NotFound: "none"}
	r.m.Assets = a
	a.Directory, ok = read[string](r, table, at, "directory")
	if _, present := table["directory"]; !present || ok && a.Directory == "" {
		r.fault(at+"/directory", "directory is missing in [assets]")
	}
	a.RunWorkerFirst, _ = read[bool](r, table, at, "run_worker_first")
	if notFound, ok := read[string](r, table, at, "not_found"); ok {
		if notFound != "none" && notFound != "single_page_application" {
			r.fault(at+"/not_found", "not_found must be \"none\" or \"single_page_application\"")
		}
		a.NotFound = notFound
	}
}

// shape judges which parts may stand together (worker-version §3), and that addresses find something that answers HTTP.
func (r *reader) shape() {
	_, hasMain := r.tree["main"]
	_, hasHandlers := r.tree["handlers"]
	_, hasAssets := r.tree["assets"]
	fetch := slices.Contains(r.m.Handlers, "fetch")
	switch {
	case !hasMain && !hasAssets:
		r.fault("/main", "a worker needs main, its entry module, or [assets], its static files")
	case !hasMain && len(r.m.Handlers) > 0:
		r.fault("/handlers", "handlers need main, the module that exports them")
	case hasMain && !hasHandlers:
		r.fault("/main", "main needs handlers, the list of what it exports: handlers = [\"fetch\"]")
	}
	if len(r.m.Crons) > 0 && !slices.Contains(r.m.Handlers, "scheduled") {
		r.fault("/crons", "crons need the handler scheduled")
	}
	if len(r.m.Consumers) > 0 && !slices.Contains(r.m.Handlers, "queue") {
		r.fault("/consumers/0", "consumers need the handler queue")
	}
	if r.m.Assets != nil && r.m.Assets.RunWorkerFirst && !fetch {
		r.fault("/assets/run_worker_first", "run_worker_first needs the handler fetch")
	}
	if fetch || hasAssets {
		return
	}
	if r.m.Endpoint {
		r.fault("/endpoint", "an endpoint needs the handler fetch or [assets]")
	}
	if len(r.m.Domains) > 0 {
		r.fault("/domains", "domains need the handler fetch or [assets]")
	}
}

package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"edged/control/form"
)

// The kinds of bindings, as they are written.
const (
	KV      = "kv"
	SQLite  = "sqlite"
	Bucket  = "bucket"
	Queue   = "queue"
	Service = "service"
)

var bindingKinds = []string{KV, SQLite, Bucket, Queue, Service}

// bucketForms are the versions of ObjectBucket that a binding may ask for; the first is made where none is named.
var bucketForms = []string{"0.3.0", "0.2.0"}

// Binding is one object of env that stands for something outside the worker.
type Binding struct {
	Name   string // in env
	Line   int
	Kind   string // one of the constants
	Target string // name of the Resource in the worker's Space

	BucketForm       string // of a bucket: 0.3.0 or 0.2.0
	RetentionSeconds int    // of a queue; 0 if the manifest does not say

	MigrationsDir  string      // of a database; "" without
	MigrationsLine int         // where it stands
	Migrations     []Migration // in the order in which they are applied
}

// bindings reads [bindings].
func (r *reader) bindings() {
	table, ok := read[map[string]any](r, r.tree, "", "bindings")
	if !ok {
		return
	}
	if _, hasMain := r.tree["main"]; len(table) > 0 && !hasMain {
		r.fault("/bindings", "bindings need main: a static site has no environment")
	}
	count := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		pointer := "/bindings/" + escape(name)
		entry, ok := table[name].(map[string]any)
		if !ok {
			r.fault(pointer, "binding %.80q must be a table, like { kv = \"cache\" }", name)
			continue
		}
		if b := r.binding(name, pointer, entry); b != nil {
			r.m.Bindings = append(r.m.Bindings, *b)
			count[b.Kind]++
		}
	}
	for _, kind := range bindingKinds {
		if count[kind] > maxList {
			r.fault("/bindings", "there are %d %s bindings, allowed are %d", count[kind], kind, maxList)
		}
	}
	r.targets()
}

// binding reads one entry; nil if it cannot be told what it is.
func (r *reader) binding(name, pointer string, entry map[string]any) *Binding {
	kind := ""
	for _, k := range bindingKinds {
		if _, ok := entry[k]; ok && kind != "" {
			r.fault(pointer, "binding %.80q has both %s and %s", name, kind, k)
			return nil
		} else if ok {
			kind = k
		}
	}
	if kind == "" {
		r.fault(pointer, "binding %.80q names nothing: it needs one of %s", name, strings.Join(bindingKinds, ", "))
		return nil
	}
	b := &Binding{Name: name, Kind: kind, Line: r.lines.of(pointer)}
	resource := map[string]any{"name": name, "resource": map[string]string{"resourceUid": "u"}}
	if where, why := judgeMember("kvBindings", []any{resource}); why != "" { // all lists have the same grammar
		r.fault(pointer, "binding %.80q %s", name, sentence(where, why))
	}
	known := append([]string{kind}, map[string][]string{SQLite: {"migrations"}, Bucket: {"form"}, Queue: {"retention_seconds"}}[kind]...)
	r.keys(pointer, entry, known...)
	var ok bool
	if b.Target, ok = read[string](r, entry, pointer, kind); ok && !form.IsName(b.Target) {
		r.fault(pointer+"/"+kind, "%.140q is no name: 1 to 128 letters, digits, . _ and -, a letter or digit first", b.Target)
	}
	r.bindingOptions(b, pointer, entry)
	return b
}

// bindingOptions reads what only some kinds have.
func (r *reader) bindingOptions(b *Binding, pointer string, entry map[string]any) {
	switch b.Kind {
	case SQLite:
		dir, ok := read[string](r, entry, pointer, "migrations")
		if ok && dir == "" {
			r.fault(pointer+"/migrations", "migrations must name a directory")
		}
		b.MigrationsDir, b.MigrationsLine = dir, r.lines.of(pointer+"/migrations")
	case Bucket:
		b.BucketForm = bucketForms[0]
		if f, ok := read[string](r, entry, pointer, "form"); ok {
			if !slices.Contains(bucketForms, f) {
				r.fault(pointer+"/form", "form %.80q of a bucket must be one of %s", f, strings.Join(bucketForms, ", "))
			}
			b.BucketForm = f
		}
	case Queue:
		if n, ok := read[int64](r, entry, pointer, "retention_seconds"); ok {
			if why := judgeQueue(n); why != "" {
				r.fault(pointer+"/retention_seconds", "retention_seconds %s", why)
			}
			b.RetentionSeconds = int(n)
		}
	}
}

// judgeQueue asks the Form what it thinks of a retention.
func judgeQueue(seconds int64) string {
	_, verdict := form.Builtin()[form.QueueURL].Parse(fmt.Appendf(nil, `{"messageRetentionSeconds":%d}`, seconds))
	if verdict == nil {
		return ""
	}
	return sentence(verdict.Pointer, verdict.Sentence)
}

// targets refuses what cannot be true together: names are unique in a Space across all Forms.
func (r *reader) targets() {
	first := map[string]*Binding{}
	for i := range r.m.Bindings {
		b := &r.m.Bindings[i]
		pointer := "/bindings/" + escape(b.Name)
		if b.Target == r.m.Name && b.Kind != Service {
			r.fault(pointer, "%s is the worker's own name, and names are unique in a Space", b.Target)
		}
		other := first[b.Target]
		if other == nil {
			first[b.Target] = b
			continue
		}
		at := r.lines.of("/bindings/" + escape(other.Name))
		switch {
		case other.Kind != b.Kind:
			r.fault(pointer, "%s is a %s in line %d, and names are unique in a Space", b.Target, other.Kind, at)
		case other.BucketForm != b.BucketForm:
			r.fault(pointer, "%s has the form %s in line %d", b.Target, other.BucketForm, at)
		case other.RetentionSeconds != b.RetentionSeconds:
			r.fault(pointer, "%s has another retention_seconds in line %d", b.Target, at)
		case other.MigrationsDir != b.MigrationsDir:
			r.fault(pointer, "%s has other migrations in line %d", b.Target, at)
		}
	}
}

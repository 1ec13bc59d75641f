package deploy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/control/form"
)

// typeSQL is the media type of migrations (sql §7).
const typeSQL = "application/sql"

// defaultRetention is how long a queue keeps messages that the manifest says nothing of (node-surface §6).
const defaultRetention = 345600

// dataForms are the Forms behind the kinds of bindings to data.
var dataForms = map[string]string{manifest.KV: form.KVNamespaceURL, manifest.SQLite: form.SQLiteDatabaseURL, manifest.Queue: form.QueueURL}

func dataForm(b *manifest.Binding) string {
	if b.Kind == manifest.Bucket {
		return map[string]string{"0.2.0": form.ObjectBucket2URL, "0.3.0": form.ObjectBucket3URL}[b.BucketForm]
	}
	return dataForms[b.Kind]
}

// dataSteps makes what workers keep their data in: everything that is bound, and the queues of consumers. Data is never
// removed here, and a Resource that is there is taken as it is but for what the manifest says of it.
func (d *deployer) dataSteps() []*step {
	byName := map[string]*step{}
	for i := range d.manifest.Bindings {
		b := &d.manifest.Bindings[i]
		switch {
		case b.Kind == manifest.Service || byName[b.Target] != nil:
		case b.Kind == manifest.Queue:
			byName[b.Target] = d.queueStep(b.Target, b.RetentionSeconds, b.Line)
		default:
			byName[b.Target] = &step{form: dataForm(b), name: b.Target, line: b.Line,
				want: func(func(string) string) *want { return &want{spec: struct{}{}} }}
		}
	}
	for _, c := range d.manifest.Consumers {
		for _, name := range []string{c.Queue, c.DeadLetterQueue} {
			if name != "" && byName[name] == nil {
				byName[name] = d.queueStep(name, 0, c.Line)
			}
		}
	}
	var steps []*step
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		steps = append(steps, byName[name])
	}
	return append(steps, d.migrationSteps()...)
}

// queueStep makes a queue; retention 0 leaves that of one that is there.
func (d *deployer) queueStep(name string, retention, line int) *step {
	return &step{form: form.QueueURL, name: name, line: line, want: func(func(string) string) *want {
		spec := map[string]any{}
		if have := d.have[name]; have != nil {
			_ = json.Unmarshal(have.Spec, &spec) // keeps what the manifest does not speak of; one that cannot be read is replaced
		}
		if _, there := spec["messageRetentionSeconds"]; retention > 0 || !there {
			spec["messageRetentionSeconds"] = defaultRetention
			if retention > 0 {
				spec["messageRetentionSeconds"] = retention
			}
		}
		return &want{spec: spec, mutable: true}
	}}
}

// migrationSteps makes the sets of SQL files and applies them, each database before anything that uses it.
func (d *deployer) migrationSteps() []*step {
	var steps []*step
	done := map[string]bool{}
	for i := range d.manifest.Bindings {
		b := &d.manifest.Bindings[i]
		set := d.migrations[b.Target]
		if set == nil || done[b.Target] {
			continue
		}
		done[b.Target] = true
		setName := digestName(d.names.worker, "migrations", set.Digest())
		if !done[setName] { // two databases may have the same files
			done[setName] = true
			steps = append(steps, d.artifactStep(form.SQLiteMigrationsURL, setName, set, b.MigrationsLine))
		}
		steps = append(steps, d.applicationStep(b, setName))
	}
	return steps
}

func (d *deployer) applicationStep(b *manifest.Binding, set string) *step {
	return &step{form: form.MigrationURL, name: textName(d.names.worker, "migration", b.Target+" "+set), line: b.MigrationsLine,
		uses: []string{b.Target, set}, want: func(uid func(string) string) *want {
			w := &want{spec: struct {
				Database ref `json:"database"`
				Set      ref `json:"migrationSet"`
			}{ref{uid(b.Target)}, ref{uid(set)}}, note: b.Target}
			w.same = func(r *client.Resource) bool {
				var observed struct{ Ready bool }
				return w.equalSpec(r) && json.Unmarshal(r.Observed, &observed) == nil && observed.Ready
			}
			return w
		}}
}

// migrationSets hashes the files of every database that has migrations.
func migrationSets(m *manifest.Manifest) (map[string]*FileSet, error) {
	sets := map[string]*FileSet{}
	for _, b := range m.Bindings {
		if b.MigrationsDir == "" || sets[b.Target] != nil {
			continue
		}
		files := &manifest.Assets{}
		for _, f := range b.Migrations {
			files.Files = append(files.Files, manifest.Asset{Path: f.Path, File: f.File, MediaType: typeSQL, Size: f.Size})
		}
		set, err := assetSet(files)
		if err != nil {
			return nil, err
		}
		sets[b.Target] = set
	}
	return sets, nil
}

// unsupportedText says what a node lacks.
func unsupportedText(formURL string) string {
	kind := Kind(formURL)
	if strings.HasPrefix(kind, "SQLiteMigration") {
		return "migrations are not supported by this node: it has no " + kind
	}
	return "this node has no " + kind + " (" + formURL + ")"
}

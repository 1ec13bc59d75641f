package deploy

import (
	"encoding/json"
	"fmt"
	"strings"

	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

type assetsSpec struct {
	Bundle   ref    `json:"bundle"`
	First    bool   `json:"runWorkerFirst"`
	NotFound string `json:"notFoundHandling"`
}

type bound struct {
	Name     string `json:"name"`
	Resource ref    `json:"resource"`
}

type versionSpec struct {
	Worker   ref             `json:"worker"`
	Bundle   *ref            `json:"bundle,omitempty"`
	Handlers []string        `json:"handlers"`
	Vars     json.RawMessage `json:"vars,omitempty"`
	Secrets  []string        `json:"requiredSensitiveVars,omitempty"`
	KV       []bound         `json:"kvBindings,omitempty"`
	SQLite   []bound         `json:"sqliteBindings,omitempty"`
	Buckets  []bound         `json:"bucketBindings,omitempty"`
	Queues   []bound         `json:"queueProducerBindings,omitempty"`
	Services []bound         `json:"serviceBindings,omitempty"`
	Assets   *assetsSpec     `json:"assets,omitempty"`
}

func (d *deployer) versionSpec(uid func(string) string) versionSpec {
	m := d.manifest
	spec := versionSpec{Worker: ref{uid(d.names.worker)}, Handlers: append([]string{}, m.Handlers...), Vars: m.Vars}
	if d.code != nil {
		spec.Bundle = &ref{uid(d.names.bundle)}
	}
	if d.assets != nil {
		spec.Assets = &assetsSpec{Bundle: ref{uid(d.names.assets)}, First: m.Assets.RunWorkerFirst, NotFound: m.Assets.NotFound}
	}
	for _, s := range m.Secrets {
		spec.Secrets = append(spec.Secrets, s.Name)
	}
	lists := map[string]*[]bound{manifest.KV: &spec.KV, manifest.SQLite: &spec.SQLite, manifest.Bucket: &spec.Buckets,
		manifest.Queue: &spec.Queues, manifest.Service: &spec.Services}
	for _, b := range m.Bindings {
		list := lists[b.Kind]
		*list = append(*list, bound{b.Name, ref{uid(b.Target)}})
	}
	return spec
}

// versionStep makes the version, which seals the secrets' values.
func (d *deployer) versionStep() *step {
	uses := []string{d.names.worker}
	if d.code != nil {
		uses = append(uses, d.names.bundle)
	}
	if d.assets != nil {
		uses = append(uses, d.names.assets)
	}
	for _, b := range d.manifest.Bindings {
		uses = append(uses, b.Target)
	}
	return &step{form: form.WorkerVersionURL, name: d.names.version, line: d.manifest.NameLine, uses: uses,
		want: func(uid func(string) string) *want {
			spec := d.versionSpec(uid)
			return &want{spec: spec, private: d.values, note: describeVersion(spec)}
		},
		made: func(r *client.Resource) error {
			var observed struct{ Ready bool }
			if json.Unmarshal(r.Observed, &observed) != nil || !observed.Ready {
				return failed("read", r.Name, fault.Newf(fault.Conflict, "deploy.version", "the version is not ready: %s", conditions(r)))
			}
			d.report.Version = r.UID
			return nil
		}}
}

func conditions(r *client.Resource) string {
	if len(r.HostConditions) == 0 {
		return "the node does not say why"
	}
	return string(r.HostConditions)
}

func describeVersion(spec versionSpec) string {
	parts := append([]string{}, spec.Handlers...)
	if spec.Assets != nil {
		parts = append(parts, "assets")
	}
	if n := len(spec.KV) + len(spec.SQLite) + len(spec.Buckets) + len(spec.Queues) + len(spec.Services); n > 0 {
		parts = append(parts, count(n, "binding"))
	}
	if n := len(spec.Secrets); n > 0 {
		parts = append(parts, count(n, "secret"))
	}
	if len(parts) == 0 {
		return "no handlers"
	}
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

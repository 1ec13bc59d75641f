package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/control/form"
	"edged/control/jsonraw"
	"edged/internal/fault"
)

// want is one Resource as it should be.
type want struct {
	form, name string
	spec       any
	// same reports whether a Resource at rest is already right. nil compares specs.
	same func(*client.Resource) bool
	// mutable says that another spec is a change to make; otherwise the Resource is another one of that name.
	mutable bool
	content *FileSet // what has to be uploaded before the node can verify it, nil for most
	note    string
}

func (w *want) raw() (json.RawMessage, error) {
	b, err := json.Marshal(w.spec)
	return b, fault.Wrap(fault.Internal, "deploy.spec", err)
}

// right reports whether a Resource at rest needs nothing.
func (w *want) right(r *client.Resource) bool {
	if w.same != nil {
		return w.same(r)
	}
	return w.equalSpec(r)
}

func (w *want) equalSpec(r *client.Resource) bool {
	raw, err := w.raw()
	if err != nil {
		return false
	}
	same, err := jsonraw.Equal(raw, r.Spec)
	return err == nil && same
}

// names are those of node-surface §6: NAME.ROLE, and NAME.ROLE.DIGEST12 for what is made anew when it changes.
type names struct {
	worker, bundle, assets, version, deployment, endpoint string
}

func nameAll(m *manifest.Manifest, code, assets *FileSet) (names, error) {
	n := names{worker: m.Name, deployment: m.Name + ".deployment", endpoint: m.Name + ".endpoint"}
	if code != nil {
		n.bundle = digestName(m.Name, "bundle", code.Digest())
	}
	if assets != nil {
		n.assets = digestName(m.Name, "assets", assets.Digest())
	}
	digest, err := versionDigest(m, code, assets)
	n.version = digestName(m.Name, "version", digest)
	return n, err
}

func digestName(worker, role, digest string) string {
	return worker + "." + role + "." + digest[:digestDigits]
}

func domainName(worker, hostname string) string {
	return digestName(worker, "domain", digestOf([]byte(hostname)))
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// versionDigest identifies what a version consists of by content, so that it does not depend on any UID.
func versionDigest(m *manifest.Manifest, code, assets *FileSet) (string, error) {
	doc := struct {
		Bundle   string
		Handlers []string
		Vars     json.RawMessage
		Assets   string
		First    bool
		NotFound string
	}{Handlers: m.Handlers, Vars: m.Vars}
	if code != nil {
		doc.Bundle = code.Digest()
	}
	if assets != nil {
		doc.Assets, doc.First, doc.NotFound = assets.Digest(), m.Assets.RunWorkerFirst, m.Assets.NotFound
	}
	b, err := json.Marshal(doc)
	return digestOf(b), fault.Wrap(fault.Internal, "deploy.version", err)
}

type assetsSpec struct {
	Bundle   ref    `json:"bundle"`
	First    bool   `json:"runWorkerFirst"`
	NotFound string `json:"notFoundHandling"`
}

type versionSpec struct {
	Worker   ref             `json:"worker"`
	Bundle   *ref            `json:"bundle,omitempty"`
	Handlers []string        `json:"handlers"`
	Vars     json.RawMessage `json:"vars,omitempty"`
	Assets   *assetsSpec     `json:"assets,omitempty"`
}

func (d *deployer) versionSpec(worker, bundle, assets string) versionSpec {
	m := d.manifest
	spec := versionSpec{Worker: ref{worker}, Handlers: append([]string{}, m.Handlers...), Vars: m.Vars}
	if bundle != "" {
		spec.Bundle = &ref{bundle}
	}
	if assets != "" {
		spec.Assets = &assetsSpec{Bundle: ref{assets}, First: m.Assets.RunWorkerFirst, NotFound: m.Assets.NotFound}
	}
	return spec
}

// artifact is the want of a bundle. The spec says where this node would hold the bytes; a Resource that has the same
// content from elsewhere is as good.
func (d *deployer) artifact(formURL, name string, set *FileSet) (*want, error) {
	doc, err := set.manifest(d.opt.Client)
	if err != nil {
		return nil, err
	}
	return &want{
		form: formURL, name: name, content: set,
		spec: map[string]client.Artifact{"artifact": d.opt.Client.ArtifactOf(doc)},
		same: func(r *client.Resource) bool { return set.same(r.Observed) },
		note: set.describe(),
	}, nil
}

type attachmentSpec struct {
	Worker   ref    `json:"worker"`
	Hostname string `json:"hostname,omitempty"`
}

// attachment reads what an endpoint or a domain says of itself; the zero value if it does not.
func attachment(r *client.Resource) (s attachmentSpec) {
	_ = json.Unmarshal(r.Spec, &s)
	return s
}

// kinds are the short names of the Forms that this package makes.
var kinds = func() map[string]string {
	short := map[string]string{}
	for url, d := range form.Builtin() {
		short[url] = d.Kind
	}
	return short
}()

// Kind returns the short name of a Form, like WorkerVersion; of one that this program does not know the URL itself.
func Kind(formURL string) string {
	if k, ok := kinds[formURL]; ok {
		return k
	}
	return formURL
}

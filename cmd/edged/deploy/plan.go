package deploy

import (
	"encoding/json"

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
	content *FileSet          // what has to be uploaded before the node can verify it, nil for most
	private map[string]string // values that a create seals; never shown
	note    string
}

// step is one Resource in the order in which all are made. Its spec is known once those that it refers to are there.
type step struct {
	form, name string
	line       int      // of the manifest
	uses       []string // names of the Resources that its spec refers to
	after      []string // names of steps that change what the node thinks of this one
	want       func(uid func(name string) string) *want
	made       func(*client.Resource) error // looks at it once it is right; nil for most
	remove     *client.Resource             // what has to go; such a step wants nothing
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

// artifact is the want of a bundle. The spec says where this node would hold the bytes; a Resource that has the same
// content from elsewhere is as good.
func (d *deployer) artifact(set *FileSet) (*want, error) {
	doc, err := set.manifest(d.opt.Client)
	if err != nil {
		return nil, err
	}
	return &want{
		content: set,
		spec:    map[string]client.Artifact{"artifact": d.opt.Client.ArtifactOf(doc)},
		same:    func(r *client.Resource) bool { return set.same(r.Observed) },
		note:    set.describe(),
	}, nil
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

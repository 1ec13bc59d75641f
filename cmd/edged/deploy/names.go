package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"edged/cmd/edged/manifest"
	"edged/internal/fault"
)

// names are those of node-surface §6: NAME.ROLE, and NAME.ROLE.DIGEST12 for what is made anew when it changes.
type names struct {
	worker, bundle, assets, version, deployment, endpoint string
	content                                               string // digest of what a version consists of
}

func nameAll(m *manifest.Manifest, code, assets *FileSet) (n names, err error) {
	n = names{worker: m.Name, deployment: m.Name + ".deployment", endpoint: m.Name + ".endpoint"}
	if code != nil {
		n.bundle = digestName(m.Name, "bundle", code.Digest())
	}
	if assets != nil {
		n.assets = digestName(m.Name, "assets", assets.Digest())
	}
	n.content, err = versionDigest(m, code, assets)
	n.version = n.rotation(0)
	return n, err
}

// rotation names the version with the nth set of values of the same secrets, the first of them 0.
func (n *names) rotation(i int) string {
	digest := n.content
	if i > 0 {
		digest = digestOf(fmt.Appendf(nil, "%s rotation %d", n.content, i))
	}
	return digestName(n.worker, "version", digest)
}

func digestName(worker, role, digest string) string {
	return worker + "." + role + "." + digest[:digestDigits]
}

// textName is the name of what is made for one text, like a host name.
func textName(worker, role, text string) string {
	return digestName(worker, role, digestOf([]byte(text)))
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// versionDigest identifies what a version consists of by content and by names, so that it does not depend on any UID.
func versionDigest(m *manifest.Manifest, code, assets *FileSet) (string, error) {
	doc := struct {
		Bundle   string
		Handlers []string
		Vars     json.RawMessage
		Assets   string
		First    bool
		NotFound string
		Secrets  []string   `json:",omitempty"`
		Bindings [][]string `json:",omitempty"`
	}{Handlers: m.Handlers, Vars: m.Vars}
	if code != nil {
		doc.Bundle = code.Digest()
	}
	if assets != nil {
		doc.Assets, doc.First, doc.NotFound = assets.Digest(), m.Assets.RunWorkerFirst, m.Assets.NotFound
	}
	for _, s := range m.Secrets {
		doc.Secrets = append(doc.Secrets, s.Name)
	}
	for _, b := range m.Bindings {
		doc.Bindings = append(doc.Bindings, []string{b.Name, b.Kind, b.BucketForm, b.Target})
	}
	b, err := json.Marshal(doc)
	return digestOf(b), fault.Wrap(fault.Internal, "deploy.version", err)
}

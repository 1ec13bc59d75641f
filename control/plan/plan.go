package plan

import "encoding/json"

// Plan is what one node should serve. It is immutable once published: whoever receives it may keep and share it, and
// must not change it. All slices are in ascending order of UID or host.
type Plan struct {
	Format   int       `json:"format"` // FormatVersion
	Index    uint64    `json:"index"`  // index of the last command it contains
	Hosts    []Host    `json:"hosts"`
	Workers  []Worker  `json:"workers"`
	Versions []Version `json:"versions"` // every version that may be run, weighted or not
}

// FormatVersion is the format of the plans that this program writes; it refuses to read a newer one.
const FormatVersion = 1

// Host is one routed name.
type Host struct {
	Name     string `json:"name"`     // canonical: lower-case, no trailing dot, no port
	Worker   string `json:"worker"`   // worker UID
	Resource string `json:"resource"` // UID of the endpoint or domain that routes it
	Tenant   string `json:"tenant"`
	Endpoint bool   `json:"endpoint,omitempty"` // a host-assigned address, not a custom domain
}

// Worker is one worker and what it serves.
type Worker struct {
	UID        string   `json:"uid"`
	Tenant     string   `json:"tenant"`
	Space      string   `json:"space"`
	Name       string   `json:"name"`
	Deployment string   `json:"deployment,omitempty"` // UID of the active deployment, "" if there is none
	Weights    []Weight `json:"weights,omitempty"`    // basis points, sum 10000 with a deployment, empty without
}

// Weight is a share of new invocations in basis points.
type Weight struct {
	Version string `json:"version"`
	Weight  int    `json:"weight"`
}

// Version is one immutable version of a worker.
type Version struct {
	UID      string          `json:"uid"`
	Worker   string          `json:"worker"`
	Tenant   string          `json:"tenant"`
	Ready    bool            `json:"ready"`
	Handlers []string        `json:"handlers,omitempty"`
	Vars     json.RawMessage `json:"vars,omitempty"`   // a JSON object, nil if there are none
	Bundle   *Bundle         `json:"bundle,omitempty"` // nil for a static-only version
	Assets   *Assets         `json:"assets,omitempty"`
	Sealed   string          `json:"sealed,omitempty"` // identity of the facade set that the version was made for
	// Secrets are the sealed values of sensitive variables by name; control.Secrets opens them. nil if there are none.
	Secrets map[string][]byte `json:"secrets,omitempty"`
}

// Bundle is the verified module graph of a version. Shared between the versions that use it.
type Bundle struct {
	Resource   string `json:"resource"`
	SHA256     string `json:"sha256"` // of the manifest, lower-case hex
	Entrypoint string `json:"entrypoint"`
	Files      []File `json:"files"`
}

// Assets is the verified asset set of a version and how it is delivered.
type Assets struct {
	Resource       string `json:"resource"`
	SHA256         string `json:"sha256"`
	Files          []File `json:"files"`
	RunWorkerFirst bool   `json:"runWorkerFirst,omitempty"`
	SPA            bool   `json:"spa,omitempty"` // notFoundHandling is single_page_application
}

// File is one file of a bundle; its bytes are found by their digest.
type File struct {
	Path      string `json:"path"`
	MediaType string `json:"mediaType"`
	SHA256    string `json:"sha256"` // lower-case hex
	Size      int64  `json:"size"`
}

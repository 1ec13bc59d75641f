package plan

import (
	"encoding/json"

	"edged/control/form"
)

// Plan is what one node should serve. It belongs to one owner, whose Apply changes its maps; the parts in them never change and
// may be shared.
type Plan struct {
	Index     uint64               // index of the last command it contains
	Hosts     map[string]*Host     // by canonical name
	Workers   map[string]*Worker   // by UID, as all that follow
	Versions  map[string]*Version  // every version that may be run, weighted or not
	Bundles   map[string]*Bundle   // every verified artifact
	Crons     map[string]*Cron     //
	Consumers map[string]*Consumer //
	Data      map[string]*Data     // every store that is there
	Members   map[string]*Member   // of the fleet, by ID; none on a node alone
}

// New returns an empty plan.
func New() *Plan {
	return &Plan{Hosts: map[string]*Host{}, Workers: map[string]*Worker{}, Versions: map[string]*Version{}, Bundles: map[string]*Bundle{},
		Crons: map[string]*Cron{}, Consumers: map[string]*Consumer{}, Data: map[string]*Data{}, Members: map[string]*Member{}}
}

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

// Version is one immutable version of a worker. Only Ready, and the boxes of Secrets, may differ between two of one UID.
type Version struct {
	UID       string          `json:"uid"`
	Worker    string          `json:"worker"`
	Tenant    string          `json:"tenant"`
	Ready     bool            `json:"ready"` // otherwise nothing new may run on it
	Handlers  []string        `json:"handlers,omitempty"`
	Vars      json.RawMessage `json:"vars,omitempty"`      // a JSON object, nil if there are none
	Sensitive []string        `json:"sensitive,omitempty"` // names of its sensitive variables, ascending
	Bindings  []Binding       `json:"bindings,omitempty"`  // in spec order
	Bundle    string          `json:"bundle,omitempty"`    // UID of its module graph; "" for a static-only version
	Assets    *Assets         `json:"assets,omitempty"`
	Sealed    string          `json:"sealed,omitempty"` // identity of the facade set that the version was made for
	// Secrets are the sealed values of sensitive variables by name; control.Secrets opens them. nil if there are none.
	Secrets map[string][]byte `json:"secrets,omitempty"`
}

// Binding is one named capability of a version, as it was sealed. The settings of a store are those of its Data, whose absence
// means that the store cannot be used now.
type Binding struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`   // kv, sql, objects, queue, service, actor, workflow or container
	Target string `json:"target"` // UID of the Resource, of a worker for a service
	Form   string `json:"form"`   // exact Form URL that the target had: it selects the facade (worker-version §9)
}

// Bundle is a verified file set.
type Bundle struct {
	Resource   string `json:"resource"`
	SHA256     string `json:"sha256"` // of the manifest, lower-case hex
	Entrypoint string `json:"entrypoint,omitempty"`
	Files      []File `json:"files"`
}

// Assets is how a version delivers its asset set.
type Assets struct {
	Bundle         string `json:"bundle"` // UID
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

// Cron is one schedule of a worker.
type Cron struct {
	UID        string `json:"uid"`
	Tenant     string `json:"tenant"`
	Space      string `json:"space"`
	Name       string `json:"name"`
	Worker     string `json:"worker"`
	Cron       string `json:"cron"`       // as written; internal/cronexpr reads it
	Generation uint64 `json:"generation"` // moves with every update, also one that keeps the expression
	Since      int64  `json:"since"`      // when this generation was settled, Unix ms: it governs minutes that begin from then on
}

// Consumer takes messages from a queue to a worker.
type Consumer struct {
	UID                    string `json:"uid"`
	Tenant                 string `json:"tenant"`
	Space                  string `json:"space"`
	Name                   string `json:"name"`
	Worker                 string `json:"worker"`
	Queue                  string `json:"queue"` // UID
	MaxBatchSize           int    `json:"maxBatchSize"`
	MaxBatchTimeoutSeconds int    `json:"maxBatchTimeoutSeconds"`
	MaxConcurrency         int    `json:"maxConcurrency"`
	MaxRetries             int    `json:"maxRetries"`
	RetryDelaySeconds      int    `json:"retryDelaySeconds"`
	DeadLetterQueue        string `json:"deadLetterQueue,omitempty"` // UID, "" drops
	Generation             uint64 `json:"generation"`
	Home                   string `json:"home,omitempty"` // of its queue: the node that delivers
}

// Data is the store of one data Resource.
type Data struct {
	UID    string      `json:"uid"`
	Kind   string      `json:"kind"` // kv, sql, objects or queue
	Form   string      `json:"form"` // exact Form URL
	Tenant string      `json:"tenant"`
	Space  string      `json:"space"`
	Name   string      `json:"name"` // of a queue: what a batch is told as its queue
	Queue  *form.Queue `json:"queue,omitempty"`
	Home   string      `json:"home,omitempty"` // ID of the node that has the store; "" is every node for kv, this node on one alone
}

// Member is one node of the fleet. Nothing in it is secret.
type Member struct {
	ID       string            `json:"id"` // node.id of its data directory
	Name     string            `json:"name"`
	Control  bool              `json:"control,omitempty"` // has the role control: a voter
	Edge     bool              `json:"edge,omitempty"`    // has the role edge: serves traffic
	Labels   map[string]string `json:"labels,omitempty"`
	Peer     string            `json:"peer"`              // host:port of its node-to-node listener
	Gossip   string            `json:"gossip,omitempty"`  // host:port, "" if it takes no part
	Origin   string            `json:"origin,omitempty"`  // of its control listener, like https://host:port; "" until it told
	KVEpoch  uint64            `json:"kvEpoch,omitempty"` // of its KV store
	Serial   string            `json:"serial"`            // of its newest certificate; older ones are good too
	JoinedAt int64             `json:"joinedAt"`          // Unix ms
	Draining bool              `json:"draining,omitempty"`
}

package form

import (
	"crypto/sha256"
	"encoding/json"

	"edged/control/jsonraw"
	"edged/control/rules"
	"edged/internal/cronexpr"
)

// Use says what a reference is for; the reverse index of pins is ordered by it. Append only.
type Use uint8

// The uses.
const (
	UseOwner      Use = iota + 1 // the worker it belongs to or is attached to
	UseBundle                    // code
	UseAssets                    // asset bytes
	UseService                   // a worker that it calls
	UseData                      // any other binding target
	UseWeight                    // a version that a deployment weights
	UseQueue                     // the queue that a consumer takes messages from
	UseDeadLetter                // the queue that gets what a consumer gives up
	UseDatabase                  // the database that migrations are applied to
	UseMigrations                // the migrations that are applied
)

// Ref is one reference in a spec.
type Ref struct {
	Pointer string
	UID     string
	Accept  []string // Form identities that the target may have; shared, not to be changed
	Use     Use
	Binding string // name of the binding, "" for other references
	Kind    string // of a binding: its list's, like "kv"
}

// Artifact is where an artifact Form's manifest comes from.
type Artifact struct {
	URL, SHA256 string
}

// Queue is how a queue keeps messages (queue §1).
type Queue struct {
	RetentionSeconds int `json:"retentionSeconds"`
	DelaySeconds     int `json:"delaySeconds"`
}

// Consumer is how a consumer takes messages from a queue (attachments §5).
type Consumer struct {
	Queue                  string `json:"queue"` // UID
	MaxBatchSize           int    `json:"maxBatchSize"`
	MaxBatchTimeoutSeconds int    `json:"maxBatchTimeoutSeconds"`
	MaxConcurrency         int    `json:"maxConcurrency"`
	MaxRetries             int    `json:"maxRetries"`
	RetryDelaySeconds      int    `json:"retryDelaySeconds"`
	DeadLetterQueue        string `json:"deadLetterQueue,omitempty"` // UID, "" drops
}

// Spec is what a spec says after parsing. It is immutable.
type Spec struct {
	Echo   json.RawMessage // as submitted, or canonical where the Form says so
	Digest [32]byte        // equal specs have equal digests
	Refs   []Ref           // in spec order
	Names  []rules.EnvName // what a version puts into env

	Worker         string   // UID of the owner worker, "" if the Form has none
	Handlers       []string // in the order fetch, scheduled, queue
	Vars           json.RawMessage
	Sensitive      []string // requiredSensitiveVars, ascending
	Bundle         string
	Assets         string
	RunWorkerFirst bool
	SPA            bool
	Weights        []rules.Weight
	Hostname       string // canonical
	Artifact       Artifact
	Cron           cronexpr.Expr // of a cron trigger
	Consumer       Consumer      // of a queue consumer
	Queue          Queue         // of a queue
	Database       string        // of a migration application
	MigrationSet   string        // of a migration application

	driver *Driver
	fields map[string][32]byte
}

func (s *Spec) fieldDigest(name string) [32]byte { return s.fields[name] }

// Parse reads a spec by the driver's field table. raw has passed the raw JSON checks. The refusal names the pointer.
func (d *Driver) Parse(raw json.RawMessage) (*Spec, *rules.Verdict) {
	tree, err := decode(raw)
	if err != nil {
		return nil, invalid("", "spec is not JSON")
	}
	obj, ok := tree.(map[string]any)
	if !ok {
		return nil, invalid("", "spec must be an object")
	}
	s := &Spec{Echo: raw, driver: d, fields: make(map[string][32]byte, len(d.Fields))}
	if v := closed("", obj, d.Fields); v != nil {
		return nil, v
	}
	whole := sha256.New()
	for i := range d.Fields {
		f := &d.Fields[i]
		val, present := obj[f.Name]
		if !present {
			if f.Required {
				return nil, invalid("/"+f.Name, "/%s is required", f.Name)
			}
			if f.Default == nil {
				continue
			}
			val = f.Default
		}
		norm, v := f.Read(s, "/"+f.Name, val)
		if v != nil {
			return nil, v
		}
		sum, ok := digest(norm)
		if !ok {
			return nil, invalid("/"+f.Name, "/%s holds a number out of range", f.Name)
		}
		s.fields[f.Name] = sum
		whole.Write([]byte{byte(i)}) // an absent field differs from every present one
		whole.Write(sum[:])
	}
	whole.Sum(s.Digest[:0])
	if d.Check != nil {
		if v := d.Check(s); v != nil {
			return nil, v
		}
	}
	return s, nil
}

// digest fingerprints a canonical tree: members unordered, numbers mathematically, strings by scalar sequence. ok is
// false for a number whose exponent no program could ever use.
func digest(tree any) (sum [32]byte, ok bool) {
	raw, err := json.Marshal(tree)
	if err != nil {
		return sum, false
	}
	sum, err = jsonraw.Fingerprint(raw)
	return sum, err == nil
}

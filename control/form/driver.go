package form

import "edged/control/rules"

// Action is what a mutation does to a Resource.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Driver is everything that is particular to one Form. It is immutable.
type Driver struct {
	URL  string     // the identity, compared byte for byte
	Kind string     // short name for sentences
	Role rules.Role // its part in an aggregate
	Need rules.Need // of an attachment: what it asks of every weighted version
	Gate string     // of an attachment: the id of its row in rule 3

	Scope string // names are unique in a tenant, a Space and a scope; "" in v2, where all Forms share one

	Private bool    // takes private inputs
	Assigns bool    // a create is given an address
	Proof   bool    // needs control of the host name that the spec claims
	Fields  []Field // the closed top level of spec, in spec order

	// Check judges what fields cannot say alone. nil means nothing.
	Check func(*Spec) *rules.Verdict
	// Pure judges the rules that the spec shows by itself, after immutability and before name and references. nil means
	// nothing.
	Pure func(*Spec) *rules.Verdict
	// Frozen reports the pointer of the first part of the spec that an update may not change and does, "" if none.
	Frozen func(old, new *Spec) string
	// Outside reports whether the action has effects outside the control state, so that a runner must do it.
	Outside func(Action) bool
	// Claims gives the exclusive values that a Resource of this spec holds. nil means none.
	Claims func(*Spec) []rules.Claim
	// Observe renders observed and the cause for which the Form's ready signal is not true (nil when it is, or when there
	// is nothing to say).
	Observe func(*Observation) (any, *rules.Cause)
	// Output renders output; nil means {}.
	Output func(spec *Spec, address string) any
	// ArtifactKind is the manifest kind of an artifact Form, "" for others.
	ArtifactKind string
	// Store is the kind of store behind a data Form, "" for others.
	Store string
}

// Capability is what a node must have to offer the Form: a kind of store, or Migrations. "" is nothing.
func (d *Driver) Capability() string {
	if d.Role == rules.Migration {
		return Migrations
	}
	return d.Store
}

// Migrations is the capability of a node that can bring a database to the state of a migration set.
const Migrations = "migrations"

// Index is the verified content of an artifact Resource.
type Index struct {
	SHA256     string `json:"sha256"` // of the manifest, lower-case hex
	Entrypoint string `json:"entrypoint,omitempty"`
	Files      []File `json:"files"` // in manifest order
}

// File is one verified file.
type File struct {
	Path      string `json:"path"`
	SHA256    string `json:"sha256"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
}

// Has reports whether a file of exactly this path exists.
func (x *Index) Has(path string) bool {
	for i := range x.Files {
		if x.Files[i].Path == path {
			return true
		}
	}
	return false
}

// Table maps a Form URL to its driver. It is not changed after it was made.
type Table map[string]*Driver

// NewTable makes a table of the drivers given.
func NewTable(drivers ...*Driver) Table {
	t := make(Table, len(drivers))
	for _, d := range drivers {
		t[d.URL] = d
	}
	return t
}

// The Form URLs of the implementation set that anything here speaks of.
const (
	prefix = "https://edge.forms.takoform.com/forms/"

	ModuleWorkerURL      = prefix + "ModuleWorker/0.3.0/"
	WorkerBundleURL      = prefix + "WorkerBundle/0.2.0/"
	StaticAssetBundleURL = prefix + "StaticAssetBundle/0.2.0/"
	WorkerVersionURL     = prefix + "WorkerVersion/0.7.0/"
	WorkerDeploymentURL  = prefix + "WorkerDeployment/0.6.0/"
	WorkerEndpointURL    = prefix + "WorkerEndpoint/0.3.0/"
	CustomDomainURL      = prefix + "WorkerCustomDomain/0.3.0/"

	CronTriggerURL      = prefix + "WorkerCronTrigger/0.3.0/"
	QueueConsumerURL    = prefix + "QueueConsumer/0.3.0/"
	KVNamespaceURL      = prefix + "EdgeKVNamespace/0.2.0/"
	SQLiteDatabaseURL   = prefix + "SQLiteDatabase/0.2.0/"
	SQLiteMigrationsURL = prefix + "SQLiteMigrationSet/0.2.0/"
	MigrationURL        = prefix + "SQLiteMigrationApplication/0.2.0/"
	ObjectBucket2URL    = prefix + "ObjectBucket/0.2.0/"
	ObjectBucket3URL    = prefix + "ObjectBucket/0.3.0/"
	QueueURL            = prefix + "AtLeastOnceQueue/0.2.0/"

	actorURL    = prefix + "ActorNamespace/0.3.0/"
	workflowURL = prefix + "DurableWorkflow/0.3.0/"
	containURL  = prefix + "Container/0.1.0/"
)

// Builtin returns the table of the Forms that this program implements.
func Builtin() Table {
	return NewTable(moduleWorker(), workerBundle(), staticAssets(), workerVersion(), workerDeployment(), workerEndpoint(), customDomain(),
		cronTrigger(), queueConsumer(), kvNamespace(), sqliteDatabase(), migrationSet(), migrationApplication(),
		objectBucket(ObjectBucket2URL), objectBucket(ObjectBucket3URL), atLeastOnceQueue())
}

// Offered returns the drivers whose capability, if they need one, is among those given.
func (t Table) Offered(has func(capability string) bool) Table {
	out := make(Table, len(t))
	for url, d := range t {
		if d.Capability() == "" || has(d.Capability()) {
			out[url] = d
		}
	}
	return out
}

// Observation is what a rendering may look at. Everything in it is a function of stored specs, pins and settled states.
type Observation struct {
	Spec       *Spec
	Self       *rules.Facts
	Aggregate  *rules.Aggregate // of the owner worker; nil where there is none
	Index      *Index           // of an artifact, nil until verified
	Resolved   bool             // every pin finds the target that was pinned
	Bundle     bool             // of a version: its bundle is verified and kept
	Pins       []rules.PinState // of an attachment, a deployment or a migration: what became of its targets
	Ledger     []Entry          // of a migration: what is applied to its database, as it was last verified
	Target     []Entry          // of a migration: the files of its set
	Lost       bool             // of a data Resource: its store is known to be gone
	SettledAt  int64            // when its last create or update succeeded, Unix ms
	Address    string           // assigned host name
	RouteOwner bool             // of a domain: no older claim of another tenant has the route
}

func frozenAll(old, new *Spec) string {
	if old.Digest == new.Digest {
		return ""
	}
	for _, f := range old.driver.Fields {
		if old.fieldDigest(f.Name) != new.fieldDigest(f.Name) {
			return "/" + f.Name
		}
	}
	return "/"
}

func frozenField(name string) func(old, new *Spec) string {
	return func(old, new *Spec) string {
		if old.fieldDigest(name) != new.fieldDigest(name) {
			return "/" + name
		}
		return ""
	}
}

// inside is Outside of a Form without effects beyond the control state.
func inside(Action) bool { return false }

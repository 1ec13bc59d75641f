package state

import (
	"encoding/json"

	"edged/control/form"
	"edged/control/rules"
)

// MaxCounter is the largest integer of the API's documents; counters stop there and never wrap.
const MaxCounter = 1<<53 - 1

// Phase is where a Resource's mutations stand. Idle is not readiness.
type Phase string

// The phases.
const (
	Pending  Phase = "pending"
	Idle     Phase = "idle"
	Deleting Phase = "deleting"
	Errored  Phase = "error"
)

// Resource is the durable record of one managed thing. It is immutable once stored.
type Resource struct {
	UID       string `json:"uid"`
	Tenant    string `json:"tenant"`
	Space     string `json:"space"`
	Scope     string `json:"scope,omitempty"` // empty in v2
	Name      string `json:"name"`
	Form      string `json:"form"`
	Principal string `json:"principal"` // who created it
	Born      uint64 `json:"born"`      // number of its create among all: the age of its claims

	Generation         uint64          `json:"generation"`
	ObservedGeneration uint64          `json:"observedGeneration"`
	ObservedAt         int64           `json:"observedAt,omitempty"` // Unix ms, 0 before the first verification
	Phase              Phase           `json:"phase"`
	Spec               json.RawMessage `json:"spec"`
	Observed           json.RawMessage `json:"observed"`
	Output             json.RawMessage `json:"output"`
	LastOperation      string          `json:"lastOperation"`
	Cause              *rules.Cause    `json:"cause,omitempty"` // why the ready signal is not true
	CauseSince         int64           `json:"causeSince,omitempty"`

	Revision uint64 `json:"revision"` // moves exactly when the served representation changes
	Digest   []byte `json:"digest"`   // of that representation

	Settled bool           `json:"settled,omitempty"` // its create succeeded, or a later update repaired it
	Since   int64          `json:"since,omitempty"`   // when its last create or update succeeded, Unix ms
	Lost    bool           `json:"lost,omitempty"`    // of a data Resource: its store is known to be gone
	Home    string         `json:"home,omitempty"`    // of a data Resource whose store is at one node: that node; "" is the founding one
	Address string         `json:"address,omitempty"` // assigned host name
	Sealed  string         `json:"sealed,omitempty"`  // of a version: identity of the facade set it was made for
	Exports []string       `json:"exports,omitempty"` // of a version: handlers that its main module exports
	Index   *form.Index    `json:"index,omitempty"`   // of an artifact: verified and kept
	Active  []rules.Weight `json:"active,omitempty"`  // of a deployment: the distribution in force
	Target  []form.Entry   `json:"target,omitempty"`  // of a migration: its set, once its database's ledger was verified
	Pins    []Pin          `json:"pins,omitempty"`
	Secrets *Secrets       `json:"secrets,omitempty"` // private inputs, sealed; nil if there are none

	spec   *form.Spec
	driver *form.Driver
}

// Parsed returns what the spec says. Shared and immutable.
func (r *Resource) Parsed() *form.Spec { return r.spec }

// Driver returns the driver of the Resource's Form.
func (r *Resource) Driver() *form.Driver { return r.driver }

// Pin is one stored reference: source and pointer are its place, the rest is what it was resolved to.
type Pin struct {
	Source  string   `json:"source,omitempty"`
	Pointer string   `json:"pointer"`
	Target  string   `json:"target"`
	Form    string   `json:"form"` // Form identity of the target
	Use     form.Use `json:"use"`
}

// Status is where an Operation stands.
type Status string

// The statuses.
const (
	Queued      Status = "queued"
	Running     Status = "running"
	Waiting     Status = "waiting_input"
	Reconciling Status = "reconciling"
	Succeeded   Status = "succeeded"
	Failed      Status = "failed"
)

// Terminal reports whether nothing follows.
func (s Status) Terminal() bool { return s == Succeeded || s == Failed }

// Effect is what is known of the managed object.
type Effect string

// The effects.
const (
	EffectNone     Effect = "none"
	EffectUnknown  Effect = "unknown"
	EffectPartial  Effect = "partial"
	EffectComplete Effect = "complete"
)

// Operation is the durable identity and progress of one accepted mutation. It is immutable once stored.
type Operation struct {
	ID          string      `json:"id"`
	Tenant      string      `json:"tenant"`
	Space       string      `json:"space"`
	Principal   string      `json:"principal"`
	Resource    string      `json:"resource"`
	Action      form.Action `json:"action"`
	Generation  uint64      `json:"generation"`
	Status      Status      `json:"status"`
	Effect      Effect      `json:"effect"`
	CreatedAt   int64       `json:"createdAt"` // Unix ms
	UpdatedAt   int64       `json:"updatedAt"`
	RetainUntil int64       `json:"retainUntil"`
	Window      int64       `json:"window"` // replay window promised at acceptance, ms
	Seed        rules.Seed  `json:"seed,omitempty"`
	Message     string      `json:"message,omitempty"`
	Reason      InputReason `json:"reason,omitempty"`  // why it waits for input
	Key         string      `json:"key"`               // of its idempotency record
	Command     *Command    `json:"command,omitempty"` // until terminal: evaluated again at commit
}

// replay is an idempotency record: what was asked under a key, and the Operation that answers it.
type replay struct {
	Fingerprint []byte `json:"fingerprint"` // of everything but the values of private inputs
	Operation   string `json:"operation"`
	Mark        []byte `json:"mark,omitempty"` // of the private inputs; nil if there were none
	Marker      string `json:"marker,omitempty"`
}

// tombstone remembers a deleted UID while its delete Operation is retained.
type tombstone struct {
	Tenant    string `json:"tenant"`
	Space     string `json:"space"`
	Operation string `json:"operation"`
}

// Role orders what a token may do; each includes the ones before it.
type Role string

// The roles.
const (
	Reader   Role = "reader"
	Editor   Role = "editor"
	Operator Role = "operator"
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == Reader || r == Editor || r == Operator }

// Token is one credential of a principal; its secret is not kept.
type Token struct {
	ID        string   `json:"id"`
	Hash      []byte   `json:"hash"` // SHA-256 of the secret
	Tenant    string   `json:"tenant"`
	Principal string   `json:"principal"`
	Role      Role     `json:"role"`
	Spaces    []string `json:"spaces,omitempty"` // empty means every Space of the tenant
	CreatedAt int64    `json:"createdAt"`
	UsedAt    int64    `json:"usedAt,omitempty"` // Unix ms, coarse; 0 before the first use was noted
}

// Actor is who asks: derived from the credential alone.
type Actor struct {
	Token     string   `json:"token,omitempty"` // id of the credential
	Tenant    string   `json:"tenant"`
	Principal string   `json:"principal"`
	Role      Role     `json:"role"`
	Spaces    []string `json:"spaces,omitempty"`
}

package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"edged/control/form"
	"edged/control/rules"
)

// Kind is what a command does.
type Kind string

// The kinds. The first three are mutations by a caller, the rest are the node's own.
const (
	CreateResource Kind = "create"
	UpdateResource Kind = "update"
	DeleteResource Kind = "delete"
	StartOperation Kind = "start"   // queued or reconciling to running
	DoubtOperation Kind = "doubt"   // running to reconciling: a restart or an error, which it may tell, left the outcome open
	EndOperation   Kind = "end"     // to succeeded or failed
	Sweep          Kind = "sweep"   // retention
	AddToken       Kind = "token"   // idempotent by token id
	RemoveToken    Kind = "revoke"  //
	UseTokens      Kind = "used"    // when tokens were last used
	Found          Kind = "founded" // secrets of a new control state, written once

	AwaitInput Kind = "await"     // queued to waiting_input: the transfer values are gone
	Replenish  Kind = "replenish" // by a caller: waiting_input to queued, with the original values
	Requeue    Kind = "requeue"   // waiting_input to queued without values, for an Operation that can only fail
	SetMarker  Kind = "marker"    // Secret is the sealed comparison key
	Reseal     Kind = "reseal"    // the same values under another key
	SecretsAre Kind = "secrets"   // whether the sealed values of a Resource can still be opened
	Carry      Kind = "carry"     // which facade sets this program has
	RecordRuns Kind = "runs"      // matches of cron triggers
	EndRuns    Kind = "ran"       // runs that are done

	FoundFleet   Kind = "fleet"   // this state becomes that of a fleet with its first member
	InviteMember Kind = "invite"  // Fleet.Invite lets one node join
	JoinFleet    Kind = "join"    // by a node that has an invite's secret
	ReportMember Kind = "member"  // what a member says of itself, or its new certificate
	DrainMember  Kind = "drain"   // Fleet.Member.Draining
	RemoveMember Kind = "remove"  // for ever
	Disband      Kind = "disband" // of a restored state: it is that of a node alone
	Vanish       Kind = "vanish"  // a record is taken out of band; only builds that test crashes do it
)

// Command is the only thing that changes the state. Whoever makes it stamps ids, times and everything that was found
// out outside; Apply adds nothing of its own.
type Command struct {
	Kind  Kind  `json:"kind"`
	Level int   `json:"level,omitempty"` // that a program needs to carry it out (Level); 0 means 1
	At    int64 `json:"at"`              // Unix ms

	// A mutation.
	Actor       Actor           `json:"actor"`
	Lane        string          `json:"lane,omitempty"` // the front that the key belongs to
	Key         string          `json:"key,omitempty"`
	Fingerprint []byte          `json:"fingerprint,omitempty"`
	UID         string          `json:"uid,omitempty"` // issued for a create
	Operation   string          `json:"operation,omitempty"`
	Form        string          `json:"form,omitempty"`
	Space       string          `json:"space,omitempty"`
	Name        string          `json:"name,omitempty"`
	Spec        json.RawMessage `json:"spec,omitempty"`
	Private     bool            `json:"private,omitempty"`  // private inputs are present; their values never come here in clear
	Inputs      *Inputs         `json:"inputs,omitempty"`   // what the state may know of them
	Offering    bool            `json:"offering,omitempty"` // an offering is present
	Expected    uint64          `json:"expected,omitempty"`
	Window      int64           `json:"window,omitempty"` // replay window, ms

	// What was found out before acceptance.
	Inspected *Inspected `json:"inspected,omitempty"`
	Address   string     `json:"address,omitempty"` // host name to assign
	Proven    bool       `json:"proven,omitempty"`  // the caller controls the DNS name
	InUse     bool       `json:"inUse,omitempty"`   // invocations of the version still run
	Sealed    string     `json:"sealed,omitempty"`
	Withheld  bool       `json:"withheld,omitempty"` // this node cannot do what the Form or the version's service bindings ask

	// The end of an Operation; of DoubtOperation only why it has none yet.
	OK      bool         `json:"ok,omitempty"`
	Effect  Effect       `json:"effect,omitempty"`
	Seed    rules.Seed   `json:"seed,omitempty"`
	Message string       `json:"message,omitempty"`
	Index   *form.Index  `json:"index,omitempty"`
	Ledger  *form.Ledger `json:"ledger,omitempty"` // of a migration: what is applied to its database now; nil if that could not be read
	Lost    bool         `json:"lost,omitempty"`   // the store of a data Resource, or of SecretsAre the sealed values, were found to be gone

	Token  *Token           `json:"token,omitempty"`
	Used   map[string]int64 `json:"used,omitempty"` // of UseTokens: by id, Unix ms
	Secret []byte           `json:"secret,omitempty"`
	Reason InputReason      `json:"reason,omitempty"` // of AwaitInput

	Home  string       `json:"home,omitempty"`  // of a create: the node that accepts it
	Fleet *FleetChange `json:"fleet,omitempty"` // of the commands about the fleet

	Facades []string `json:"facades,omitempty"` // of Carry: identities, ascending
	Runs    []Run    `json:"runs,omitempty"`    // of RecordRuns and EndRuns

	parsed *parsed // of Spec; nil until somebody asked. A command is in one goroutine's hands at a time
}

// parsed is what a driver made of a spec.
type parsed struct {
	by   *form.Driver
	raw  json.RawMessage
	spec *form.Spec
	v    *rules.Verdict
}

// parse returns what the driver makes of the spec. The first call does the work, which takes long for a large spec.
func (c *Command) parse(d *form.Driver) (*form.Spec, *rules.Verdict) {
	if p := c.parsed; p == nil || p.by != d || !sameBytes(p.raw, c.Spec) {
		spec, v := d.Parse(c.Spec)
		c.parsed = &parsed{d, c.Spec, spec, v}
	}
	return c.parsed.spec, c.parsed.v
}

// sameBytes reports whether a and b are the same bytes in memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Inspected is what the evaluation of a bundle's module graph showed.
type Inspected struct {
	Bundle  string   `json:"bundle"` // UID of the bundle that was evaluated
	Exports []string `json:"exports"`
	Code    string   `json:"code,omitempty"` // the load code, "" when it loaded
	Text    string   `json:"text,omitempty"`
}

// Inspect asks for the evaluation of a bundle before a version of it can be judged further.
type Inspect struct {
	Tenant, Bundle string
	Index          *form.Index
	Handlers       []string
}

// Outcome is what became of a command.
type Outcome struct {
	Refusal   *rules.Verdict
	Operation *Operation // accepted, replayed or moved on
	Replayed  bool
	Inspect   *Inspect // only from Decide: what is still to be found out
	Plan      bool     // what a node serves may have changed
	More      bool     // of a sweep: call again
	Runs      []Run    // of RecordRuns: those that are on record now
}

// Encode renders a command for the log.
func (c *Command) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("encode command: %w", err)
	}
	return b.Bytes(), nil
}

// DecodeCommand reads what Encode wrote. The error is an ErrNewer for a command of a level or a kind that this program does not know, or
// that says something which it does not know: to pass that over would be to carry out another command.
func DecodeCommand(raw []byte) (*Command, error) {
	c := new(Command)
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	strict := dec.Decode(c)
	if strict == nil && len(bytes.TrimSpace(raw[dec.InputOffset():])) > 0 {
		return nil, errors.New("decode command: something stands behind it")
	}
	if strict != nil {
		*c = Command{}
		if err := json.Unmarshal(raw, c); err != nil {
			return nil, fmt.Errorf("decode command: %w", err)
		}
	}
	switch {
	case strict != nil && c.Level <= Level && c.Kind.known():
		return nil, newer("a command of the kind %s says something that this program does not know (%v)", c.Kind, strict)
	case c.Level > Level:
		return nil, newer("a command of the kind %.40q needs level %d, this program has %d", c.Kind, c.Level, Level)
	case !c.Kind.known():
		return nil, newer("a command is of the kind %.40q, which this program does not know", c.Kind)
	}
	return c, nil
}

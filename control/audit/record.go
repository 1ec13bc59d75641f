package audit

// Outcome is what became of a mutation.
type Outcome string

// The outcomes.
const (
	Accepted Outcome = "accepted"
	Refused  Outcome = "refused"
	Unknown  Outcome = "unknown" // the node could not say; it may have been accepted
)

// Record is one mutation that somebody asked for.
type Record struct {
	Seq   uint64 `json:"seq,omitempty"`   // of its log, ascending
	At    string `json:"at"`              // UTC, RFC 3339
	Index uint64 `json:"index,omitempty"` // of the command, for an accepted one

	ByTenant    string `json:"byTenant"`    // whose principal asked
	ByPrincipal string `json:"byPrincipal"` // "" is the node itself
	ByToken     string `json:"byToken,omitempty"`

	Action    string  `json:"action"` // create, update, delete, replenish, or room.call
	Tenant    string  `json:"tenant"` // whose things were to change
	UID       string  `json:"uid,omitempty"`
	Space     string  `json:"space,omitempty"`
	Name      string  `json:"name,omitempty"`
	Form      string  `json:"form,omitempty"`
	Operation string  `json:"operation,omitempty"`
	Outcome   Outcome `json:"outcome"`
	Code      string  `json:"code,omitempty"` // of a refusal

	// Versions is the distribution that was asked for, of an accepted create or update of a deployment: with it one can go
	// back to the one before.
	Versions []Share `json:"versions,omitempty"`
}

// Share is a version's part of a distribution, in basis points.
type Share struct {
	Version string `json:"version"` // UID
	Weight  int    `json:"weight"`
}

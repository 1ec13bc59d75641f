package rules

import "fmt"

// Seed is the code by which the older material names a refusal; the front maps it to its own wire code. The first
// group is the vocabulary of Form refusals, the second that of the common mutation protocol.
type Seed string

// The codes.
const (
	InvalidArgument       Seed = "invalid_argument"       // the statement is false and stays false
	UnsupportedCapability Seed = "unsupported_capability" // something a target must offer is missing now
	DependencyInUse       Seed = "dependency_in_use"      // a live holder or dependent forbids it
	ResourceNotFound      Seed = "resource_not_found"     // absent or foreign
	ResourceBusy          Seed = "resource_busy"          // an unfinished mutation leaves the verdict open
	PermissionDenied      Seed = "permission_denied"      // own tenant, not allowed

	Malformed           Seed = "malformed"            // the envelope, not the Form, forbids it
	FormUnknown         Seed = "form_unknown"         // the Form is not implemented
	NameConflict        Seed = "name_conflict"        // the name is taken
	GenerationConflict  Seed = "generation_conflict"  // stale fence
	IdempotencyConflict Seed = "idempotency_conflict" // the key was used for another request
	Gone                Seed = "gone"                 // deleted, the tombstone is still kept
	ArtifactInvalid     Seed = "artifact_invalid"     // bytes not obtainable or wrong; only in an Operation

	// How an application of migrations failed (sql §8.2); only in an Operation.
	MigrationHistory   Seed = "migration_history_conflict" // what is applied is no beginning of the set; nothing ran
	MigrationSQL       Seed = "migration_sql_error"        // syntax, a forbidden effect, a failure while running
	DatabaseBusy       Seed = "database_busy"              // others had the database for too long
	BackendUnavailable Seed = "backend_unavailable"        // the database cannot be had or written

	InputsConflict     Seed = "private_inputs_conflict"     // not the private inputs of the original request
	InputsUnverifiable Seed = "private_inputs_unverifiable" // what to compare private inputs with is lost
	OperationTerminal  Seed = "operation_terminal"          // the Operation has ended, nothing can be given to it
)

// Verdict is one refusal. A nil *Verdict is consent.
type Verdict struct {
	Rule     string   // id of the rule, like "WA-3.3", or of the contract section that refuses
	Seed     Seed     // the kind
	Pointer  string   // JSON pointer into spec, "" where none applies
	UIDs     []string // the Resources it speaks of, all of the caller's tenant
	Sentence string   // names pointer, UIDs and what is missing; no secrets

	Operation string // the accepted Operation that the refusal speaks of, one that the caller may read; mostly ""
}

// Detail renders the text that a caller sees: code, rule, sentence (README §4).
func (v *Verdict) Detail() string {
	if v.Rule == "" {
		return v.Sentence
	}
	return string(v.Seed) + ": " + v.Rule + ": " + v.Sentence
}

// Error makes a verdict usable where an error is carried inside the room.
func (v *Verdict) Error() string { return v.Detail() }

// Refuse makes a verdict with a formatted sentence.
func Refuse(seed Seed, rule, pointer string, uids []string, format string, args ...any) *Verdict {
	return &Verdict{Rule: rule, Seed: seed, Pointer: pointer, UIDs: uids, Sentence: fmt.Sprintf(format, args...)}
}

package state

import (
	"errors"
	"fmt"

	"edged/internal/fault"
)

// Level is the newest protocol level that this program speaks: which commands it carries out, and what they may say. It rises by one with
// every change of the log that a program before it would carry out in another way, or not at all: a new kind, a new field of one, a new
// Form. A leader makes such a command only once all voters have announced the level (control.FleetOptions.Announced); a program that meets
// one above its own stops carrying out the log there. Programs from before there were levels announce none and count as 0.
const Level = 1

// ErrNewer is in the error of whatever a newer program wrote and this one does not know. Its fault is a Conflict whose sentence says so.
var ErrNewer = errors.New("written by a newer edged")

func newer(format string, args ...any) error {
	return fmt.Errorf("%w: %w", fault.Newf(fault.Conflict, "control.state", format, args...), ErrNewer)
}

// known reports whether this program carries out commands of the kind.
func (k Kind) known() bool {
	switch k {
	case CreateResource, UpdateResource, DeleteResource, StartOperation, DoubtOperation, EndOperation, Sweep, AddToken, RemoveToken, UseTokens,
		Found, AwaitInput, Replenish, Requeue, SetMarker, Reseal, SecretsAre, Carry, RecordRuns, EndRuns,
		FoundFleet, InviteMember, JoinFleet, ReportMember, DrainMember, RemoveMember, Disband, Vanish:
		return true
	}
	return false
}

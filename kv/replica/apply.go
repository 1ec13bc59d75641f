package replica

// Rules are the parts of the protocol that can be switched off, so that the simulation can show that each is needed. The
// zero value is the protocol; nothing but a test sets one.
type Rules struct {
	MergeEarly    bool // vectors advance with each record, not at a live mark
	NoVectorDrop  bool // records that the vector covers are applied all the same
	NoContinuity  bool // units that do not follow each other are accepted
	NoSkewGate    bool // records from the future are accepted
	NoCoverage    bool // tombstones go although a member may not have them
	NoOwnCoverage bool // tombstones go although this store's own vector does not cover them
	NoBarrier     bool // tombstones go although an older record may be on its way here
	NoGrace       bool // tombstones go as soon as they are covered
	ServeUnsynced bool // feeds show what is not durable yet
	ServeAnyone   bool // epochs that were forgotten are served and pulled from
	KeepEpoch     bool // a lost or restored disk goes on under its old epoch
	JoinOld       bool // a restored backup may join however old it is
	TakeDead      bool // records of deleted namespaces are applied
}

// Verdict says what becomes of a record that arrived.
type Verdict uint8

// The verdicts.
const (
	Take    Verdict = iota // it replaces what is there
	Known                  // the vector covers it: it, or what replaced it, was here before
	Older                  // what is there wins
	DeadEnd                // its namespace was deleted
)

// Admit decides whether a record that arrived replaces what is stored (nil for nothing). covered says whether the vector of
// this store covers it, deadNamespace whether its namespace was deleted.
func (ru Rules) Admit(stored *Version, in Version, covered, deadNamespace bool) Verdict {
	switch {
	case deadNamespace && !ru.TakeDead:
		return DeadEnd
	case covered && !ru.NoVectorDrop:
		return Known
	case stored != nil && stored.Compare(in) >= 0:
		return Older
	}
	return Take
}

package state

import (
	"crypto/subtle"
	"slices"

	"edged/control/form"
	"edged/control/rules"
)

// MaxInputs is how many private inputs a request may carry; more can fit no Form.
const MaxInputs = 64

// InputReason says why an Operation waits for its private inputs.
type InputReason string

// The reasons.
const (
	InputsExpired     InputReason = "expired"     // the transfer values were kept as long as they may be
	InputsUnavailable InputReason = "unavailable" // they cannot be opened
)

// Inputs are the private inputs of one request as the state may see them: names, sealed values, and marks to compare
// them by. It is immutable. The three lists have one order, that of Names, which ascends.
type Inputs struct {
	Names   []string `json:"names"`
	Boxes   [][]byte `json:"boxes,omitempty"` // the transfer values; nil when they are gone, and in a preview
	Expires int64    `json:"expires,omitempty"`
	Marks   [][]byte `json:"marks,omitempty"` // of each value, bound to UID and name
	Whole   []byte   `json:"whole,omitempty"` // of all, bound to the idempotency key
	Marker  string   `json:"marker,omitempty"`
	Blank   string   `json:"blank,omitempty"` // the first name whose value is empty
	TooMany bool     `json:"tooMany,omitempty"`
}

// Secrets are what a Resource keeps of the private inputs of its create. The lists are those of Inputs; Boxes are nil
// until the create has succeeded. It is immutable.
type Secrets struct {
	Names  []string `json:"names"`
	Boxes  [][]byte `json:"boxes,omitempty"`
	Marks  [][]byte `json:"marks,omitempty"`
	Marker string   `json:"marker,omitempty"`
	Lost   bool     `json:"lost,omitempty"` // the values cannot be opened any more
}

// secrets returns what is kept for comparison from acceptance on; nil if there are no values.
func (in *Inputs) secrets() *Secrets {
	if in == nil || len(in.Names) == 0 {
		return nil
	}
	return &Secrets{Names: in.Names, Marks: in.Marks, Marker: in.Marker}
}

// keep takes the transfer values over, for a record that is not stored yet.
func (s *Secrets) keep(in *Inputs) {
	if s != nil {
		s.Boxes = in.Boxes
	}
}

func (s *Secrets) lost() bool { return s != nil && s.Lost }

// InputKey is what the mark of all private inputs of a mutation is bound to: the place of its idempotency record.
func InputKey(c *Command) string { return replayKey(c) }

func newReplay(c *Command) *replay {
	r := &replay{Fingerprint: c.Fingerprint, Operation: c.Operation}
	if c.Inputs != nil {
		r.Mark, r.Marker = c.Inputs.Whole, c.Inputs.Marker
	}
	return r
}

// compare judges private inputs against those of the original request; differ is what a difference means.
func (r *replay) compare(in *Inputs, op *Operation, differ rules.Seed) *rules.Verdict {
	given := in != nil && in.Whole != nil
	switch {
	case r.Mark == nil && !given:
		return nil
	case r.Mark == nil || !given:
		return rules.Refuse(differ, "", "", nil, "the private inputs are not those of the original request")
	case r.Marker != in.Marker:
		v := rules.Refuse(rules.InputsUnverifiable, "", "", nil, "what the private inputs would be compared with is lost")
		v.Operation = op.ID
		return v
	case subtle.ConstantTimeCompare(r.Mark, in.Whole) != 1:
		return rules.Refuse(differ, "", "", nil, "the private inputs are not those of the original request")
	}
	return nil
}

const inputsRule = "worker-version §5"

func badInputs(format string, args ...any) *rules.Verdict {
	return rules.Refuse(rules.InvalidArgument, inputsRule, "/requiredSensitiveVars", nil, format, args...)
}

// namedInputs judges the names against those that the spec asks for. What was given is not repeated: a value may have been
// put in the place of a name.
func namedInputs(in *Inputs, spec *form.Spec) *rules.Verdict {
	if in.TooMany {
		return badInputs("privateInputs has more than %d names", MaxInputs)
	}
	for _, name := range spec.Sensitive {
		if _, ok := slices.BinarySearch(in.Names, name); !ok {
			return badInputs("privateInputs lacks %s", name)
		}
	}
	if len(in.Names) != len(spec.Sensitive) {
		return badInputs("privateInputs has a name that /requiredSensitiveVars does not list")
	}
	if in.Blank != "" {
		return badInputs("the value of %s is empty", in.Blank)
	}
	return nil
}

// givenInputs is the part of step 14 for a create: every value at once.
func givenInputs(c *Command, spec *form.Spec) *rules.Verdict {
	in := c.Inputs
	if in == nil {
		in = &Inputs{}
	}
	return namedInputs(in, spec)
}

// repeatedInputs is the part of step 14 for an update: none, or exactly what was sealed. There is no rotation on one UID.
func repeatedInputs(c *Command, spec *form.Spec, old *Resource) *rules.Verdict {
	if c.Inputs == nil {
		return nil
	}
	if v := namedInputs(c.Inputs, spec); v != nil || len(c.Inputs.Names) == 0 {
		return v
	}
	had := old.Secrets
	if had == nil {
		return badInputs("private inputs cannot be added to %s", old.UID)
	}
	if had.Lost || had.Marker != c.Inputs.Marker {
		return rules.Refuse(rules.InputsUnverifiable, inputsRule, "", []string{old.UID},
			"the sealed values of %s are lost, so that nothing can be compared with them", old.UID)
	}
	for i, name := range c.Inputs.Names {
		at, ok := slices.BinarySearch(had.Names, name)
		if !ok || subtle.ConstantTimeCompare(had.Marks[at], c.Inputs.Marks[i]) != 1 {
			return badInputs("the value of %s differs from the sealed one: a new value needs a new version", name)
		}
	}
	return nil
}

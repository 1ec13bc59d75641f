package lease

// Outcome says how a delivery ended.
type Outcome uint8

// The outcomes. The zero value is the one that assumes nothing.
const (
	Unknown    Outcome = iota // it may have run, wholly or in part: a crash, a lost child, a panic
	Returned                  // the handler's promise was fulfilled
	Threw                     // the handler threw or its promise was rejected, or a limit ended it
	NotReached                // provably no handler saw the batch; the delivery does not count
)

// String returns the outcome's stable name, fit for a metric label.
func (o Outcome) String() string {
	switch o {
	case Returned:
		return "returned"
	case Threw:
		return "threw"
	case NotReached:
		return "not_reached"
	}
	return "unknown"
}

type state uint8

const (
	open state = iota
	acknowledged
	retried
)

// Batch is the settlement state of one delivered batch. Messages are known by their place in it. Not safe for concurrent
// use: calls take effect in the order in which they are made.
type Batch struct {
	places map[string]int
	states []state
	open   int
	ended  bool
}

// NewBatch returns the state of a batch of messages with these ids, none of them settled. The ids are kept.
func NewBatch(ids []string) *Batch {
	b := &Batch{places: make(map[string]int, len(ids)), states: make([]state, len(ids)), open: len(ids)}
	for i, id := range ids {
		b.places[id] = i
	}
	return b
}

// Open returns how many messages are not settled.
func (b *Batch) Open() int { return b.open }

// Acknowledge settles the message as delivered and returns its place. The errors are ErrUnknownBatch, ErrUnknownMessage and
// ErrSettled.
func (b *Batch) Acknowledge(id string) (int, error) { return b.settle(id, acknowledged) }

// Retry settles the message as to be delivered again; errors as for Acknowledge.
func (b *Batch) Retry(id string) (int, error) { return b.settle(id, retried) }

func (b *Batch) settle(id string, to state) (int, error) {
	if b.ended {
		return 0, ErrUnknownBatch
	}
	i, ok := b.places[id]
	if !ok {
		return 0, ErrUnknownMessage
	}
	if b.states[i] != open {
		return 0, ErrSettled
	}
	b.states[i] = to
	b.open--
	return i, nil
}

// AcknowledgeAll settles all that is open as delivered and returns the places; none is fine. The error is ErrUnknownBatch.
func (b *Batch) AcknowledgeAll() ([]int, error) { return b.settleAll(acknowledged) }

// RetryAll settles all that is open as to be delivered again, as AcknowledgeAll does.
func (b *Batch) RetryAll() ([]int, error) { return b.settleAll(retried) }

func (b *Batch) settleAll(to state) ([]int, error) {
	if b.ended {
		return nil, ErrUnknownBatch
	}
	return b.rest(to), nil
}

func (b *Batch) rest(to state) []int {
	if b.open == 0 {
		return nil
	}
	places := make([]int, 0, b.open)
	for i, s := range b.states {
		if s == open {
			b.states[i] = to
			places = append(places, i)
		}
	}
	b.open = 0
	return places
}

// An Ending says what is to be done with the messages that were open when a delivery ended.
type Ending struct {
	Places []int
	Do     Action
}

// Action is what an ending does with each of its messages.
type Action uint8

// The actions.
const (
	Acknowledge Action = iota // delivered for good
	Retry                     // deliver again after the consumer's retry delay, within the budget
	Doubt                     // deliver again when the lease has run out, within the budget
	Return                    // as if it had never been taken
)

// End ends the batch. Explicit settlements stand whatever the outcome: a throw repeats no retry and takes back no
// acknowledgement (queue §5). A delivery of which a message was settled did reach a handler, whatever is claimed.
func (b *Batch) End(o Outcome) Ending {
	touched := b.open < len(b.states)
	b.ended = true
	switch {
	case o == Returned:
		return Ending{b.rest(acknowledged), Acknowledge}
	case o == Threw:
		return Ending{b.rest(retried), Retry}
	case o == NotReached && !touched:
		return Ending{b.rest(retried), Return}
	}
	return Ending{b.rest(retried), Doubt}
}

// Unsettled returns the places of the messages that are open.
func (b *Batch) Unsettled() []int {
	out := make([]int, 0, b.open)
	for i, s := range b.states {
		if s == open {
			out = append(out, i)
		}
	}
	return out
}

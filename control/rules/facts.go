package rules

// Role is the part that a Resource plays in an aggregate.
type Role uint8

// The roles. Append only: stored indexes are ordered by them.
const (
	Other      Role = iota // takes part in relations only
	Worker                 // the identity that an aggregate grows around
	Artifact               // a verified file set
	Version                // a snapshot that may be weighted
	Deployment             // the source of new invocations
	Attachment             // brings events in
	Class                  // needs a named class from every weighted version
	Data                   // a store that versions bind
	Migration              // the application of a file set to a store
)

// Need is what an attachment asks of every weighted version.
type Need uint8

// The needs.
const (
	NeedNothing Need = iota
	NeedHTTP
	NeedScheduled
	NeedQueue
)

// Handler returns what a version lacks when it does not meet the need.
func (n Need) Handler() string {
	switch n {
	case NeedHTTP:
		return "fetch or assets"
	case NeedScheduled:
		return "scheduled"
	case NeedQueue:
		return "queue"
	}
	return ""
}

// Weight is a share of new invocations in basis points.
type Weight struct {
	Version string `json:"version"`
	Weight  int    `json:"weight"`
}

// Facts are what the rules see of one Resource. Facts of a Resource that does not exist are the zero value with its UID.
type Facts struct {
	UID, Name, Kind string // Kind is the Form's short name, for sentences
	FormID          string // the exact identity, compared byte for byte
	Role            Role

	Exists   bool
	Deleting bool // its delete was accepted
	Settling bool // a create is unfinished
	Failed   bool // its create failed and no later update repaired it
	Busy     bool // any mutation is unfinished

	Owner string // UID of the worker it belongs to or is attached to, "" if none

	// Of a version.
	Ready     bool     // references, bytes and exports are resolved
	Unready   *Cause   // why it is not ready; nil when it is
	Handlers  []string // declared and exported
	HasAssets bool     // verified assets
	Classes   []string // named classes it exports

	// Of a deployment.
	Active  []Weight // the current distribution; empty unless it is the source of new invocations
	Pending []Weight // the distribution of an unfinished mutation

	// Of an attachment or a class.
	Need      Need
	Gate      string // row of an attachment in rule 3, like "WA-3.1": it tells the kinds of attachments apart
	ClassName string
}

// HTTP reports whether a version is HTTP-capable: it serves fetch or carries verified assets.
func (f *Facts) HTTP() bool { return f.HasAssets || f.Serves("fetch") }

// Serves reports whether a version declares and exports the handler.
func (f *Facts) Serves(handler string) bool {
	for _, h := range f.Handlers {
		if h == handler {
			return true
		}
	}
	return false
}

// Meets reports whether a version serves what the need asks.
func (f *Facts) Meets(n Need) bool {
	switch n {
	case NeedHTTP:
		return f.HTTP()
	case NeedScheduled:
		return f.Serves("scheduled")
	case NeedQueue:
		return f.Serves("queue")
	}
	return true
}

// Aggregate is what the rules see of one worker. Lists are in ascending order of UID.
type Aggregate struct {
	Worker      Facts
	Deployments []Facts // live ones; rule 1 keeps them at most one
	Attachments []Facts // live ones
	Inbound     []Facts // live versions of other workers that bind this one
	Classes     []Facts // live namespaces and workflows
	// Version gives the facts of a version by UID.
	Version func(uid string) Facts
}

// Active returns the deployment that is the current source of new invocations, nil if there is none.
func (a *Aggregate) Active() *Facts {
	for i := range a.Deployments {
		if d := &a.Deployments[i]; len(d.Active) > 0 && !d.Deleting {
			return d
		}
	}
	return nil
}

// dependent is one Resource that relies on what the worker's deployment serves.
type dependent struct {
	*Facts
	need Need
}

func (a *Aggregate) dependents() []dependent {
	var out []dependent
	for i := range a.Attachments {
		out = append(out, dependent{&a.Attachments[i], a.Attachments[i].Need})
	}
	for i := range a.Inbound {
		out = append(out, dependent{&a.Inbound[i], NeedHTTP})
	}
	return out
}

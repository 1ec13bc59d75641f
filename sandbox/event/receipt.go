package event

import (
	"bytes"
	"slices"
	"time"
)

// Receipt says what one invocation has cost, as far as it has gone. Times are active or elapsed time of this node; sizes are bytes.
type Receipt struct {
	Origin    Origin
	Admission time.Duration // from the request's arrival until the sandbox room took it; 0 if nobody said when it arrived
	Queue     time.Duration // waited for its turn to run, at the start and each time it went on
	Wall      time.Duration // from being taken to the response head, or to the handler's settlement
	CPU       time.Duration // active time of the guest, and of work that was done for it beside it
	// Memory is what of the sandbox's memory it wrote, in whole pages: its peak, for what it freed was written too. Before the end,
	// and where a sandbox is used again as it is (isolation worker), it is the size of the JavaScript heap instead.
	Memory      int64
	BodyIn      int64 // of the request body, what it took or passed on
	BodyOut     int64 // of the response body, what it gave
	Subrequests int   // through service bindings and fetch
	// Waits are the host calls by binding, in the order of the bindings, fetch last; none that was not called. They overlap where
	// calls did.
	Waits []Wait
	Left  Headroom
	Final bool // the invocation is over: nothing of this changes any more
}

// Wait is the host calls of one binding.
type Wait struct {
	Name  string // of the binding as the version declares it; "fetch" for requests to the outside
	Calls int
	Time  time.Duration // from each call to its result, or to a response's head
}

// Headroom is what was left of an invocation's limits. None is negative.
type Headroom struct {
	CPU         time.Duration
	Wall        time.Duration // when the response head was there
	Memory      int64
	Subrequests int
}

// Kind says what an invocation was for.
type Kind string

// The kinds.
const (
	KindFetch     Kind = "fetch"     // a request of a client
	KindService   Kind = "service"   // a request of another worker
	KindScheduled Kind = "scheduled" // a matched minute
	KindQueue     Kind = "queue"     // a batch of messages
	KindAsset     Kind = "asset"     // a request that a file answered, without an invocation
)

// Invocation is one invocation that has ended, or that was refused. Its strings may be kept; Receipt.Waits may not.
type Invocation struct {
	Start   time.Time
	Kind    Kind
	Worker  string // UID
	Version string // UID, "" if none was chosen
	Method  string // of a request
	URL     string // of a request, without user, query and fragment, at most MaxShownURL bytes
	Event   string // the cron expression, or the name of the queue
	Batch   int    // messages
	Status  int    // of the worker's response, 0 if it gave none
	// Outcome is "ok", "client_left", "internal", or one of this package's error names.
	Outcome string
	Receipt Receipt
}

// MaxShownURL bounds the URL of an Invocation.
const MaxShownURL = 2048

// ShownURL is what of a request's URL may be shown to operators: no user, no query, no fragment, nothing beyond MaxShownURL bytes.
// What is in the path is shown.
func ShownURL(url []byte) string {
	if i := bytes.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	if scheme, rest, ok := bytes.Cut(url, []byte("://")); ok {
		authority, path := rest, []byte(nil)
		if i := bytes.IndexByte(rest, '/'); i >= 0 {
			authority, path = rest[:i], rest[i:]
		}
		if i := bytes.LastIndexByte(authority, '@'); i >= 0 {
			url = slices.Concat(scheme, []byte("://"), authority[i+1:], path)
		}
	}
	return string(url[:min(len(url), MaxShownURL)])
}

package router

import (
	"slices"
	"time"
)

// Holding is what a drain of the router would wait for, as of one moment.
type Holding struct {
	Idle      int // connections between two requests, or before the first
	Opening   int // connections with half a head, or in a TLS handshake
	Relayed   int // connections over TLS that a process which was followed by another still carries
	Working   int // requests at work, those that wait for admission too
	Waiting   int // of these, the ones that wait for admission
	Streaming int // of these, the ones whose answer has begun
	// LongestAnswer is the age of the oldest request that is answered.
	LongestAnswer time.Duration
	Oldest        []Request // some of those at work, the oldest first
}

// Request is one request at work.
type Request struct {
	Version   string        // UID of the WorkerVersion; before one was chosen the connection's last, or ""
	Since     time.Time     // when its head was complete
	Age       time.Duration // until now
	Answering bool          // the head of its answer is out, or on its way
}

// Holding looks at every connection once; most bounds the requests it lists. It costs about 100 ns for each connection.
func (r *Router) Holding(now time.Time, most int) Holding {
	var out Holding
	r.crowd.each(func(c *conn) {
		c.dmu.Lock()
		phase, since := c.phase, c.since
		c.dmu.Unlock()
		switch phase {
		case idle:
			out.Idle++
		case opening, shaking:
			out.Opening++
		case relaying:
			out.Relayed++
		case busy:
			out.Working++
			q := Request{Since: since, Age: now.Sub(since), Answering: c.responding.Load()}
			if v := c.chosen.Load(); v != nil {
				q.Version = v.UID
			}
			if q.Answering {
				out.Streaming++
				out.LongestAnswer = max(out.LongestAnswer, q.Age)
			}
			out.Oldest = keepOldest(out.Oldest, q, most)
		}
	})
	out.Waiting = int(r.gate.waiting.Load())
	slices.SortFunc(out.Oldest, byAge)
	out.Oldest = out.Oldest[:min(most, len(out.Oldest))]
	return out
}

// keepOldest adds q to at most most requests of which the youngest gives way. It sorts only when twice as many are there.
func keepOldest(list []Request, q Request, most int) []Request {
	if list = append(list, q); len(list) >= 2*most+16 {
		slices.SortFunc(list, byAge)
		list = list[:most]
	}
	return list
}

func byAge(a, b Request) int { return a.Since.Compare(b.Since) }

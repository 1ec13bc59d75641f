package node

import (
	"time"

	"edged/control/form"
	"edged/control/operator"
	"edged/internal/fault"
	"edged/queue"
)

// queueRoom is what operators do with queues.
func (n *Node) queueRoom() operator.Room {
	route := func(name, method, path string, serve func(*operator.Call, queue.Ref) error, query ...string) operator.Route {
		return operator.Route{Name: name, Method: method, Path: "queues/{uid}/" + path, Query: query, Changes: method != "GET",
			Serve: ofForm(form.QueueURL, func(c *operator.Call) error { return serve(c, queue.Ref{UID: c.Target.UID, Epoch: homeEpoch}) })}
	}
	redrive := route("redrive", "POST", "redrive", n.queueRedrive)
	redrive.Body = operator.JSONBody
	return operator.Room{Name: "queue", Routes: []operator.Route{
		route("stats", "GET", "stats", n.queueStats),
		route("peek", "GET", "messages", n.queuePeek, "limit", "cursor", "bodies"),
		redrive,
		route("purge", "POST", "purge", n.queuePurge),
		{Name: "backup", Method: "GET", Path: "backup", Whole: true, Changes: true, Serve: n.queueBackup}, // changes nothing, but leaves a record
	}}
}

// stamp renders an instant, nil for the zero time.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &text
}

func (n *Node) queueStats(c *operator.Call, ref queue.Ref) error {
	s, err := n.stores.queue.Stats(c.Context(), ref)
	if err != nil {
		return err
	}
	return c.JSON(struct {
		UID       string  `json:"uid"`
		Name      string  `json:"name"`
		Waiting   int64   `json:"waiting"`
		InFlight  int64   `json:"inFlight"`
		Bytes     int64   `json:"bytes"`
		Oldest    *string `json:"oldest"`    // acceptance of the message that has been due longest
		LagMillis int64   `json:"lagMillis"` // how long that has been due
		Retries   int64   `json:"retries"`   // since the node started, as are the next two
		Dead      int64   `json:"dead"`
		Discarded int64   `json:"discarded"`
		Consumed  bool    `json:"consumed"`
	}{c.Target.UID, c.Target.Name, s.Waiting, s.InFlight, s.Bytes, stamp(s.Oldest), s.Lag.Milliseconds(), s.Retries, s.Dead, s.Discarded, s.Consumed})
}

// waiting is a message that waits, as operators see it.
type waiting struct {
	ID       string          `json:"id"`
	Accepted *string         `json:"accepted"`
	Due      *string         `json:"due"`
	Attempts int             `json:"attempts"`
	Size     int             `json:"size"`
	Origin   string          `json:"origin,omitempty"` // UID of the queue that gave it up
	Body     *operator.Bytes `json:"body,omitempty"`
}

func (n *Node) queuePeek(c *operator.Call, ref queue.Ref) error {
	limit, err := c.Int("limit", 100, 1, 1000)
	if err != nil {
		return err
	}
	bodies, err := c.Int("bodies", 0, 0, 1)
	if err != nil {
		return err
	}
	page, err := n.stores.queue.Peek(c.Context(), ref, queue.PeekOptions{Max: limit, Bodies: bodies == 1, Cursor: c.Query.Get("cursor")})
	if err != nil {
		return err
	}
	out := struct {
		Messages []waiting `json:"messages"`
		Next     *string   `json:"nextCursor"`
	}{Messages: []waiting{}}
	for _, m := range page.Messages {
		w := waiting{m.ID, stamp(m.Accepted), stamp(m.Due), m.Attempts, m.Size, m.Origin, nil}
		if bodies == 1 {
			body := operator.Bytes(m.Body)
			w.Body = &body
		}
		out.Messages = append(out.Messages, w)
	}
	if page.Next != "" {
		out.Next = &page.Next
	}
	return c.JSON(out)
}

// queueRedrive moves messages to the queue they came from or to another in the same Space. It goes on as long as the client
// stays; a client that leaves ends it.
func (n *Node) queueRedrive(c *operator.Call, ref queue.Ref) error {
	var in struct {
		To     string    `json:"to"`
		Origin string    `json:"origin"`
		After  time.Time `json:"after"`
		Before time.Time `json:"before"`
		Max    int       `json:"max"`
		Rate   int       `json:"rate"`
	}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if in.To != "" {
		to, err := c.Find(in.To)
		if err != nil {
			return err
		}
		if to.Form != form.QueueURL {
			return fault.New(fault.Invalid, "node.queue", "to is no queue")
		}
	}
	done, err := n.stores.queue.Redrive(c.Context(), ref, queue.RedriveOptions(in))
	if err != nil {
		return err
	}
	return c.JSON(map[string]int{"moved": done.Moved, "left": done.Left})
}

func (n *Node) queuePurge(c *operator.Call, ref queue.Ref) error {
	count, err := n.stores.queue.Purge(c.Context(), ref)
	if err != nil {
		return err
	}
	return c.JSON(map[string]int64{"purged": count})
}

func (n *Node) queueBackup(c *operator.Call) error {
	return n.sendBackup(c, "queue", func(dir string) error { return n.stores.queue.Backup(c.Context(), dir) })
}

package queue

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"edged/internal/fault"
)

const peekMax = 1000

// PeekOptions says what an operator wants to see.
type PeekOptions struct {
	Max    int    // messages, 0 means 100, at most 1000
	Bodies bool   // else only what is known about them
	Cursor string // Next of an earlier call, "" for the beginning
}

// Peeked is a page of waiting messages in the order in which they are due.
type Peeked struct {
	Messages []Waiting
	Next     string // "" after the last
}

// Waiting is a message that waits.
type Waiting struct {
	ID       string
	Accepted time.Time
	Due      time.Time
	Attempts int    // deliveries so far
	Size     int    // bytes of the body
	Origin   string // UID of the queue that gave it up, "" for one that was sent
	Body     []byte // nil unless asked for
}

// Peek shows waiting messages without taking them; those in a handler's hands are not among them.
func (s *Store) Peek(ctx context.Context, ref Ref, opt PeekOptions) (Peeked, error) {
	const op = "queue.Peek"
	q, err := s.lookup(op, ref)
	if err != nil {
		return Peeked{}, err
	}
	if opt.Max == 0 {
		opt.Max = 100
	}
	var from position
	if opt.Cursor != "" {
		due, seq, ok := readID(opt.Cursor)
		if !ok || due > uint64(end.due) {
			return Peeked{}, fault.New(fault.Invalid, op, "the cursor is not one of this store")
		}
		from = position{int64(due), seq}
	}
	if opt.Max < 0 || opt.Max > peekMax {
		return Peeked{}, fault.Newf(fault.Invalid, op, "1 to %d messages at a time", peekMax)
	}
	page, err := s.peek(ctx, q, from, opt)
	return page, unavailable(op, err)
}

func (s *Store) peek(ctx context.Context, q *queue, from position, opt PeekOptions) (Peeked, error) {
	snap := s.db.NewSnapshot() // an entry and its message from one moment
	defer snap.Close()
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: dueKey(q.num, from), UpperBound: classEnd(dueClass, q.num)})
	if err != nil {
		return Peeked{}, err
	}
	var page Peeked
	for it.First(); it.Valid() && ctx.Err() == nil; it.Next() {
		e, err := readIndexed(it)
		if err != nil {
			return Peeked{}, closing(err, it)
		}
		if len(page.Messages) == opt.Max {
			page.Next = messageID(uint64(e.due), e.seq)
			break
		}
		w, err := readWaiting(snap, q.num, e, opt.Bodies)
		if errors.Is(err, pebble.ErrNotFound) {
			continue
		}
		if err != nil {
			return Peeked{}, closing(err, it)
		}
		page.Messages = append(page.Messages, w)
	}
	return page, closing(errors.Join(it.Error(), ctx.Err()), it)
}

func readWaiting(from pebble.Reader, num uint64, e entry, body bool) (Waiting, error) {
	b, closer, err := from.Get(messageKey(num, e.seq))
	if err != nil {
		return Waiting{}, err
	}
	defer closer.Close()
	m, err := readMessage(b)
	if err != nil {
		return Waiting{}, err
	}
	w := Waiting{ID: messageID(e.seq, m.nonce), Accepted: time.UnixMilli(m.accepted).UTC(), Due: time.UnixMilli(e.due).UTC(),
		Attempts: int(e.attempts), Size: len(m.body), Origin: m.origin}
	if body {
		w.Body = append([]byte{}, m.body...)
	}
	return w, nil
}

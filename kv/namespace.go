package kv

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"edged/internal/fault"
	"edged/kv/replica"
)

// Namespace is the door to one namespace. It is a name and costs nothing; every call checks whether the namespace is here.
// All methods are safe for concurrent use. Nothing a caller passes in is kept.
type Namespace struct {
	s   *Store
	uid string
}

// PutOptions are what a put sets beside the value. A put replaces all of it (kv §3).
type PutOptions struct {
	Metadata map[string]string // nil means none
	TTL      time.Duration     // whole seconds, 60 to 315360000; 0 means never
}

// Item is what a key holds. Value and Metadata come from one write.
type Item struct {
	Value    []byte // the caller's
	Metadata []byte // canonical JSON, nil when none was stored; the caller's
}

// Stream is what a key holds, to be read piece by piece with constant memory. Close it.
type Stream struct {
	io.ReadCloser
	Size     int64
	Metadata []byte // canonical JSON, nil when none was stored; the caller's
}

func (n *Namespace) check(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if sp := n.s.ledger.space(n.uid); sp == nil || sp.is() != stateLive {
		return ErrUnavailable.New(op, "the namespace is not on this node")
	}
	return nil
}

// Get appends a key's value to dst[:0] and returns it; ok is false when there is none. Errors: invalid_key,
// backend_unavailable. A value over 128 KiB costs its size in memory; Open does not.
func (n *Namespace) Get(ctx context.Context, key string, dst []byte) (value []byte, ok bool, err error) {
	item, ok, err := n.get(ctx, "kv.Get", key, dst)
	n.s.opt.Metrics.calls["get"].Count(err)
	return item.Value, ok, err
}

// GetWithMetadata is Get with the metadata that was stored by the same put.
func (n *Namespace) GetWithMetadata(ctx context.Context, key string) (item Item, ok bool, err error) {
	item, ok, err = n.get(ctx, "kv.GetWithMetadata", key, nil)
	n.s.opt.Metrics.calls["get"].Count(err)
	return item, ok, err
}

func (n *Namespace) get(ctx context.Context, op, key string, dst []byte) (Item, bool, error) {
	if err := errors.Join(checkKey(op, key), n.check(ctx, op)); err != nil {
		return Item{}, false, err
	}
	var item Item
	rec, ok, err := n.s.ledger.read(n.uid, key, func(r *replica.Record) {
		item.Value = append(dst[:0], r.Value...)
		if r.Flags&replica.Meta != 0 {
			item.Metadata = append([]byte{}, r.Meta...)
		}
	})
	if err != nil || !ok {
		return Item{}, false, unavailable(op, err)
	}
	if item.Value == nil {
		item.Value = []byte{}
	}
	if rec.Flags&replica.Blob == 0 {
		return item, true, nil
	}
	st, ok, err := n.open(op, key)
	if err != nil || !ok {
		return Item{}, false, err
	}
	defer st.Close()
	buf := bytes.NewBuffer(dst[:0])
	buf.Grow(int(st.Size) + bytes.MinRead)
	if _, err := buf.ReadFrom(st); err != nil {
		return Item{}, false, unavailable(op, err)
	}
	return Item{Value: buf.Bytes(), Metadata: st.Metadata}, true, nil
}

// Open returns a key's value as a stream; ok is false when there is none. Errors as Get. Reading gives an error when the value
// is damaged on disk.
func (n *Namespace) Open(ctx context.Context, key string) (st *Stream, ok bool, err error) {
	const op = "kv.Open"
	if err = errors.Join(checkKey(op, key), n.check(ctx, op)); err == nil {
		st, ok, err = n.open(op, key)
	}
	n.s.opt.Metrics.calls["get"].Count(err)
	return st, ok, err
}

func (n *Namespace) open(op, key string) (*Stream, bool, error) {
	var err error
	for range 3 { // a file can go between the look at the record and its opening only if the record changed
		var st Stream
		rec, ok, rerr := n.s.ledger.read(n.uid, key, func(r *replica.Record) {
			if r.Flags&replica.Meta != 0 {
				st.Metadata = append([]byte{}, r.Meta...)
			}
			if r.Flags&replica.Blob == 0 {
				st.ReadCloser = io.NopCloser(bytes.NewReader(append([]byte{}, r.Value...)))
			}
		})
		if rerr != nil || !ok {
			return nil, false, unavailable(op, rerr)
		}
		st.Size = int64(rec.Size)
		if st.ReadCloser != nil {
			return &st, true, nil
		}
		var file *blobReader
		if file, err = n.s.blobs.open(rec.Digest, rec.Size); err == nil {
			st.ReadCloser = file
			return &st, true, nil
		}
	}
	n.s.opt.Metrics.damaged.Inc()
	n.s.opt.Log.Error("a value's file is missing", "err", err, "do", "put the key again, or restore the store from a backup")
	return nil, false, unavailable(op, err)
}

// Put stores a value with its metadata and time to live, in place of what the key held. It returns when that is durable here.
// Errors: invalid_key, value_too_large, metadata_too_large, backend_unavailable (also: over quota, disk nearly full), Invalid
// for a time to live or text outside its bounds.
func (n *Namespace) Put(ctx context.Context, key string, value []byte, opt PutOptions) error {
	var err error
	if len(value) <= replica.MaxInlineBytes {
		err = n.put(ctx, key, value, opt)
	} else {
		err = n.putStream(ctx, key, bytes.NewReader(value), int64(len(value)), opt)
	}
	n.s.opt.Metrics.calls["put"].Count(err)
	return err
}

// PutReader is Put for a value that is read piece by piece, with constant memory. size is its length, -1 when it is not known.
// A reader that fails, ends early or goes on past size stores nothing; its error is in the chain of what is returned.
func (n *Namespace) PutReader(ctx context.Context, key string, r io.Reader, size int64, opt PutOptions) error {
	err := n.putReader(ctx, key, r, size, opt)
	n.s.opt.Metrics.calls["put"].Count(err)
	return err
}

func (n *Namespace) putReader(ctx context.Context, key string, r io.Reader, size int64, opt PutOptions) error {
	const op = "kv.Put"
	if size > MaxValueBytes {
		return errTooLarge
	}
	if size > replica.MaxInlineBytes {
		return n.putStream(ctx, key, r, size, opt)
	}
	if err := checkKey(op, key); err != nil {
		return err
	}
	small := make([]byte, replica.MaxInlineBytes+1)
	if size >= 0 {
		small = small[:size+1]
	}
	got, err := io.ReadFull(r, small)
	switch {
	case err == nil && size < 0:
		return n.putStream(ctx, key, io.MultiReader(bytes.NewReader(small), r), -1, opt)
	case err == nil || size >= 0 && int64(got) < size && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return fault.New(fault.Invalid, op, "the value does not have the length that was announced")
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Wrap(fault.CodeOf(err), op, err)
	}
	return n.put(ctx, key, small[:got], opt)
}

// prepare checks all that a put sets but the value.
func (n *Namespace) prepare(ctx context.Context, op, key string, opt PutOptions) (replica.Record, error) {
	var rec replica.Record
	if err := checkKey(op, key); err != nil {
		return rec, err
	}
	meta, err := CanonicalMetadata(opt.Metadata)
	if err != nil {
		return rec, err
	}
	if meta != nil {
		rec.Flags, rec.Meta = replica.Meta, meta
	}
	if rec.Expires, err = expiry(op, opt.TTL, n.s.opt.clock()); err != nil {
		return rec, err
	}
	if rec.Expires != 0 {
		rec.Flags |= replica.Expires
	}
	if err := n.check(ctx, op); err != nil {
		return rec, err
	}
	return rec, unavailable(op, n.s.opt.Space.Check())
}

func (n *Namespace) put(ctx context.Context, key string, value []byte, opt PutOptions) error {
	const op = "kv.Put"
	rec, err := n.prepare(ctx, op, key, opt)
	if err != nil {
		return err
	}
	rec.Value, rec.Size = value, uint64(len(value))
	return n.commit(op, change{n.uid, key, rec})
}

func (n *Namespace) putStream(ctx context.Context, key string, r io.Reader, size int64, opt PutOptions) error {
	const op = "kv.Put"
	if size > MaxValueBytes {
		return errTooLarge
	}
	rec, err := n.prepare(ctx, op, key, opt)
	if err != nil {
		return err
	}
	if sp := n.s.ledger.space(n.uid); n.s.opt.QuotaBytes > 0 && size > 0 && size > n.s.opt.QuotaBytes {
		return ErrUnavailable.Newf(op, "the value alone is over the quota; %d bytes are used", sp.bytes.Load())
	}
	body := &bodyReader{ctx: ctx, r: r}
	d, got, err := n.s.blobs.ingest(body, MaxValueBytes)
	if body.err != nil {
		return fault.Wrap(fault.CodeOf(body.err), op, body.err)
	}
	if err != nil {
		return unavailable(op, err)
	}
	defer n.s.blobs.unpin(d)
	if size >= 0 && got != size {
		n.s.blobs.orphaned(0, []digest{d}, n.s.opt.clock())
		return fault.New(fault.Invalid, op, "the value does not have the length that was announced")
	}
	rec.Flags |= replica.Blob
	rec.Digest, rec.Size = d, uint64(got)
	if err := n.commit(op, change{n.uid, key, rec}); err != nil {
		n.s.blobs.orphaned(0, []digest{d}, n.s.opt.clock())
		return err
	}
	return nil
}

// bodyReader stops a copy when its caller gave up, and tells the body's failures from the disk's.
type bodyReader struct {
	ctx context.Context
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := 0, b.ctx.Err()
	if err == nil {
		n, err = b.r.Read(p)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// Delete removes a key; a key that is not there is no error. It returns when that is durable here. Errors: invalid_key,
// backend_unavailable.
func (n *Namespace) Delete(ctx context.Context, key string) error {
	const op = "kv.Delete"
	err := errors.Join(checkKey(op, key), n.check(ctx, op))
	if err == nil {
		err = n.commit(op, change{n.uid, key, replica.Record{Flags: replica.Deleted}})
	}
	n.s.opt.Metrics.calls["delete"].Count(err)
	return err
}

func (n *Namespace) commit(op string, c change) error {
	start := time.Now()
	err := n.s.commits.do(len(c.rec.Value)+256, func(t *tx) error { return t.write(c) })
	n.s.opt.Metrics.commit.Observe(time.Since(start).Seconds())
	return unavailable(op, err)
}

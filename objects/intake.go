package objects

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/zeebo/blake3"
)

// intake is a body that came in: its bytes are in memory or durable in a file that no metadata names yet. It belongs to one call.
type intake struct {
	size   int64
	sum    sum
	inline []byte // a part of the scratch
	file   bool   // else inline
	blob   id
	crcs   []uint32

	k       *bucket
	scratch *scratch
}

// scratchBytes is what one transfer holds, whatever its size. It divides a block.
const scratchBytes = 256 << 10

// The disk is told to begin after each of the first pieces, so that it writes while the rest is hashed, and then now and then.
const (
	earlyPieces = 1 << 20
	earlyBytes  = 8 << 20
)

// scratch is the memory of one transfer. A pool of them keeps a put of 4 KiB from making 260 KiB of garbage.
type scratch struct {
	buf  []byte
	hash *blake3.Hasher
}

var scratches = sync.Pool{New: func() any { return &scratch{buf: make([]byte, scratchBytes), hash: blake3.New()} }}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// limits say how long a body may be.
type limits struct {
	op     string
	length int64 // declared; below 0 if it was not
	most   int64 // counted beyond it: tooLong
	long   error
	named  bool // always a file
}

// ingest reads r to its end. Wrong lengths and failing readers are invalid_body and leave nothing. The caller calls release in any
// case where err is nil, after the metadata was committed or will not be.
func (k *bucket) ingest(ctx context.Context, r io.Reader, l limits) (in *intake, err error) {
	in = &intake{k: k, scratch: scratches.Get().(*scratch)}
	in.scratch.hash.Reset()
	defer func() {
		if err != nil {
			in.release(false)
			in = nil
		}
	}()
	n, end, err := in.fill(ctx, r, l)
	if err != nil {
		return in, err
	}
	if end && n <= inlineBytes && !l.named {
		in.inline = in.scratch.buf[:n]
		in.count(in.inline)
		return in, in.whole(l)
	}
	return in, in.spool(ctx, r, l, n, end)
}

// fill reads until the scratch is full or the body ends, and holds what was counted to the limits.
func (in *intake) fill(ctx context.Context, r io.Reader, l limits) (n int, end bool, err error) {
	for n < len(in.scratch.buf) && !end {
		if err := ctx.Err(); err != nil {
			return n, false, unavailable(l.op, err)
		}
		m, err := r.Read(in.scratch.buf[n:])
		n += m
		if total := in.size + int64(n); l.length >= 0 && total > l.length {
			return n, false, ErrInvalidBody.Newf(l.op, "the body has more than the declared %d bytes", l.length)
		} else if total > l.most {
			return n, false, l.long
		}
		switch {
		case err == io.EOF: // and nothing else: an error that wraps it tells of a body that was cut off
			end = true
		case err != nil && ctx.Err() != nil:
			return n, false, unavailable(l.op, ctx.Err())
		case err != nil:
			return n, false, ErrInvalidBody.Wrap(l.op, fmt.Errorf("read body: %w", err))
		}
	}
	in.k.s.opt.Metrics.received.Add(float64(n))
	return n, end, nil
}

// count takes p into size, hash and checksums.
func (in *intake) count(p []byte) {
	in.scratch.hash.Write(p)
	if in.file && len(p) > 0 {
		if in.size%blockBytes == 0 {
			in.crcs = append(in.crcs, 0)
		}
		last := len(in.crcs) - 1
		in.crcs[last] = crc32.Update(in.crcs[last], castagnoli, p)
	}
	in.size += int64(len(p))
}

// whole holds a body that ended to its declared length, and finishes the hash.
func (in *intake) whole(l limits) error {
	if l.length >= 0 && in.size != l.length {
		return ErrInvalidBody.Newf(l.op, "the body has %d bytes, declared are %d", in.size, l.length)
	}
	in.scratch.hash.Sum(in.sum[:0])
	return nil
}

// spool writes the body into a file, whose bytes and name are durable when it returns. Only then may metadata name it; until then a
// crash leaves at most a file that nobody knows, whole or not. The name comes before the first sync, which then mostly makes both
// durable: that is a fifth of the time of a put of 1 MiB.
func (in *intake) spool(ctx context.Context, r io.Reader, l limits, n int, end bool) (err error) {
	s := in.k.s
	d, err := s.files.create()
	if err != nil {
		return unavailable(l.op, err)
	}
	defer func() { err = errors.Join(err, unavailable(l.op, d.Close())) }()
	in.file = true
	early := int64(0)
	for {
		if early, err = in.append(d, l, n, early); err != nil {
			return err
		}
		if end {
			break
		}
		if n, end, err = in.fill(ctx, r, l); err != nil {
			return err
		}
	}
	if err := in.whole(l); err != nil {
		return err
	}
	in.blob = newID(s.opt.clock())
	s.garbage.protect(in.blob)
	if err := d.link(in.blob); err != nil {
		return unavailable(l.op, err)
	}
	if err := d.sync(); err != nil {
		return unavailable(l.op, err)
	}
	return unavailable(l.op, s.files.syncFolder(in.blob))
}

// append writes n bytes of the scratch; early is how far the disk was told to write, before and after.
func (in *intake) append(d draft, l limits, n int, early int64) (int64, error) {
	p := in.scratch.buf[:n]
	if err := in.k.room(l.op, in.k.pending.Add(int64(n))); err != nil {
		in.k.pending.Add(-int64(n))
		return early, err
	}
	in.count(p) // from here on, release gives back what was added to pending
	_, err := d.Write(p)
	if in.size <= earlyPieces || in.size-early >= earlyBytes {
		d.early(early, in.size-early)
		early = in.size
	}
	return early, unavailable(l.op, err)
}

// release frees what the intake holds; a file that was not committed is removed.
func (in *intake) release(committed bool) {
	if in.file {
		in.k.pending.Add(-in.size)
	}
	if in.blob != (id{}) {
		s := in.k.s
		if !committed {
			if err := s.files.remove(in.blob); err != nil {
				s.opt.Log.Warn("the file of a body that was not stored stays until it is collected", "err", err)
			}
		}
		s.garbage.unprotect(in.blob)
	}
	scratches.Put(in.scratch)
	in.scratch, in.inline = nil, nil
}

// store puts the body into a change and returns the head that names it.
func (in *intake) store(t *tx) *head {
	h := &head{size: in.size, sum: in.sum, uploaded: t.now}
	if in.file {
		h.kind, h.gen = fileBody, in.blob
		in.record(t)
	} else {
		h.kind, h.gen = inlineBody, newID(t.now)
		must(t.batch.Set(inlineKey(t.k.num, h.gen), in.inline, nil))
	}
	return h
}

func (in *intake) record(t *tx) {
	must(t.batch.Set(blobKey(in.blob), appendBlob(nil, &blob{size: in.size, crcs: in.crcs}), nil))
}

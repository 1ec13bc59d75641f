package objects

import (
	"context"

	"edged/internal/fault"
)

// Range is a part of a body.
type Range struct {
	Offset int64 // 0 to 5 GiB
	Length int64 // 1 to 5 GiB, 0 means to the end; overlong is to the end too
}

// GetOptions say what is read and under which condition. Etags are compared as they are: "*" is no etag of this store.
type GetOptions struct {
	IfMatch     string // the object has to have this etag; "" for no condition
	IfNoneMatch string // it has to have another
	Range       *Range // nil for all
}

// Get opens an object; ok is false if there is none, whatever the condition and range (objects §3). The object that is returned
// is of one generation: it reads the same bytes to its end although the key is overwritten or deleted meanwhile. The caller
// closes it. Errors: invalid_key, precondition_failed, range_not_satisfiable, backend_unavailable, Invalid for options.
func (b *Bucket) Get(ctx context.Context, key string, opt GetOptions) (o *Object, ok bool, err error) {
	const op = "objects.Get"
	defer func() { b.s.opt.Metrics.calls["get"].Count(err) }()
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return nil, false, err
	}
	if err := opt.check(op); err != nil {
		return nil, false, err
	}
	for { // each turn means that somebody else replaced the object
		h, err := k.head(key)
		if err != nil || h == nil {
			return nil, false, unavailable(op, err)
		}
		if err := opt.holds(op, h); err != nil {
			return nil, false, err
		}
		r, err := opt.Range.within(op, h.size)
		if err != nil {
			return nil, false, err
		}
		o, err := k.open(key, h, r)
		if err != nil {
			return nil, false, unavailable(op, err)
		}
		if o != nil {
			o.Partial = opt.Range != nil
			return o, true, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, false, unavailable(op, err)
		}
	}
}

func (o *GetOptions) check(op string) error {
	if o.IfMatch != "" && o.IfNoneMatch != "" {
		return fault.New(fault.Invalid, op, "there is one condition at most")
	}
	if r := o.Range; r != nil && (r.Offset < 0 || r.Offset > MaxObjectBytes || r.Length < 0 || r.Length > MaxObjectBytes) {
		return fault.New(fault.Invalid, op, "a range is within 5 GiB")
	}
	return checkChars(op, "an etag", o.IfMatch+o.IfNoneMatch, MaxEtagChars)
}

func (o *GetOptions) holds(op string, h *head) error {
	if etag := h.etag(); o.IfMatch != "" && o.IfMatch != etag || o.IfNoneMatch != "" && o.IfNoneMatch == etag {
		return ErrPrecondition.New(op, "the etag is "+etag)
	}
	return nil
}

// within returns what of a body of size bytes a range means; nil means all.
func (r *Range) within(op string, size int64) (Range, error) {
	if r == nil {
		return Range{0, size}, nil
	}
	if r.Offset >= size {
		return Range{}, ErrRange.Newf(op, "the object has %d bytes", size)
	}
	left := size - r.Offset
	if r.Length == 0 || r.Length > left {
		return Range{r.Offset, left}, nil
	}
	return *r, nil
}

// open makes a reader of a head; nil if the head has been replaced by now.
func (k *bucket) open(key string, h *head, r Range) (*Object, error) {
	o := &Object{Info: h.info(key), Range: r, s: k.s, head: h, pos: r.Offset, end: r.Offset + r.Length}
	if h.kind == inlineBody {
		v, closer, err := k.s.db.Get(inlineKey(k.num, h.gen))
		if err == nil {
			if int64(len(v)) != h.size {
				err = errRecord
			} else {
				o.inline = append([]byte{}, v[r.Offset:r.Offset+r.Length]...)
			}
			return o, joinClose(err, closer)
		}
		return nil, k.lost(key, h, err)
	}
	k.s.garbage.retain(h.gen)
	now, err := k.head(key)
	if err != nil || now == nil || now.gen != h.gen {
		k.s.garbage.release(h.gen)
		return nil, err
	}
	return o, nil
}

// lost decides what it means that a body is not there: nothing, if the object is another one by now.
func (k *bucket) lost(key string, h *head, cause error) error {
	now, err := k.head(key)
	if err != nil || now == nil || now.gen != h.gen {
		return err
	}
	k.s.opt.Metrics.damaged.Inc()
	return cause
}

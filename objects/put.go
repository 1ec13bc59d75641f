package objects

import (
	"context"
	"io"
	"time"

	"edged/internal/fault"
)

// PutOptions say how a body is stored.
type PutOptions struct {
	Length      int64  // declared length of the body; -1 if it is not known: then it is counted (objects §6)
	ContentType string // up to 256 code points, "" for none
	IfMatch     string // the object has to have this etag; "" for no condition
	IfNoneMatch bool   // there has to be no object
}

// Put stores an object under key, in place of the one that is there (objects §3). The body is read once, to its end, with at most
// 256 KiB of it in memory; nothing is stored if it is not as long as declared or fails. Conditions are asked before the body is
// read and decide again, in one step with the object's becoming visible. When Put returns, the object is durable; it is seen by
// readers shortly before. ctx is looked at between reads: whoever cancels also ends the reader.
//
// Errors: invalid_key, invalid_body, value_too_large (over 300 MiB; before reading if declared), precondition_failed,
// backend_unavailable, Invalid for options.
func (b *Bucket) Put(ctx context.Context, key string, body io.Reader, opt PutOptions) (info Info, err error) {
	const op = "objects.Put"
	defer func() { b.s.opt.Metrics.calls["put"].Count(err) }()
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return Info{}, err
	}
	if err := opt.check(op); err != nil {
		return Info{}, err
	}
	if err := k.early(op, key, opt); err != nil {
		return Info{}, err
	}
	in, err := k.ingest(ctx, body, limits{op: op, length: opt.Length, most: MaxPutBytes, long: errPutTooLarge})
	if err != nil {
		return Info{}, err
	}
	began := time.Now()
	err = k.change(op, func(t *tx) error {
		old, err := k.head(key)
		if err != nil {
			return err
		}
		if err := opt.holds(op, old); err != nil {
			return err
		}
		h := in.store(t)
		h.ctype = opt.ContentType
		t.replace(key, old, h)
		info = h.info(key)
		return nil
	})
	in.release(err == nil)
	if err != nil {
		return Info{}, err
	}
	b.s.opt.Metrics.commit.Observe(time.Since(began).Seconds())
	return info, nil
}

var errPutTooLarge = ErrValueTooLarge.New("objects.Put", "a put takes up to 314572800 bytes; use a multipart upload")

func (o *PutOptions) check(op string) error {
	switch {
	case o.Length < -1:
		return fault.New(fault.Invalid, op, "a length is not below zero")
	case o.Length > MaxPutBytes:
		return errPutTooLarge
	case o.IfMatch != "" && o.IfNoneMatch:
		return fault.New(fault.Invalid, op, "there is one condition at most")
	}
	return checkCondition(op, o.ContentType, o.IfMatch)
}

func checkCondition(op, ctype, etag string) error {
	if err := checkChars(op, "a content type", ctype, MaxContentTypeChars); err != nil {
		return err
	}
	return checkChars(op, "an etag", etag, MaxEtagChars)
}

// holds reports whether the condition holds for the object that is there, nil for none.
func (o *PutOptions) holds(op string, there *head) error {
	if o.IfNoneMatch && there != nil {
		return ErrPrecondition.New(op, "there is an object under this key")
	}
	if o.IfMatch != "" && (there == nil || there.etag() != o.IfMatch) {
		return ErrPrecondition.New(op, "the object has another etag")
	}
	return nil
}

// early spares whoever would be refused the sending of the body.
func (k *bucket) early(op, key string, opt PutOptions) error {
	if err := k.room(op, k.pending.Load()+max(opt.Length, 0)); err != nil {
		return err
	}
	if opt.IfMatch == "" && !opt.IfNoneMatch {
		return nil
	}
	h, err := k.head(key)
	if err != nil {
		return unavailable(op, err)
	}
	return opt.holds(op, h)
}

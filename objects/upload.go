package objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"edged/internal/fault"
)

// CreateMultipartUpload begins an upload of key and returns its id, 32 characters. It neither reserves nor changes the key
// (objects §3.4). contentType has up to 256 code points, "" for none. Errors: invalid_key, backend_unavailable, Invalid.
func (b *Bucket) CreateMultipartUpload(ctx context.Context, key, contentType string) (uploadID string, err error) {
	const op = "objects.CreateMultipartUpload"
	defer func() { b.s.opt.Metrics.calls["create_upload"].Count(err) }()
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return "", err
	}
	if err := checkCondition(op, contentType, ""); err != nil {
		return "", err
	}
	if err := k.room(op, k.pending.Load()); err != nil {
		return "", err
	}
	var up id
	err = k.change(op, func(t *tx) error {
		up = newID(t.now)
		u := &upload{key: key, ctype: contentType, created: t.now, touched: t.now}
		t.usage.uploads++
		t.usage.bytes += u.weight()
		must(t.batch.Set(uploadKey(k.num, up), appendUpload(nil, u), nil))
		return nil
	})
	if err != nil {
		return "", err
	}
	return up.String(), nil
}

// upload returns an upload of key, or upload_not_found.
func (k *bucket) upload(op, key, uploadID string) (id, *upload, error) {
	up, ok := parseID(uploadID)
	if !ok {
		return up, nil, noUpload(op)
	}
	v, err := k.s.get(uploadKey(k.num, up))
	if err != nil {
		return up, nil, err
	}
	if v == nil {
		return up, nil, noUpload(op)
	}
	u, err := readUpload(v)
	if err == nil && u.key != key {
		err = noUpload(op)
	}
	return up, u, err
}

func noUpload(op string) error {
	return ErrUploadNotFound.New(op, "there is no such upload of this key")
}

// part returns a stored part, nil if there is none.
func (k *bucket) part(up id, number int) (*part, error) {
	v, err := k.s.get(partKey(k.num, up, number))
	if err != nil || v == nil {
		return nil, err
	}
	return readPart(v)
}

// UploadPart stores a part of an upload, in place of an earlier one of its number, and returns its etag. length is that of the body,
// -1 if it is not known; the body is read as by Put. Errors: invalid_key, invalid_body (also over 5 GiB), upload_not_found,
// backend_unavailable, Invalid for a number outside 1 to 10000.
func (b *Bucket) UploadPart(ctx context.Context, key, uploadID string, number int, body io.Reader, length int64) (etag string, err error) {
	const op = "objects.UploadPart"
	defer func() { b.s.opt.Metrics.calls["upload_part"].Count(err) }()
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return "", err
	}
	switch {
	case number < 1 || number > MaxParts:
		return "", fault.New(fault.Invalid, op, "a part number is 1 to 10000")
	case length < -1:
		return "", fault.New(fault.Invalid, op, "a length is not below zero")
	case length > MaxObjectBytes:
		return "", errPartTooLarge
	}
	if _, _, err := k.upload(op, key, uploadID); err != nil {
		return "", unavailable(op, err)
	}
	if err := k.room(op, k.pending.Load()+max(length, 0)); err != nil {
		return "", err
	}
	in, err := k.ingest(ctx, body, limits{op: op, length: length, most: MaxObjectBytes, long: errPartTooLarge, named: true})
	if err != nil {
		return "", err
	}
	began := time.Now()
	err = k.change(op, func(t *tx) error { return t.storePart(op, key, uploadID, number, in) })
	etag = in.sum.String()
	in.release(err == nil)
	if err != nil {
		return "", err
	}
	b.s.opt.Metrics.commit.Observe(time.Since(began).Seconds())
	return etag, nil
}

var errPartTooLarge = ErrInvalidBody.New("objects.UploadPart", "a part has up to 5368709120 bytes")

func (t *tx) storePart(op, key, uploadID string, number int, in *intake) error {
	k := t.k
	up, u, err := k.upload(op, key, uploadID)
	if err != nil {
		return err
	}
	old, err := k.part(up, number)
	if err != nil {
		return err
	}
	if old != nil {
		t.dropPart(old)
	}
	p := &part{blob: in.blob, size: in.size, sum: in.sum, uploaded: t.now}
	t.usage.bytes += p.weight()
	u.touched = t.now
	in.record(t)
	must(t.batch.Set(partKey(k.num, up, number), appendPart(nil, p), nil))
	must(t.batch.Set(uploadKey(k.num, up), appendUpload(nil, u), nil))
	return nil
}

// dropPart gives a part up.
func (t *tx) dropPart(p *part) {
	t.usage.bytes -= p.weight()
	t.give(p.blob, []id{p.blob})
}

// AbortMultipartUpload discards an upload and its parts; the key stays as it is. Errors: invalid_key, upload_not_found,
// backend_unavailable.
func (b *Bucket) AbortMultipartUpload(ctx context.Context, key, uploadID string) (err error) {
	const op = "objects.AbortMultipartUpload"
	defer func() { b.s.opt.Metrics.calls["abort_upload"].Count(err) }()
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return err
	}
	return k.change(op, func(t *tx) error {
		up, u, err := k.upload(op, key, uploadID)
		if err != nil {
			return err
		}
		return t.endUpload(up, u, nil)
	})
}

// endUpload removes an upload with all its parts; the files of those in keep stay.
func (t *tx) endUpload(up id, u *upload, keep map[int]bool) error {
	k := t.k
	from := partsKey(k.num, up)
	to := append(partsKey(k.num, up), 0xff, 0xff)
	err := k.s.scan(from, to, func(key, v []byte) error {
		p, err := readPart(v)
		if err != nil {
			return err
		}
		if keep[partNumber(key)] {
			t.usage.bytes -= p.weight()
		} else {
			t.dropPart(p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.usage.uploads--
	t.usage.bytes -= u.weight()
	must(t.batch.Delete(uploadKey(k.num, up), nil))
	must(t.batch.DeleteRange(from, to, nil))
	return nil
}

// uploadIdle is how long an upload may be without a new part.
const uploadIdle = 7 * 24 * time.Hour

// abandon aborts uploads that had no new part for long.
func (s *Store) abandon(ctx context.Context) error {
	var errs []error
	for _, b := range s.all() {
		old, err := b.idleUploads()
		errs = append(errs, err)
		for _, up := range old {
			errs = append(errs, b.abandon(up), ctx.Err())
		}
	}
	return errors.Join(errs...)
}

func (k *bucket) idleUploads() (old []id, err error) {
	before := k.s.opt.clock() - uploadIdle.Milliseconds()
	err = k.s.scan(bucketKey(uploadClass, k.num), bucketEnd(uploadClass, k.num), func(key, v []byte) error {
		u, err := readUpload(v)
		if err == nil && u.touched <= before && len(old) < sweepStep {
			old = append(old, id(bytes.Clone(key[bucketKeyLen:])))
		}
		return err
	})
	return old, err
}

func (k *bucket) abandon(up id) error {
	const op = "objects.Sweep"
	before := k.s.opt.clock() - uploadIdle.Milliseconds()
	return k.change(op, func(t *tx) error {
		v, err := k.s.get(uploadKey(k.num, up))
		if err != nil || v == nil {
			return err
		}
		u, err := readUpload(v)
		if err != nil || u.touched > before { // it got a part since
			return err
		}
		k.s.opt.Metrics.removed["upload"].Inc()
		return t.endUpload(up, u, nil)
	})
}

package objects

import (
	"context"

	"github.com/zeebo/blake3"

	"edged/internal/fault"
)

// Part names an uploaded part.
type Part struct {
	Number int    // 1 to 10000
	ETag   string // as UploadPart returned it
}

// CompleteMultipartUpload makes the listed parts, in ascending order of their numbers, the object of key, and discards the others.
// No byte is copied (objects §3.4). A failure changes nothing. Errors: invalid_key, upload_not_found, invalid_part (unknown or
// stale; all but the last have at least 5 MiB and are of one length), value_too_large (over 5 GiB in all), backend_unavailable,
// Invalid for a list that is empty, over 10000 long, unordered, or names a number or etag outside the limits.
func (b *Bucket) CompleteMultipartUpload(ctx context.Context, key, uploadID string, parts []Part) (info Info, err error) {
	const op = "objects.CompleteMultipartUpload"
	defer func() { b.s.opt.Metrics.calls["complete_upload"].Count(err) }()
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return Info{}, err
	}
	if err := checkParts(op, parts); err != nil {
		return Info{}, err
	}
	err = k.change(op, func(t *tx) error {
		up, u, err := k.upload(op, key, uploadID)
		if err != nil {
			return err
		}
		h, err := k.assemble(op, up, parts)
		if err != nil {
			return err
		}
		old, err := k.head(key)
		if err != nil {
			return err
		}
		keep := make(map[int]bool, len(parts))
		for _, p := range parts {
			keep[p.Number] = true
		}
		if err := t.endUpload(up, u, keep); err != nil {
			return err
		}
		h.gen, h.ctype, h.uploaded = newID(t.now), u.ctype, t.now
		t.replace(key, old, h)
		info = h.info(key)
		return nil
	})
	if err != nil {
		return Info{}, err
	}
	return info, nil
}

func checkParts(op string, parts []Part) error {
	if len(parts) == 0 || len(parts) > MaxParts {
		return fault.New(fault.Invalid, op, "an upload is completed with 1 to 10000 parts")
	}
	last := 0
	for _, p := range parts {
		if p.Number <= last || p.Number > MaxParts {
			return fault.New(fault.Invalid, op, "part numbers ascend from 1 to 10000")
		}
		if p.ETag == "" {
			return fault.New(fault.Invalid, op, "every part has an etag")
		}
		if err := checkChars(op, "an etag", p.ETag, MaxEtagChars); err != nil {
			return err
		}
		last = p.Number
	}
	return nil
}

// assemble returns the head of the object that the parts make.
func (k *bucket) assemble(op string, up id, parts []Part) (*head, error) {
	h := &head{kind: manifestBody}
	hash := blake3.New()
	tooSmall := false
	for i, want := range parts {
		p, err := k.part(up, want.Number)
		if err != nil {
			return nil, err
		}
		if p == nil || p.sum.String() != want.ETag {
			return nil, ErrInvalidPart.Newf(op, "part %d was not uploaded, or has another etag", want.Number)
		}
		if i == 0 {
			h.partLen = p.size
		}
		if i < len(parts)-1 && (p.size < MinPartBytes || p.size != h.partLen) {
			tooSmall = true
		}
		h.blobs = append(h.blobs, p.blob)
		h.size += p.size
		hash.Write(p.sum[:])
	}
	switch {
	case tooSmall:
		return nil, ErrInvalidPart.New(op, "all parts but the last have one length of at least 5242880 bytes")
	case h.size > MaxObjectBytes:
		return nil, ErrValueTooLarge.New(op, "an object has up to 5368709120 bytes")
	}
	hash.Sum(h.sum[:0])
	return h, nil
}

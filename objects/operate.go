package objects

import (
	"context"
	"errors"
)

// BucketStat is what a bucket holds.
type BucketStat struct {
	Objects int64
	Uploads int64 // open multipart uploads
	Bytes   int64 // what counts for the quota: bodies, parts, keys and an overhead for each
	Quota   int64 // 0 for none
}

// Stat returns what one bucket holds. Errors: backend_unavailable when it is not here.
func (s *Store) Stat(uid string) (BucketStat, error) {
	k, err := s.find("objects.Stat", uid)
	if err != nil {
		return BucketStat{}, err
	}
	return k.stat(), nil
}

func (k *bucket) stat() BucketStat {
	k.mu.Lock()
	defer k.mu.Unlock()
	return BucketStat{Objects: k.usage.objects, Uploads: k.usage.uploads, Bytes: k.usage.bytes, Quota: k.s.opt.QuotaBytes}
}

// OpenUpload is a multipart upload that is neither completed nor aborted.
type OpenUpload struct {
	Key, ID   string
	CreatedMs int64 // Unix milliseconds
	TouchedMs int64 // when the last part came
}

// Uploads returns up to 1000 open uploads of the bucket whose ids follow after, oldest first; "" begins.
func (b *Bucket) Uploads(ctx context.Context, after string) (page []OpenUpload, err error) {
	const op = "objects.Uploads"
	k, err := b.s.find(op, b.uid)
	if err != nil {
		return nil, err
	}
	from := bucketKey(uploadClass, k.num)
	if up, ok := parseID(after); ok {
		from = append(uploadKey(k.num, up), 0)
	}
	err = k.s.scan(from, bucketEnd(uploadClass, k.num), func(key, v []byte) error {
		if len(page) == MaxListLimit {
			return errStop
		}
		u, err := readUpload(v)
		if err == nil {
			page = append(page, OpenUpload{u.key, id(key[bucketKeyLen:]).String(), u.created, u.touched})
		}
		return err
	})
	return page, ended(ctx, op, err)
}

// StoredPart is a part of an open upload.
type StoredPart struct {
	Part
	Size       int64
	UploadedMs int64 // Unix milliseconds
}

// Parts returns up to 1000 parts of an open upload with numbers over after, in order. Errors: invalid_key, upload_not_found,
// backend_unavailable.
func (b *Bucket) Parts(ctx context.Context, key, uploadID string, after int) (page []StoredPart, err error) {
	const op = "objects.Parts"
	k, err := b.begin(ctx, op, key)
	if err != nil {
		return nil, err
	}
	up, _, err := k.upload(op, key, uploadID)
	if err != nil {
		return nil, unavailable(op, err)
	}
	if after = max(after, 0); after >= MaxParts {
		return nil, nil
	}
	err = k.s.scan(partKey(k.num, up, after+1), partKey(k.num, up, MaxParts+1), func(key, v []byte) error {
		if len(page) == MaxListLimit {
			return errStop
		}
		p, err := readPart(v)
		if err == nil {
			page = append(page, StoredPart{Part{partNumber(key), p.sum.String()}, p.size, p.uploaded})
		}
		return err
	})
	return page, ended(ctx, op, err)
}

// ended is the outcome of a scan for a page.
func ended(ctx context.Context, op string, err error) error {
	if errors.Is(err, errStop) {
		err = nil
	}
	if err == nil {
		err = ctx.Err()
	}
	return unavailable(op, err)
}

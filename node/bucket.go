package node

import (
	"context"
	"io"

	"edged/objects"
	"edged/sandbox/binding"
)

// bucketDoor is an object bucket as a worker's binding.
type bucketDoor struct{ b *objects.Bucket }

func infoOf(i objects.Info) binding.ObjectInfo {
	return binding.ObjectInfo{Key: i.Key, ETag: i.ETag, Size: i.Size, ContentType: i.ContentType, UploadedMillis: i.UploadedMs}
}

// Head is binding.Bucket's.
func (d bucketDoor) Head(ctx context.Context, key string) (binding.ObjectInfo, bool, error) {
	info, found, err := d.b.Head(ctx, key)
	return infoOf(info), found, err
}

// Get is binding.Bucket's.
func (d bucketDoor) Get(ctx context.Context, key string, q binding.ObjectQuery) (o binding.Object, body io.ReadCloser, found bool, err error) {
	opt := objects.GetOptions{IfMatch: q.IfMatch, IfNoneMatch: q.IfNoneMatch}
	if q.Ranged {
		opt.Range = &objects.Range{Offset: q.Offset, Length: q.Length}
	}
	object, found, err := d.b.Get(ctx, key, opt)
	if err != nil || !found {
		return o, nil, false, err
	}
	return binding.Object{ObjectInfo: infoOf(object.Info), Offset: object.Range.Offset, Length: object.Range.Length}, object, true, nil
}

// Put is binding.Bucket's.
func (d bucketDoor) Put(ctx context.Context, key string, body io.Reader, p binding.ObjectPut) (binding.ObjectInfo, error) {
	info, err := d.b.Put(ctx, key, body, objects.PutOptions{Length: p.Length, ContentType: p.ContentType, IfMatch: p.IfMatch, IfNoneMatch: p.IfAbsent})
	return infoOf(info), err
}

// Delete is binding.Bucket's.
func (d bucketDoor) Delete(ctx context.Context, key string) error { return d.b.Delete(ctx, key) }

// List is binding.Bucket's.
func (d bucketDoor) List(ctx context.Context, q binding.ObjectListQuery) (binding.ObjectPage, error) {
	page, err := d.b.List(ctx, objects.ListOptions{Prefix: q.Prefix, Delimiter: q.Delimiter, Limit: q.Limit, Cursor: q.Cursor})
	out := binding.ObjectPage{Objects: make([]binding.ObjectInfo, len(page.Objects)), Prefixes: page.Prefixes, Cursor: page.Cursor}
	for i, o := range page.Objects {
		out.Objects[i] = infoOf(o)
	}
	return out, err
}

// CreateMultipartUpload is binding.Bucket's.
func (d bucketDoor) CreateMultipartUpload(ctx context.Context, key, contentType string) (string, error) {
	return d.b.CreateMultipartUpload(ctx, key, contentType)
}

// UploadPart is binding.Bucket's.
func (d bucketDoor) UploadPart(ctx context.Context, key, uploadID string, number int, body io.Reader, length int64) (string, error) {
	return d.b.UploadPart(ctx, key, uploadID, number, body, length)
}

// CompleteMultipartUpload is binding.Bucket's.
func (d bucketDoor) CompleteMultipartUpload(ctx context.Context, key, uploadID string, parts []binding.ObjectPart) (binding.ObjectInfo, error) {
	list := make([]objects.Part, len(parts))
	for i, p := range parts {
		list[i] = objects.Part(p)
	}
	info, err := d.b.CompleteMultipartUpload(ctx, key, uploadID, list)
	return infoOf(info), err
}

// AbortMultipartUpload is binding.Bucket's.
func (d bucketDoor) AbortMultipartUpload(ctx context.Context, key, uploadID string) error {
	return d.b.AbortMultipartUpload(ctx, key, uploadID)
}

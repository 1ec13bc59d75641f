package front

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3response"
)

// info is an object without its body, as the node tells it.
type info struct {
	Key         string  `json:"key"`
	ETag        string  `json:"etag"`
	Size        int64   `json:"size"`
	ContentType string  `json:"contentType"`
	Uploaded    *string `json:"uploaded"`
}

// modified is when the object was stored, in the whole seconds that HTTP knows.
func (i info) modified() time.Time { return instant(i.Uploaded).Truncate(time.Second) }

func quoted(etag string) *string {
	s := `"` + etag + `"`
	return &s
}

// page is one page of a listing as the node tells it.
type page struct {
	Objects  []info   `json:"objects"`
	Prefixes []string `json:"prefixes"`
	Next     *string  `json:"nextCursor"`
}

// list asks for one page; cursor goes before after. most 0 is an empty page without a question.
func (f *front) list(b bucket, prefix, delimiter, cursor, after string, most int32) (p page, err error) {
	if most == 0 {
		return page{}, nil
	}
	query := url.Values{"prefix": {prefix}, "limit": {strconv.Itoa(int(min(most, 1000)))}}
	if delimiter != "" {
		query.Set("delimiter", delimiter)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	} else if after != "" {
		query.Set("after", after)
	}
	return p, f.told("objects.list", f.ask(b.call("GET", "objects", query), &p))
}

func (p page) contents(owner *types.Owner) []s3response.Object {
	out := make([]s3response.Object, len(p.Objects))
	for i, o := range p.Objects {
		modified := o.modified()
		out[i] = s3response.Object{Key: &o.Key, ETag: quoted(o.ETag), Size: &o.Size, LastModified: &modified, Owner: owner, StorageClass: types.ObjectStorageClassStandard}
	}
	return out
}

func (p page) common() []types.CommonPrefix {
	out := make([]types.CommonPrefix, len(p.Prefixes))
	for i := range p.Prefixes {
		out[i].Prefix = &p.Prefixes[i]
	}
	return out
}

// last is the entry with which the page ends, "" if it has none.
func (p page) last() (last string) {
	if n := len(p.Objects); n > 0 {
		last = p.Objects[n-1].Key
	}
	if n := len(p.Prefixes); n > 0 {
		last = max(last, p.Prefixes[n-1])
	}
	return last
}

// ListObjectsV2 lists a page; the continuation token is the node's cursor.
func (f *front) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input) (s3response.ListObjectsV2Result, error) {
	b, err := f.find(ctx, in.Bucket)
	if err != nil {
		return s3response.ListObjectsV2Result{}, err
	}
	p, err := f.list(b, *in.Prefix, *in.Delimiter, *in.ContinuationToken, *in.StartAfter, *in.MaxKeys)
	if err != nil {
		return s3response.ListObjectsV2Result{}, err
	}
	var owner *types.Owner
	if in.FetchOwner != nil && *in.FetchOwner {
		owner = &types.Owner{ID: &f.opt.Access}
	}
	count, truncated := int32(len(p.Objects)+len(p.Prefixes)), p.Next != nil
	return s3response.ListObjectsV2Result{
		Name: in.Bucket, Prefix: given(in.Prefix), Delimiter: given(in.Delimiter), StartAfter: given(in.StartAfter), MaxKeys: in.MaxKeys,
		ContinuationToken: given(in.ContinuationToken), NextContinuationToken: p.Next, IsTruncated: &truncated, KeyCount: &count,
		Contents: p.contents(owner), CommonPrefixes: p.common(),
	}, nil
}

// ListObjects lists a page behind a marker, which is a key or a common prefix.
func (f *front) ListObjects(ctx context.Context, in *s3.ListObjectsInput) (s3response.ListObjectsResult, error) {
	b, err := f.find(ctx, in.Bucket)
	if err != nil {
		return s3response.ListObjectsResult{}, err
	}
	p, err := f.list(b, *in.Prefix, *in.Delimiter, "", *in.Marker, *in.MaxKeys)
	if err != nil {
		return s3response.ListObjectsResult{}, err
	}
	truncated := p.Next != nil
	out := s3response.ListObjectsResult{
		Name: in.Bucket, Prefix: given(in.Prefix), Delimiter: given(in.Delimiter), Marker: given(in.Marker), MaxKeys: in.MaxKeys,
		IsTruncated: &truncated, Contents: p.contents(&types.Owner{ID: &f.opt.Access}), CommonPrefixes: p.common(),
	}
	if truncated {
		last := p.last()
		out.NextMarker = &last
	}
	return out, nil
}

// given is nil for an empty parameter, which an answer leaves out.
func given(s *string) *string {
	if s == nil || *s == "" {
		return nil
	}
	return s
}

package front

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// keyed finds the bucket and holds a key and a version to what it can have.
func (f *front) keyed(ctx context.Context, name, key, version *string) (bucket, error) {
	if n := int64(len(*key)); n > maxKeyBytes {
		return bucket{}, s3err.GetKeyTooLongErr(n, maxKeyBytes)
	}
	if given(version) != nil && *version != "null" {
		return bucket{}, unmapped("versions are")
	}
	return f.find(ctx, name)
}

// head asks for an object without its body.
func (f *front) head(b bucket, key *string) (i info, err error) {
	return i, f.told("objects.head", f.ask(b.call("GET", "head", ofKey(key)), &i))
}

// conditions are those of a read.
type conditions struct {
	match, noneMatch *string
	since, notSince  *time.Time
	part             *int32
	rangeHeader      string
}

// served is what a read is answered with.
type served struct {
	info
	offset, length int64
	contentRange   *string // nil for the whole
}

// read asks for an object's head and judges a read by it.
func (f *front) read(b bucket, key *string, c conditions) (s served, err error) {
	if c.part != nil {
		return s, unmapped("parts of a finished object are")
	}
	if s.info, err = f.head(b, key); err != nil {
		return s, err
	}
	err = backend.EvaluatePreconditions(s.ETag, s.modified(), backend.PreConditions{
		IfMatch: c.match, IfNoneMatch: c.noneMatch, IfModSince: c.since, IfUnmodeSince: c.notSince,
	})
	if err != nil {
		return s, err
	}
	var part bool
	if s.offset, s.length, part, err = backend.ParseObjectRange(s.Size, c.rangeHeader); err == nil && part {
		text := fmt.Sprintf("bytes %d-%d/%d", s.offset, s.offset+s.length-1, s.Size)
		s.contentRange = &text
	}
	return s, err
}

func (s served) contentType() *string {
	if s.ContentType == "" {
		return nil
	}
	return &s.ContentType
}

var acceptRanges = "bytes"

// HeadObject answers with what is known of an object.
func (f *front) HeadObject(ctx context.Context, in *s3.HeadObjectInput) (*s3.HeadObjectOutput, error) {
	b, err := f.keyed(ctx, in.Bucket, in.Key, in.VersionId)
	if err != nil {
		return nil, err
	}
	s, err := f.read(b, in.Key, conditions{in.IfMatch, in.IfNoneMatch, in.IfModifiedSince, in.IfUnmodifiedSince, in.PartNumber, *in.Range})
	if err != nil {
		return nil, err
	}
	modified := s.modified()
	return &s3.HeadObjectOutput{
		ETag: quoted(s.ETag), ContentLength: &s.length, ContentRange: s.contentRange, ContentType: s.contentType(), LastModified: &modified,
		AcceptRanges: &acceptRanges, StorageClass: types.StorageClassStandard,
	}, nil
}

// maxOverwritten bounds how often a get begins again because the object was replaced between its head and its body.
const maxOverwritten = 5

// GetObject streams an object or a range of it: the very bytes whose etag and length the answer tells.
func (f *front) GetObject(ctx context.Context, in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
	b, err := f.keyed(ctx, in.Bucket, in.Key, in.VersionId)
	if err != nil {
		return nil, err
	}
	for range maxOverwritten {
		s, err := f.read(b, in.Key, conditions{in.IfMatch, in.IfNoneMatch, in.IfModifiedSince, in.IfUnmodifiedSince, in.PartNumber, *in.Range})
		if err != nil {
			return nil, err
		}
		query := url.Values{"key": {*in.Key}, "if-match": {s.ETag}}
		if s.contentRange != nil {
			query.Set("offset", strconv.FormatInt(s.offset, 10))
			query.Set("length", strconv.FormatInt(s.length, 10))
		}
		body, err := f.open(ctx, b.call("GET", "object", query))
		if isProblem(err, "precondition_failed") {
			continue
		}
		if err != nil {
			return nil, f.told("objects.get", err)
		}
		modified := s.modified()
		return &s3.GetObjectOutput{
			Body: body, ETag: quoted(s.ETag), ContentLength: &s.length, ContentRange: s.contentRange, ContentType: s.contentType(),
			LastModified: &modified, AcceptRanges: &acceptRanges, StorageClass: types.StorageClassStandard,
		}, nil
	}
	return nil, errUnavailable
}

// GetObjectAttributes answers with those that a bucket knows.
func (f *front) GetObjectAttributes(ctx context.Context, in *s3.GetObjectAttributesInput) (s3response.GetObjectAttributesResponse, error) {
	b, err := f.keyed(ctx, in.Bucket, in.Key, in.VersionId)
	if err != nil {
		return s3response.GetObjectAttributesResponse{}, err
	}
	i, err := f.head(b, in.Key)
	if err != nil {
		return s3response.GetObjectAttributesResponse{}, err
	}
	modified := i.modified()
	return s3response.GetObjectAttributesResponse{ETag: &i.ETag, ObjectSize: &i.Size, StorageClass: types.StorageClassStandard, LastModified: &modified}, nil
}

// kept holds what a client says of an object to what a bucket keeps: its content type.
type kept struct {
	metadata                                        map[string]string
	encoding, disposition, language, cache, expires *string
	tags, redirect                                  *string
	locked                                          bool
}

func (f *front) keeps(k kept) error {
	switch {
	case k.locked:
		return unmapped("object locks are")
	case given(k.tags) != nil:
		return unmapped("tags are")
	case given(k.redirect) != nil:
		return unmapped("redirects are")
	case f.opt.DropMetadata:
		return nil
	case len(k.metadata) > 0:
		return unmapped("metadata of users is")
	}
	encoding := strings.Trim(strings.ReplaceAll(*k.encoding, "aws-chunked", ""), ", ") // that is the body's way here
	for name, value := range map[string]string{"Content-Encoding": encoding, "Content-Disposition": *k.disposition, "Content-Language": *k.language,
		"Cache-Control": *k.cache, "Expires": *k.expires} {
		if value != "" {
			return unmapped(name + " is")
		}
	}
	return nil
}

// PutObject stores an object.
func (f *front) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	b, err := f.keyed(ctx, in.Bucket, in.Key, nil)
	if err != nil {
		return s3response.PutObjectOutput{}, err
	}
	err = f.keeps(kept{in.Metadata, in.ContentEncoding, in.ContentDisposition, in.ContentLanguage, in.CacheControl, in.Expires, in.Tagging,
		in.WebsiteRedirectLocation, in.ObjectLockMode != "" || in.ObjectLockLegalHoldStatus != ""})
	if err != nil {
		return s3response.PutObjectOutput{}, err
	}
	query, err := putQuery(in)
	if err != nil {
		return s3response.PutObjectOutput{}, err
	}
	body, err := check(in.Body, sums{in.ChecksumCRC32, in.ChecksumCRC32C, in.ChecksumCRC64NVME, in.ChecksumMD5, in.ChecksumSHA1,
		in.ChecksumSHA256, in.ChecksumSHA512, in.ChecksumXXHASH64, in.ChecksumXXHASH3, in.ChecksumXXHASH128})
	if err != nil {
		return s3response.PutObjectOutput{}, err
	}
	var i info
	err = f.send(ctx, b.call("PUT", "object", query), body, *in.ContentLength, &i)
	if err != nil {
		return s3response.PutObjectOutput{}, f.unmatched(b, in.Key, in.IfMatch, err)
	}
	s := body.sums()
	return s3response.PutObjectOutput{ETag: *quoted(i.ETag), ChecksumCRC32: s[0], ChecksumCRC32C: s[1], ChecksumCRC64NVME: s[2], ChecksumMD5: s[3],
		ChecksumSHA1: s[4], ChecksumSHA256: s[5], ChecksumSHA512: s[6], ChecksumXXHASH64: s[7], ChecksumXXHASH3: s[8], ChecksumXXHASH128: s[9]}, nil
}

// putQuery says what the node is to do with a body, or why it cannot be asked to.
func putQuery(in s3response.PutObjectInput) (url.Values, error) {
	switch {
	case *in.ContentLength > maxPutBytes:
		return nil, s3err.GetEntityTooLargeErr(*in.ContentLength, maxPutBytes)
	case in.IfMatch != nil && in.IfNoneMatch != nil:
		return nil, s3err.GetNotImplementedErr("If-Match,If-None-Match", s3err.NmpAdditionalMessageMultipleCondHeaders)
	case in.IfNoneMatch != nil && *in.IfNoneMatch != "*":
		return nil, s3err.GetNotImplementedErr("If-None-Match", s3err.NmpAdditionalMessageIfNoneMatch)
	case in.IfMatch != nil && *in.IfMatch == "*":
		return nil, unmapped("If-Match: * is")
	}
	query := url.Values{"key": {*in.Key}}
	for name, value := range map[string]*string{"content-type": in.ContentType, "if-match": in.IfMatch, "if-none-match": in.IfNoneMatch} {
		if given(value) != nil {
			query.Set(name, *value)
		}
	}
	return query, nil
}

// unmatched tells an etag that does not match from an object that is not there, as S3 does.
func (f *front) unmatched(b bucket, key, match *string, err error) error {
	if match != nil && err == s3err.GetAPIError(s3err.ErrPreconditionFailed) {
		if _, herr := f.head(b, key); herr == s3err.GetAPIError(s3err.ErrNoSuchKey) {
			return herr
		}
	}
	return err
}

// DeleteObject deletes an object; one that is not there is deleted already.
func (f *front) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (*s3.DeleteObjectOutput, error) {
	if in.IfMatch != nil || in.IfMatchLastModifiedTime != nil || in.IfMatchSize != nil {
		return nil, unmapped("conditions of a delete are")
	}
	b, err := f.keyed(ctx, in.Bucket, in.Key, in.VersionId)
	if err != nil {
		return nil, err
	}
	return &s3.DeleteObjectOutput{}, f.told("objects.delete", f.ask(b.call("DELETE", "object", ofKey(in.Key)), nil))
}

// maxDeletes is how many objects one request may name.
const maxDeletes = 1000

// DeleteObjects deletes one object after the other and says what became of each.
func (f *front) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput) (out s3response.DeleteResult, err error) {
	if len(in.Delete.Objects) > maxDeletes {
		return out, s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	for _, o := range in.Delete.Objects {
		if o.Key == nil {
			return out, s3err.GetAPIError(s3err.ErrMalformedXML)
		}
		_, err := f.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: in.Bucket, Key: o.Key, VersionId: o.VersionId, IfMatch: o.ETag,
			IfMatchLastModifiedTime: o.LastModifiedTime, IfMatchSize: o.Size})
		if known, ok := err.(s3err.S3Error); ok {
			base := known.BaseError()
			out.Error = append(out.Error, types.Error{Key: o.Key, Code: &base.Code, Message: &base.Description})
		} else {
			out.Deleted = append(out.Deleted, types.DeletedObject{Key: o.Key})
		}
	}
	return out, nil
}

package front

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"
)

// CreateMultipartUpload begins an upload. A checksum algorithm binds its parts only: the node keeps none.
func (f *front) CreateMultipartUpload(ctx context.Context, in s3response.CreateMultipartUploadInput) (out s3response.InitiateMultipartUploadResult, err error) {
	b, err := f.keyed(ctx, in.Bucket, in.Key, nil)
	if err != nil {
		return out, err
	}
	err = f.keeps(kept{in.Metadata, in.ContentEncoding, in.ContentDisposition, in.ContentLanguage, in.CacheControl, in.Expires, in.Tagging,
		in.WebsiteRedirectLocation, in.ObjectLockMode != "" || in.ObjectLockLegalHoldStatus != ""})
	if err != nil {
		return out, err
	}
	query := ofKey(in.Key)
	if given(in.ContentType) != nil {
		query.Set("content-type", *in.ContentType)
	}
	var made struct {
		ID string `json:"uploadId"`
	}
	if err := f.ask(b.call("POST", "uploads", query), &made); err != nil {
		return out, f.told("uploads.create", err)
	}
	return s3response.InitiateMultipartUploadResult{Bucket: *in.Bucket, Key: *in.Key, UploadId: made.ID}, nil
}

func ofUpload(key, upload *string) url.Values { return url.Values{"key": {*key}, "upload": {*upload}} }

// UploadPart stores a part.
func (f *front) UploadPart(ctx context.Context, in *s3.UploadPartInput) (*s3.UploadPartOutput, error) {
	b, err := f.keyed(ctx, in.Bucket, in.Key, nil)
	if err != nil {
		return nil, err
	}
	if *in.ContentLength > maxObjectBytes {
		return nil, s3err.GetEntityTooLargeErr(*in.ContentLength, maxObjectBytes)
	}
	body, err := check(in.Body, sums{in.ChecksumCRC32, in.ChecksumCRC32C, in.ChecksumCRC64NVME, in.ChecksumMD5, in.ChecksumSHA1,
		in.ChecksumSHA256, in.ChecksumSHA512, in.ChecksumXXHASH64, in.ChecksumXXHASH3, in.ChecksumXXHASH128})
	if err != nil {
		return nil, err
	}
	query := ofUpload(in.Key, in.UploadId)
	query.Set("number", strconv.Itoa(int(*in.PartNumber)))
	var stored struct {
		ETag string `json:"etag"`
	}
	if err := f.send(ctx, b.call("PUT", "part", query), body, *in.ContentLength, &stored); err != nil {
		return nil, err
	}
	s := body.sums()
	return &s3.UploadPartOutput{ETag: quoted(stored.ETag), ChecksumCRC32: s[0], ChecksumCRC32C: s[1], ChecksumCRC64NVME: s[2], ChecksumMD5: s[3],
		ChecksumSHA1: s[4], ChecksumSHA256: s[5], ChecksumSHA512: s[6], ChecksumXXHASH64: s[7], ChecksumXXHASH3: s[8], ChecksumXXHASH128: s[9]}, nil
}

// part is a part as the node is told of it.
type part struct {
	Number int32  `json:"partNumber"`
	ETag   string `json:"etag"`
}

// parts reads a client's list. Checksums of parts are passed over: each was verified when the part came, and its etag stands for the
// bytes.
func parts(list []types.CompletedPart) ([]part, error) {
	if len(list) > maxParts {
		return nil, s3err.GetAPIError(s3err.ErrMalformedXML)
	}
	out := make([]part, len(list))
	for i, p := range list {
		switch {
		case p.PartNumber == nil || p.ETag == nil:
			return nil, s3err.GetAPIError(s3err.ErrMalformedXML)
		case *p.PartNumber < 1 || *p.PartNumber > maxParts:
			return nil, s3err.GetInvalidArgumentErr(s3err.InvalidArgCompleteMpPartNumber, strconv.Itoa(int(*p.PartNumber)))
		case i > 0 && *p.PartNumber <= out[i-1].Number:
			return nil, s3err.GetAPIError(s3err.ErrInvalidPartOrder)
		}
		out[i] = part{*p.PartNumber, strings.Trim(*p.ETag, `"`)}
	}
	return out, nil
}

// CompleteMultipartUpload makes an object of parts.
func (f *front) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput) (out s3response.CompleteMultipartUploadResult, version string, err error) {
	b, err := f.keyed(ctx, in.Bucket, in.Key, nil)
	if err != nil {
		return out, "", err
	}
	final := sums{in.ChecksumCRC32, in.ChecksumCRC32C, in.ChecksumCRC64NVME, in.ChecksumMD5, in.ChecksumSHA1,
		in.ChecksumSHA256, in.ChecksumSHA512, in.ChecksumXXHASH64, in.ChecksumXXHASH3, in.ChecksumXXHASH128}
	switch {
	case in.IfMatch != nil || in.IfNoneMatch != nil:
		return out, "", unmapped("conditions of a completion are")
	case in.MpuObjectSize != nil:
		return out, "", unmapped("the size of a completion is")
	case final.any():
		return out, "", unmapped("checksums of a whole upload are")
	}
	list, err := parts(in.MultipartUpload.Parts)
	if err != nil {
		return out, "", err
	}
	call := b.call("POST", "complete", ofUpload(in.Key, in.UploadId))
	call.Body = map[string]any{"parts": list}
	var i info
	if err := f.ask(call, &i); err != nil {
		return out, "", f.told("uploads.complete", err)
	}
	return s3response.CompleteMultipartUploadResult{Bucket: in.Bucket, Key: in.Key, ETag: quoted(i.ETag)}, "", nil
}

// AbortMultipartUpload ends an upload without an object.
func (f *front) AbortMultipartUpload(ctx context.Context, in *s3.AbortMultipartUploadInput) error {
	b, err := f.keyed(ctx, in.Bucket, in.Key, nil)
	if err != nil {
		return err
	}
	if in.IfMatchInitiatedTime != nil {
		return unmapped("conditions of an abort are")
	}
	return f.told("uploads.abort", f.ask(b.call("DELETE", "upload", ofUpload(in.Key, in.UploadId)), nil))
}

package front

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"edged/control/client"
	"edged/control/form"
)

// bucketName makes a name of a test's own.
func bucketName(t *testing.T) string {
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	return fmt.Sprintf("%.40s-%x", name, time.Now().UnixNano())
}

// wantCode fails the test if err is not the S3 error with this code; "" wants none.
func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	got := ""
	var api smithy.APIError
	if errors.As(err, &api) {
		got = api.ErrorCode()
	} else if err != nil {
		got = err.Error()
	}
	if got != code {
		t.Errorf("%s: %q, want %q", what, got, code)
	}
}

func put(t *testing.T, c *s3.Client, bucket *string, key, body string) *s3.PutObjectOutput {
	t.Helper()
	out, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func get(t *testing.T, c *s3.Client, in *s3.GetObjectInput) (*s3.GetObjectOutput, string) {
	t.Helper()
	out, err := c.GetObject(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return out, string(b)
}

// atNode makes a call of the operators' door about the bucket with a name.
func atNode(t *testing.T, bucket *string, method, path string, query url.Values) client.Call {
	t.Helper()
	res, ok, err := world.node.Lookup(t.Context(), "default", *bucket)
	if err != nil || !ok {
		t.Fatalf("%s: %v %v", *bucket, ok, err)
	}
	return client.Call{Method: method, Path: "objects/buckets/" + res.UID + "/" + path, Query: query}
}

// objects §2: keys are the same at both doors, also those that look like paths; body, etag and content type too.
func TestKeysOneToOne(t *testing.T) {
	c, bucket := newBucket(t)
	for _, key := range []string{"plain", "a/b", "a//b", "dir/", "/lead", "a b+c%2Fd", "grüße/日本/\U0001f600", "?q=1&x#y", "..a", "~'\"<>&", strings.Repeat("k", 979)} {
		stored, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader("body of " + key), ContentType: aws.String("text/x-test")})
		if err != nil {
			t.Errorf("%q: %v", key, err)
			continue
		}
		var at info
		if err := world.node.Ask(t.Context(), atNode(t, bucket, "GET", "head", url.Values{"key": {key}}), &at); err != nil {
			t.Errorf("%q at the node: %v", key, err)
			continue
		}
		out, body := get(t, c, &s3.GetObjectInput{Bucket: bucket, Key: &key})
		if body != "body of "+key || *out.ETag != *quoted(at.ETag) || *stored.ETag != *out.ETag || *out.ContentType != "text/x-test" || at.ContentType != "text/x-test" ||
			*out.ContentLength != at.Size || !out.LastModified.Equal(at.modified()) {
			t.Errorf("%q: %q, %+v, at the node %+v", key, body, out, at)
		}
		if _, err := c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: &key}); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		_, err = c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: &key})
		wantCode(t, key, err, "NotFound")
	}
	_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: aws.String(strings.Repeat("k", 980)), Body: strings.NewReader("")})
	wantCode(t, "980 bytes", err, "KeyTooLongError")
}

// objects §§3.2, 5: the trace of ranges, and conditions decided by the node.
func TestRangesAndConditions(t *testing.T) {
	c, bucket := newBucket(t)
	all := make([]byte, 1024)
	for i := range all {
		all[i] = byte(i)
	}
	key := aws.String("k")
	etag := put(t, c, bucket, *key, string(all)).ETag
	for text, want := range map[string]string{"bytes=512-767": string(all[512:768]), "bytes=1000-": string(all[1000:]), "bytes=-24": string(all[1000:]), "bytes=1000-5000": string(all[1000:])} {
		out, body := get(t, c, &s3.GetObjectInput{Bucket: bucket, Key: key, Range: &text})
		if body != want || out.ContentRange == nil || !strings.HasSuffix(*out.ContentRange, "/1024") || *out.ContentLength != int64(len(want)) {
			t.Errorf("%s: %d bytes, %+v", text, len(body), out)
		}
	}
	_, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key, Range: aws.String("bytes=1024-")})
	wantCode(t, "range behind the end", err, "InvalidRange")

	store := func(in s3.PutObjectInput) error {
		in.Bucket, in.Body = bucket, strings.NewReader("new")
		if in.Key == nil {
			in.Key = key
		}
		_, err := c.PutObject(t.Context(), &in)
		return err
	}
	wantCode(t, "put if none", store(s3.PutObjectInput{IfNoneMatch: aws.String("*")}), "PreconditionFailed")
	wantCode(t, "put if another", store(s3.PutObjectInput{IfMatch: aws.String(`"other"`)}), "PreconditionFailed")
	wantCode(t, "put if absent matches", store(s3.PutObjectInput{Key: aws.String("none"), IfMatch: etag}), "NoSuchKey")
	wantCode(t, "put if an etag is not there", store(s3.PutObjectInput{IfNoneMatch: etag}), "NotImplemented")
	_, err = c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key, IfMatch: aws.String("other")})
	wantCode(t, "get if another", err, "PreconditionFailed")
	_, err = c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: bucket, Key: key, IfNoneMatch: etag})
	wantCode(t, "get if changed", err, "NotModified")
	if _, body := get(t, c, &s3.GetObjectInput{Bucket: bucket, Key: key, IfMatch: etag}); body != string(all) {
		t.Error("a refused put changed the object")
	}
	wantCode(t, "put if the same", store(s3.PutObjectInput{IfMatch: etag}), "")
	wantCode(t, "put where none is", store(s3.PutObjectInput{Key: aws.String("none"), IfNoneMatch: aws.String("*")}), "")
}

// objects §3.3: both listings page through the same entries with the node's own cursor, or behind any key.
func TestListings(t *testing.T) {
	c, bucket := newBucket(t)
	for _, key := range []string{"a", "b/1", "b/2", "b0", "c/1", "d", "e/1/2"} {
		put(t, c, bucket, key, "x")
	}
	want := []string{"a", "b/", "b0", "c/", "d", "e/"}
	entries := func(objects []types.Object, prefixes []types.CommonPrefix) (all []string) {
		for _, o := range objects {
			all = append(all, *o.Key)
		}
		for _, p := range prefixes {
			all = append(all, *p.Prefix)
		}
		slices.Sort(all)
		return all
	}
	for most := range int32(7) {
		if most == 0 {
			continue
		}
		var got []string
		pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: bucket, Delimiter: aws.String("/"), MaxKeys: &most})
		for pages.HasMorePages() {
			p, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, entries(p.Contents, p.CommonPrefixes)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q", most, got)
		}
		got = nil
		in := &s3.ListObjectsInput{Bucket: bucket, Delimiter: aws.String("/"), MaxKeys: &most}
		for {
			p, err := c.ListObjects(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, entries(p.Contents, p.CommonPrefixes)...)
			if !*p.IsTruncated {
				break
			}
			in.Marker = p.NextMarker
		}
		if !slices.Equal(got, want) {
			t.Errorf("old pages of %d: %q", most, got)
		}
	}
	for after, want := range map[string][]string{"a": {"b/1", "b/2"}, "b/1": {"b/2"}, "b/10": {"b/2"}, "b/2": nil} {
		p, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: bucket, Prefix: aws.String("b/"), StartAfter: &after})
		if err != nil || !slices.Equal(entries(p.Contents, p.CommonPrefixes), want) {
			t.Errorf("behind %q: %v %v", after, err, entries(p.Contents, p.CommonPrefixes))
		}
	}
	_, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: bucket, ContinuationToken: aws.String("not-of-here")})
	wantCode(t, "foreign token", err, "InvalidArgument")
}

// objects §3.4: an upload becomes an object when it is completed; what its parts must be the node decides.
func TestMultipart(t *testing.T) {
	c, bucket := newBucket(t)
	key := aws.String("k")
	begin := func() *string {
		t.Helper()
		up, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key, ContentType: aws.String("text/parts")})
		if err != nil {
			t.Fatal(err)
		}
		return up.UploadId
	}
	part := func(upload *string, n int32, body string) types.CompletedPart {
		t.Helper()
		out, err := c.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: bucket, Key: key, UploadId: upload, PartNumber: &n, Body: strings.NewReader(body)})
		if err != nil {
			t.Fatal(err)
		}
		return types.CompletedPart{PartNumber: &n, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
	}
	complete := func(upload *string, parts ...types.CompletedPart) error {
		_, err := c.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{Bucket: bucket, Key: key, UploadId: upload,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts}})
		return err
	}
	big := strings.Repeat("b", 5<<20)
	upload := begin()
	one, three, small := part(upload, 1, big), part(upload, 3, "end"), part(upload, 2, "small")
	wantCode(t, "small part", complete(upload, one, small, three), "InvalidPart")
	stale := three
	stale.ETag = one.ETag
	wantCode(t, "stale etag", complete(upload, one, stale), "InvalidPart")
	wantCode(t, "order", complete(upload, three, one), "InvalidPartOrder")
	_, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: key})
	wantCode(t, "before completion", err, "NotFound")
	wantCode(t, "completion", complete(upload, one, three), "")
	out, body := get(t, c, &s3.GetObjectInput{Bucket: bucket, Key: key})
	if body != big+"end" || *out.ContentType != "text/parts" {
		t.Errorf("%d bytes of %s", len(body), *out.ContentType)
	}
	wantCode(t, "twice", complete(upload, one, three), "NoSuchUpload")
	upload = begin()
	one = part(upload, 1, "only")
	if _, err := c.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: bucket, Key: key, UploadId: upload}); err != nil {
		t.Error(err)
	}
	wantCode(t, "aborted", complete(upload, one), "NoSuchUpload")
}

// What no bucket keeps is refused, and nothing is stored.
func TestRefusals(t *testing.T) {
	c, bucket := newBucket(t)
	key, x := aws.String("k"), aws.String("x")
	puts := map[string]s3.PutObjectInput{
		"metadata":            {Metadata: map[string]string{"a": "b"}},
		"cache control":       {CacheControl: x},
		"content encoding":    {ContentEncoding: aws.String("gzip")},
		"content disposition": {ContentDisposition: x},
		"content language":    {ContentLanguage: x},
		"expires":             {Expires: aws.Time(time.Unix(1<<31, 0))},
		"tags":                {Tagging: aws.String("a=b")},
		"redirect":            {WebsiteRedirectLocation: aws.String("/x")},
		"storage class":       {StorageClass: types.StorageClassGlacier},
		"encryption":          {ServerSideEncryption: types.ServerSideEncryptionAes256},
		"acl":                 {ACL: types.ObjectCannedACLPublicRead},
	}
	for name, in := range puts {
		in.Bucket, in.Key, in.Body = bucket, key, strings.NewReader("x")
		_, err := c.PutObject(t.Context(), &in)
		wantCode(t, name, err, "NotImplemented")
	}
	list, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: bucket})
	if err != nil || len(list.Contents) != 0 {
		t.Errorf("%v %+v", err, list.Contents)
	}
	put(t, c, bucket, *key, "body")
	put(t, c, bucket, "other", "body")
	ctx := t.Context()
	calls := map[string]func() error{
		"copy": func() error {
			_, err := c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: bucket, Key: x, CopySource: aws.String(*bucket + "/k")})
			return err
		},
		"versioning": func() error {
			_, err := c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}})
			return err
		},
		"versions": func() error {
			_, err := c.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: bucket})
			return err
		},
		"a version": func() error {
			_, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key, VersionId: x})
			return err
		},
		"a part": func() error {
			_, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key, PartNumber: aws.Int32(1)})
			return err
		},
		"uploads": func() error {
			_, err := c.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: bucket})
			return err
		},
		"delete if": func() error {
			_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key, IfMatch: x})
			return err
		},
		"tag": func() error {
			_, err := c.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: bucket, Key: key})
			return err
		},
		"policy": func() error {
			_, err := c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: bucket, Policy: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` + *bucket + `/*"}]}`)})
			return err
		},
		"lifecycle": func() error {
			_, err := c.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
			return err
		},
	}
	for name, call := range calls {
		wantCode(t, name, call(), "NotImplemented")
	}
}

// Without DropMetadata metadata is refused; with it, it is dropped, and what protects an object is refused still.
func TestDropMetadata(t *testing.T) {
	empty := ""
	k := kept{metadata: map[string]string{"mtime": "1"}, encoding: aws.String("aws-chunked"), disposition: &empty, language: &empty, cache: &empty, expires: &empty, tags: &empty, redirect: &empty}
	if err := (&front{}).keeps(k); err == nil {
		t.Error("metadata was taken")
	}
	dropping := &front{opt: Options{DropMetadata: true}}
	if err := dropping.keeps(k); err != nil {
		t.Error(err)
	}
	k.metadata = nil
	if err := (&front{}).keeps(k); err != nil {
		t.Errorf("a body in signed chunks: %v", err)
	}
	k.locked = true
	if err := dropping.keeps(k); err == nil {
		t.Error("a lock was dropped")
	}
}

// A signed request of our own, for bodies that no SDK sends.
func request(t *testing.T, method, path string, body io.Reader, length int64, hash string, header map[string]string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, world.endpoint+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = length
	req.Header.Set("X-Amz-Content-Sha256", hash)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	keys := aws.Credentials{AccessKeyID: access, SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(t.Context(), keys, req, hash, "s3", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// A body whose hash, checksum or length is wrong stores nothing and replaces nothing, whatever its size.
func TestWrongBodiesStoreNothing(t *testing.T) {
	c, bucket := newBucket(t)
	path := "/" + *bucket + "/k"
	for _, size := range []int{0, 1, pieceBytes, pieceBytes + 1, 1 << 20} {
		body := bytes.Repeat([]byte("y"), size)
		digest := sha256.Sum256(body)
		right, other := hex.EncodeToString(digest[:]), hex.EncodeToString(make([]byte, 32))
		for name, tt := range map[string]struct {
			hash   string
			header map[string]string
			want   string
		}{
			"payload hash": {other, nil, "XAmzContentSHA256Mismatch"},
			"MD5":          {right, map[string]string{"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}, "BadDigest"},
			"CRC32":        {right, map[string]string{"X-Amz-Checksum-Crc32": "/////w=="}, "BadDigest"},
		} {
			if status, text := request(t, "PUT", path, bytes.NewReader(body), int64(size), tt.hash, tt.header); status != 400 || !strings.Contains(text, tt.want) {
				t.Errorf("%s of %d bytes: %d %s", name, size, status, text)
			}
			_, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: bucket, Key: aws.String("k")})
			wantCode(t, fmt.Sprint(name, " of ", size, " bytes stored"), err, "NotFound")
		}
	}
	// A client that leaves in the middle: the request's end is the body's error.
	ctx, leave := context.WithCancel(t.Context())
	r, w := io.Pipe()
	go func() {
		w.Write(make([]byte, 300<<10))
		leave()
		w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	req, err := http.NewRequestWithContext(ctx, "PUT", world.endpoint+path, r)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = 1 << 20
	req.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	keys := aws.Credentials{AccessKeyID: access, SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(t.Context(), keys, req, "UNSIGNED-PAYLOAD", "s3", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	if res, err := http.DefaultClient.Do(req); err == nil {
		res.Body.Close()
		t.Errorf("a cut request was answered with %d", res.StatusCode)
	}
	put(t, c, bucket, "later", "x")
	list, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: bucket})
	if err != nil || len(list.Contents) != 1 {
		t.Errorf("%v %+v", err, list.Contents)
	}
}

// Lengths are judged before a request is read.
func TestLengths(t *testing.T) {
	_, bucket := newBucket(t)
	for _, tt := range []struct {
		name, method, path string
		length             int64
		want               string
	}{
		{"object over 300 MiB", "PUT", "/k", maxPutBytes + 1, "EntityTooLarge"},
		{"part over 5 GiB", "PUT", "/k?partNumber=1&uploadId=u", maxObjectBytes + 1, "EntityTooLarge"},
		{"anything", "PUT", "/k", maxFramedBytes + 1, "EntityTooLarge"},
		{"document", "POST", "?delete", maxDocumentBytes + 1, "EntityTooLarge"},
		{"document of an object", "PUT", "/k?tagging", maxDocumentBytes + 1, "EntityTooLarge"},
		{"body of any length", "PUT", "/k", -1, "MissingContentLength"},
		{"document of any length", "POST", "?delete", -1, "MissingContentLength"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // the library waits a second for bodies that it drains
			r, w := io.Pipe()
			defer w.Close()
			go w.Write(make([]byte, 8<<10)) // ends with the pipe: the head is on its way, and no more comes before the answer
			if status, text := request(t, tt.method, "/"+*bucket+tt.path, r, tt.length, "UNSIGNED-PAYLOAD", nil); status/100 != 4 || !strings.Contains(text, tt.want) {
				t.Errorf("%d %s, want %s", status, text, tt.want)
			}
		})
	}
}

// Buckets are the ObjectBuckets of the Space and nothing else; one that holds something is not deleted.
func TestBuckets(t *testing.T) {
	c, bucket := newBucket(t)
	ctx := t.Context()
	other := bucketName(t) + "-kv"
	op, err := world.node.Create(ctx, client.Create{Form: form.KVNamespaceURL, Space: "default", Name: other, Spec: struct{}{}}, client.NewKey())
	if err == nil {
		_, err = world.node.Wait(ctx, op)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
	wantCode(t, "again", err, "BucketAlreadyOwnedByYou")
	_, err = c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &other})
	wantCode(t, "name of a namespace", err, "BucketAlreadyExists")
	_, err = c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &other})
	wantCode(t, "namespace as a bucket", err, "NoSuchBucket")
	list, err := c.ListBuckets(ctx, &s3.ListBucketsInput{Prefix: bucket})
	if err != nil || len(list.Buckets) != 1 || *list.Buckets[0].Name != *bucket || list.Buckets[0].CreationDate.IsZero() {
		t.Errorf("%v %+v", err, list)
	}
	if list, err = c.ListBuckets(ctx, &s3.ListBucketsInput{Prefix: &other}); err != nil || len(list.Buckets) != 0 {
		t.Errorf("%v %+v", err, list)
	}
	put(t, c, bucket, "k", "x")
	_, err = c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket})
	wantCode(t, "not empty", err, "BucketNotEmpty")
	if _, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("k")}); err != nil {
		t.Error(err)
	}
	if _, err = c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket}); err != nil {
		t.Error(err)
	}
	if _, ok, err := world.node.Lookup(ctx, "default", *bucket); ok || err != nil {
		t.Errorf("the Resource is there: %v %v", ok, err)
	}
}

// A node that is not there is ServiceUnavailable, not a missing bucket.
func TestNodeIsAway(t *testing.T) {
	node, err := client.New(client.Options{URL: "https://127.0.0.1:1", Token: "t", Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	f := &front{opt: Options{Node: node, Space: "default", Log: slog.New(slog.DiscardHandler)}, base: t.Context()}
	if _, err := f.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("b")}); err != errUnavailable {
		t.Error(err)
	}
}

package front

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/valyala/fasthttp"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/s3err"
	"github.com/versity/versitygw/s3response"

	"edged/control/client"
	"edged/control/form"
)

// bucket is an object bucket at the node.
type bucket struct{ res *client.Resource }

// call is a call about the bucket.
func (b bucket) call(method, path string, query url.Values) client.Call {
	return client.Call{Method: method, Path: "objects/buckets/" + url.PathEscape(b.res.UID) + "/" + path, Query: query}
}

func ofKey(key *string) url.Values { return url.Values{"key": {*key}} }

// found keeps what bucket a request is about, so that it is looked for once.
type found struct{}

// find returns the bucket with a name. The error is NoSuchBucket for one that does not exist or is being made or deleted.
func (f *front) find(ctx context.Context, name *string) (bucket, error) {
	request, ofLibrary := ctx.(*fasthttp.RequestCtx)
	if ofLibrary {
		if b, ok := request.UserValue(found{}).(bucket); ok && b.res.Name == *name {
			return b, nil
		}
	}
	b, ok, err := f.lookup(*name)
	if err != nil {
		return bucket{}, err
	}
	if !ok || !exists(b.res) {
		return bucket{}, s3err.GetBucketErr(s3err.ErrNoSuchBucket, *name)
	}
	if ofLibrary {
		request.SetUserValue(found{}, b)
	}
	return b, nil
}

// lookup returns the Resource with a name, whatever it is.
func (f *front) lookup(name string) (bucket, bool, error) {
	call, cancel := f.brief()
	defer cancel()
	res, ok, err := f.opt.Node.Lookup(call, f.opt.Space, name)
	return bucket{res}, ok, f.told("bucket.find", err)
}

func isBucket(formURL string) bool {
	return formURL == form.ObjectBucket2URL || formURL == form.ObjectBucket3URL
}

// exists reports whether a Resource is a bucket that the node has seen to be there.
func exists(res *client.Resource) bool {
	var observed struct {
		BucketExists bool `json:"bucketExists"`
	}
	return isBucket(res.Form) && res.Phase != "deleting" && json.Unmarshal(res.Observed, &observed) == nil && observed.BucketExists
}

// GetBucketAcl is asked before every request about a bucket. There is one account, which owns all.
func (f *front) GetBucketAcl(ctx context.Context, in *s3.GetBucketAclInput) ([]byte, error) {
	_, err := f.find(ctx, in.Bucket)
	return f.acl, err
}

// HeadBucket says whether there is such a bucket.
func (f *front) HeadBucket(ctx context.Context, in *s3.HeadBucketInput) (*s3.HeadBucketOutput, error) {
	_, err := f.find(ctx, in.Bucket)
	return &s3.HeadBucketOutput{}, err
}

// CreateBucket makes an ObjectBucket 0.3.0 Resource.
func (f *front) CreateBucket(ctx context.Context, in *s3.CreateBucketInput, acl []byte) error {
	grants, err := auth.ParseACL(acl)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(grants.Grantees, func(g auth.Grantee) bool { return g.Access != grants.Owner }):
		return unmapped("access control lists are")
	case in.ObjectLockEnabledForBucket != nil && *in.ObjectLockEnabledForBucket:
		return unmapped("object locks are")
	case in.CreateBucketConfiguration != nil && len(in.CreateBucketConfiguration.Tags) > 0:
		return unmapped("tags are")
	}
	if b, ok, err := f.lookup(*in.Bucket); err != nil {
		return err
	} else if ok {
		return taken(b, *in.Bucket)
	}
	call, cancel := f.brief()
	defer cancel()
	op, err := f.opt.Node.Create(call, client.Create{Form: form.ObjectBucket3URL, Space: f.opt.Space, Name: *in.Bucket, Spec: struct{}{}}, client.NewKey())
	if isProblem(err, "name_conflict") { // another was faster
		b, _, err := f.lookup(*in.Bucket)
		return cmp.Or(err, taken(b, *in.Bucket))
	}
	if err == nil {
		_, err = f.opt.Node.Wait(call, op)
	}
	return f.told("bucket.create", err)
}

// taken says whose a name is.
func taken(b bucket, name string) error {
	if b.res != nil && isBucket(b.res.Form) {
		return s3err.GetBucketErr(s3err.ErrBucketAlreadyOwnedByYou, name)
	}
	return s3err.GetBucketErr(s3err.ErrBucketAlreadyExists, name)
}

// DeleteBucket deletes the Resource of a bucket that was seen to be empty. An object that is stored in between goes with it.
func (f *front) DeleteBucket(ctx context.Context, name string) error {
	b, err := f.find(ctx, &name)
	if err != nil {
		return err
	}
	var held page
	if err := f.ask(b.call("GET", "objects", url.Values{"limit": {"1"}}), &held); err != nil {
		return f.told("objects.list", err)
	}
	if len(held.Objects) > 0 {
		return s3err.GetBucketErr(s3err.ErrBucketNotEmpty, name)
	}
	call, cancel := f.brief()
	defer cancel()
	op, err := f.opt.Node.Delete(call, b.res.UID, b.res.Generation, client.NewKey())
	if err == nil {
		_, err = f.opt.Node.Wait(call, op)
	}
	return f.told("bucket.delete", err)
}

// ListBuckets lists the object buckets of the Space by name. A Resource has no instant of creation: the one at which it was last seen
// to be there stands for it.
func (f *front) ListBuckets(_ context.Context, in s3response.ListBucketsInput) (out s3response.ListAllMyBucketsResult, err error) {
	call, cancel := f.brief()
	defer cancel()
	out.Owner, out.Prefix = s3response.CanonicalUser{ID: in.Owner}, in.Prefix
	all := []s3response.ListAllMyBucketsEntry{}
	for _, url := range []string{form.ObjectBucket2URL, form.ObjectBucket3URL} {
		for res, err := range f.opt.Node.List(call, client.Filter{Space: f.opt.Space, Form: url}) {
			if err != nil {
				return out, f.told("bucket.list", err)
			}
			if exists(res) && strings.HasPrefix(res.Name, in.Prefix) && res.Name > in.ContinuationToken {
				all = append(all, s3response.ListAllMyBucketsEntry{Name: res.Name, CreationDate: instant(res.ObservedAt)})
			}
		}
	}
	slices.SortFunc(all, func(a, b s3response.ListAllMyBucketsEntry) int { return cmp.Compare(a.Name, b.Name) })
	if most := int(in.MaxBuckets); most > 0 && len(all) > most {
		all = all[:most]
		out.ContinuationToken = all[most-1].Name
	}
	out.Buckets.Bucket = all
	return out, nil
}

// instant reads what the node writes, the zero instant for nothing.
func instant(text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	t, _ := time.Parse(time.RFC3339, *text) // zero if it is malformed
	return t
}

// The library asks these for its own work, and the answers are true: there is no policy, no rule, no version and no lock.

// GetBucketPolicy says that there is none.
func (f *front) GetBucketPolicy(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrNoSuchBucketPolicy)
}

// GetBucketCors says that there is none.
func (f *front) GetBucketCors(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrNoSuchCORSConfiguration)
}

// GetBucketVersioning says that a bucket was never versioned.
func (f *front) GetBucketVersioning(context.Context, string) (s3response.GetBucketVersioningOutput, error) {
	return s3response.GetBucketVersioningOutput{}, nil
}

// GetObjectLockConfiguration says that there is none.
func (f *front) GetObjectLockConfiguration(context.Context, string) ([]byte, error) {
	return nil, s3err.GetAPIError(s3err.ErrObjectLockConfigurationNotFound)
}

// GetBucketOwnershipControls says that the one account owns everything.
func (f *front) GetBucketOwnershipControls(context.Context, string) (types.ObjectOwnership, error) {
	return types.ObjectOwnershipBucketOwnerEnforced, nil
}

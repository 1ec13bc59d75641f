package sandbox

import (
	"context"
	"encoding/json"
	"io"

	"edged/sandbox/binding"
	"edged/sandbox/engine"
	"edged/sandbox/facade"
)

// bucketOf returns the bucket with this number, nil if the version has none.
func (g *guest) bucketOf(number engine.Value) binding.Bucket {
	n, _ := number.Int()
	if b := g.Binding(n); b != nil {
		return b.Bucket
	}
	return nil
}

// placeOfNumber is guest.placeOf for a number that bucketOf has found a bucket for.
func placeOfNumber(number engine.Value) int {
	n, _ := number.Int()
	return int(n) + 1
}

func badBucketCall(in *engine.Instance) engine.Value {
	return in.ThrowType("host: wrong arguments of a bucket")
}

// infoJSON is an object as the prelude reads it.
type infoJSON struct {
	Key   string `json:"key,omitempty"`
	ETag  string `json:"etag"`
	Size  int64  `json:"size"`
	Type  string `json:"type,omitempty"`
	At    int64  `json:"at,omitempty"`
	From  int64  `json:"from,omitempty"`
	Given int64  `json:"given,omitempty"`
}

func infoOf(o binding.ObjectInfo) infoJSON {
	return infoJSON{Key: o.Key, ETag: o.ETag, Size: o.Size, Type: o.ContentType, At: o.UploadedMillis}
}

// inJSON is a delivery of JSON, of null for nil.
func inJSON(v any, err error) (delivery, error) {
	text := []byte("null")
	if err == nil && v != nil {
		text, err = json.Marshal(v)
	}
	return delivery{settle: func(g *guest, _ *exchange) engine.Value { return g.in.NewString(text) }}, err
}

// bucketCall(number, method, argument as JSON) runs a call without a body and brings JSON. The methods have the places of
// bucketCalls.
func hostBucketCall(in *engine.Instance, args []engine.Value) engine.Value {
	g := guestOf(in)
	b := g.bucketOf(args[0])
	which, ok := args[1].Int()
	text, ok2 := in.AppendString(nil, args[2])
	var a bucketArgs
	if b == nil || !ok || !ok2 || which < 0 || int(which) >= len(bucketCalls) || json.Unmarshal(text, &a) != nil {
		return badBucketCall(in)
	}
	call := bucketCalls[which]
	return g.exchange(placeOfNumber(args[0]), g.beginBucket(call.method, args[0]), outgoing{}, func(ctx context.Context, _ facade.Room) (delivery, error) { return inJSON(call.do(ctx, b, &a)) }, call.method.Reason)
}

// bucketArgs are the arguments of every call without a body.
type bucketArgs struct {
	Key, Type, Upload         string
	Prefix, Delimiter, Cursor string
	Limit                     int
	Parts                     []binding.ObjectPart
}

var bucketCalls = []struct {
	method *facade.Method
	do     func(ctx context.Context, b binding.Bucket, a *bucketArgs) (any, error)
}{
	{facade.BucketHead, func(ctx context.Context, b binding.Bucket, a *bucketArgs) (any, error) {
		o, found, err := b.Head(ctx, a.Key)
		if !found {
			return nil, err
		}
		return infoOf(o), err
	}},
	{facade.BucketDelete, func(ctx context.Context, b binding.Bucket, a *bucketArgs) (any, error) {
		return nil, b.Delete(ctx, a.Key)
	}},
	{facade.BucketList, func(ctx context.Context, b binding.Bucket, a *bucketArgs) (any, error) {
		page, err := b.List(ctx, binding.ObjectListQuery{Prefix: a.Prefix, Delimiter: a.Delimiter, Cursor: a.Cursor, Limit: a.Limit})
		objects := make([]infoJSON, len(page.Objects))
		for i, o := range page.Objects {
			objects[i] = infoOf(o)
		}
		return map[string]any{"objects": objects, "prefixes": page.Prefixes, "cursor": page.Cursor}, err
	}},
	{facade.BucketCreateMultipartUpload, func(ctx context.Context, b binding.Bucket, a *bucketArgs) (any, error) {
		return b.CreateMultipartUpload(ctx, a.Key, a.Type)
	}},
	{facade.BucketCompleteMultipartUpload, func(ctx context.Context, b binding.Bucket, a *bucketArgs) (any, error) {
		o, err := b.CompleteMultipartUpload(ctx, a.Key, a.Upload, a.Parts)
		return infoOf(o), err
	}},
	{facade.BucketAbortMultipartUpload, func(ctx context.Context, b binding.Bucket, a *bucketArgs) (any, error) {
		return nil, b.AbortMultipartUpload(ctx, a.Key, a.Upload)
	}},
}

// bucketGet(number, query as JSON) brings null or the object as JSON; its body is a source with the operation's number.
func hostBucketGet(in *engine.Instance, args []engine.Value) engine.Value {
	g := guestOf(in)
	b := g.bucketOf(args[0])
	text, ok := in.AppendString(nil, args[1])
	var q struct {
		Key string
		binding.ObjectQuery
	}
	if b == nil || !ok || json.Unmarshal(text, &q) != nil {
		return badBucketCall(in)
	}
	return g.exchange(placeOfNumber(args[0]), g.beginBucket(facade.BucketGet, args[0]), outgoing{}, func(ctx context.Context, _ facade.Room) (delivery, error) {
		o, body, found, err := b.Get(ctx, q.Key, q.ObjectQuery)
		if err != nil || !found {
			return inJSON(nil, err)
		}
		info := infoOf(o.ObjectInfo)
		info.From, info.Given = o.Offset, o.Length
		text, err := json.Marshal(info)
		return delivery{drop: func() { body.Close() }, settle: func(g *guest, x *exchange) engine.Value {
			x.incoming(body)
			return g.in.NewString(text)
		}}, err
	}, facade.BucketGet.Reason)
}

// bucketPut(number, target as JSON, body kind, body, length) stores an object, or a part of an upload.
func hostBucketPut(in *engine.Instance, args []engine.Value) engine.Value {
	g := guestOf(in)
	b := g.bucketOf(args[0])
	text, ok := in.AppendString(nil, args[1])
	length, ok2 := args[4].Int64()
	var to struct {
		Key, Upload string
		Part        int
		binding.ObjectPut
	}
	if b == nil || !ok || !ok2 || json.Unmarshal(text, &to) != nil {
		return badBucketCall(in)
	}
	o, ok := g.outgoing(kindOf(args[2]), args[3], length)
	if !ok || o.body == nil {
		return badBucketCall(in)
	}
	to.Length = o.length
	m := facade.BucketPut
	if to.Part > 0 {
		m = facade.BucketUploadPart
	}
	return g.exchange(placeOfNumber(args[0]), g.beginBucket(m, args[0]), o, func(ctx context.Context, _ facade.Room) (delivery, error) {
		stop := context.AfterFunc(ctx, func() { o.body.Close() }) // a store that waits for bytes looks at nothing else
		defer stop()
		defer o.body.Close()
		body := io.Reader(o.body)
		if to.Part > 0 {
			etag, err := b.UploadPart(ctx, to.Key, to.Upload, to.Part, body, o.length)
			return inJSON(etag, err)
		}
		info, err := b.Put(ctx, to.Key, body, to.ObjectPut)
		return inJSON(infoOf(info), err)
	}, m.Reason)
}

package node

import (
	"io"
	"math"
	"strconv"
	"time"

	"edged/control/form"
	"edged/control/operator"
	"edged/internal/fault"
	"edged/objects"
)

// objectsRoom is what operators do with object buckets: all that a worker can, and what only concerns the node.
func (n *Node) objectsRoom() operator.Room {
	route := func(name, method, path string, serve func(*operator.Call, *objects.Bucket) error, query ...string) operator.Route {
		return operator.Route{Name: name, Method: method, Path: "buckets/{uid}/" + path, Query: query, Changes: method != "GET",
			Serve: func(c *operator.Call) error {
				if c.Target.Form != form.ObjectBucket2URL && c.Target.Form != form.ObjectBucket3URL {
					return fault.Newf(fault.NotFound, "node.operator", "%s is no ObjectBucket", c.Target.UID)
				}
				return serve(c, n.stores.objects.Bucket(c.Target.UID))
			}}
	}
	body := func(r operator.Route, kind operator.Body, most int64) operator.Route {
		r.Body, r.MaxBody = kind, most
		return r
	}
	return operator.Room{Name: "objects", Routes: []operator.Route{
		route("head", "GET", "head", objectHead, "key"),
		route("get", "GET", "object", objectGet, "key", "if-match", "if-none-match", "offset", "length"),
		body(route("put", "PUT", "object", objectPut, "key", "content-type", "if-match", "if-none-match"), operator.RawBody, objects.MaxPutBytes),
		route("delete", "DELETE", "object", objectDelete, "key"),
		route("list", "GET", "objects", objectList, "prefix", "delimiter", "limit", "cursor", "after"),
		route("upload.create", "POST", "uploads", uploadCreate, "key", "content-type"),
		body(route("upload.part", "PUT", "part", uploadPart, "key", "upload", "number"), operator.RawBody, objects.MaxObjectBytes),
		body(route("upload.complete", "POST", "complete", uploadComplete, "key", "upload"), operator.JSONBody, 4<<20),
		route("upload.abort", "DELETE", "upload", uploadAbort, "key", "upload"),
		route("stat", "GET", "stat", n.bucketStat),
		{Name: "scrub", Method: "POST", Path: "scrub", Query: []string{"rate"}, Whole: true, Changes: true, Serve: n.objectScrub},
		{Name: "backup", Method: "GET", Path: "backup", Whole: true, Changes: true, Serve: n.objectsBackup}, // changes nothing, but leaves a record
	}}
}

// objectInfo is an object without its body, as operators see it.
type objectInfo struct {
	Key         string  `json:"key"`
	ETag        string  `json:"etag"`
	Size        int64   `json:"size"`
	ContentType string  `json:"contentType,omitempty"`
	Uploaded    *string `json:"uploaded"`
}

func objectOf(i objects.Info) objectInfo {
	return objectInfo{i.Key, i.ETag, i.Size, i.ContentType, stamp(time.UnixMilli(i.UploadedMs))}
}

var errNoObject = fault.New(fault.NotFound, "node.objects", "the key has no object")

func objectHead(c *operator.Call, b *objects.Bucket) error {
	info, ok, err := b.Head(c.Context(), c.Query.Get("key"))
	if err == nil && !ok {
		err = errNoObject
	}
	if err != nil {
		return err
	}
	return c.JSON(objectOf(info))
}

// objectGet streams an object, or a range of it; the answer's length is known beforehand, and head tells the rest.
func objectGet(c *operator.Call, b *objects.Bucket) error {
	opt := objects.GetOptions{IfMatch: c.Query.Get("if-match"), IfNoneMatch: c.Query.Get("if-none-match")}
	offset, err := c.Int64("offset", 0, 0, objects.MaxObjectBytes)
	if err != nil {
		return err
	}
	length, err := c.Int64("length", 0, 1, objects.MaxObjectBytes)
	if err != nil {
		return err
	}
	if c.Query.Has("offset") || c.Query.Has("length") {
		opt.Range = &objects.Range{Offset: offset, Length: length}
	}
	o, ok, err := b.Get(c.Context(), c.Query.Get("key"), opt)
	if err == nil && !ok {
		err = errNoObject
	}
	if err != nil {
		return err
	}
	defer o.Close()
	c.Header("Content-Length", strconv.FormatInt(o.Range.Length, 10))
	c.Header("Edged-Object-Etag", o.ETag)
	c.Header("Edged-Object-Size", strconv.FormatInt(o.Size, 10))
	c.Header("Edged-Object-Offset", strconv.FormatInt(o.Range.Offset, 10))
	_, err = io.Copy(c.Stream("application/octet-stream"), o)
	return err
}

func objectPut(c *operator.Call, b *objects.Bucket) error {
	opt := objects.PutOptions{Length: c.Length(), ContentType: c.Query.Get("content-type"), IfMatch: c.Query.Get("if-match")}
	switch c.Query.Get("if-none-match") {
	case "":
	case "*":
		opt.IfNoneMatch = true
	default:
		return fault.New(fault.Invalid, "node.objects", "if-none-match of a put is * or absent")
	}
	info, err := b.Put(c.Context(), c.Query.Get("key"), c.Body(), opt)
	if err != nil {
		return err
	}
	return c.JSON(objectOf(info))
}

func objectDelete(c *operator.Call, b *objects.Bucket) error {
	if err := b.Delete(c.Context(), c.Query.Get("key")); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

func objectList(c *operator.Call, b *objects.Bucket) error {
	limit, err := c.Int("limit", 100, 1, objects.MaxListLimit)
	if err != nil {
		return err
	}
	page, err := b.List(c.Context(), objects.ListOptions{Prefix: c.Query.Get("prefix"), Delimiter: c.Query.Get("delimiter"), Limit: limit,
		Cursor: c.Query.Get("cursor"), After: c.Query.Get("after")})
	if err != nil {
		return err
	}
	out := struct {
		Objects  []objectInfo `json:"objects"`
		Prefixes []string     `json:"prefixes"`
		Next     *string      `json:"nextCursor"`
	}{Objects: []objectInfo{}, Prefixes: append([]string{}, page.Prefixes...)}
	for _, o := range page.Objects {
		out.Objects = append(out.Objects, objectOf(o))
	}
	if page.Cursor != "" {
		out.Next = &page.Cursor
	}
	return c.JSON(out)
}

func uploadCreate(c *operator.Call, b *objects.Bucket) error {
	id, err := b.CreateMultipartUpload(c.Context(), c.Query.Get("key"), c.Query.Get("content-type"))
	if err != nil {
		return err
	}
	return c.JSON(map[string]string{"uploadId": id})
}

func uploadPart(c *operator.Call, b *objects.Bucket) error {
	number, err := c.Int("number", 0, 1, objects.MaxParts)
	if err != nil {
		return err
	}
	etag, err := b.UploadPart(c.Context(), c.Query.Get("key"), c.Query.Get("upload"), number, c.Body(), c.Length())
	if err != nil {
		return err
	}
	return c.JSON(map[string]any{"partNumber": number, "etag": etag})
}

func uploadComplete(c *operator.Call, b *objects.Bucket) error {
	var in struct {
		Parts []struct {
			Number int    `json:"partNumber"`
			ETag   string `json:"etag"`
		} `json:"parts"`
	}
	if err := c.Decode(&in); err != nil {
		return err
	}
	parts := make([]objects.Part, len(in.Parts))
	for i, p := range in.Parts {
		parts[i] = objects.Part{Number: p.Number, ETag: p.ETag}
	}
	info, err := b.CompleteMultipartUpload(c.Context(), c.Query.Get("key"), c.Query.Get("upload"), parts)
	if err != nil {
		return err
	}
	return c.JSON(objectOf(info))
}

func uploadAbort(c *operator.Call, b *objects.Bucket) error {
	if err := b.AbortMultipartUpload(c.Context(), c.Query.Get("key"), c.Query.Get("upload")); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

func (n *Node) bucketStat(c *operator.Call, _ *objects.Bucket) error {
	s, err := n.stores.objects.Stat(c.Target.UID)
	if err != nil {
		return err
	}
	return c.JSON(map[string]int64{"objects": s.Objects, "uploads": s.Uploads, "bytes": s.Bytes, "quota": s.Quota})
}

// maxDamages bounds how many damaged objects an answer names; the log names all.
const maxDamages = 1000

// objectScrub reads every object of the node and compares it with its checksums.
func (n *Node) objectScrub(c *operator.Call) error {
	rate, err := c.Int64("rate", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	damages := []map[string]string{}
	result, err := n.stores.objects.Scrub(c.Context(), objects.ScrubOptions{Rate: rate, Report: func(d objects.Damage) {
		if len(damages) < maxDamages {
			damages = append(damages, map[string]string{"bucket": d.UID, "key": d.Key, "etag": d.ETag, "reason": d.Reason})
		}
	}})
	if err != nil {
		return err
	}
	return c.JSON(map[string]any{"objects": result.Objects, "bytes": result.Bytes, "damaged": result.Damaged, "damages": damages})
}

func (n *Node) objectsBackup(c *operator.Call) error {
	return n.sendBackup(c, "objects", func(dir string) error { return n.stores.objects.Backup(c.Context(), dir) })
}

package binding

import (
	"context"
	"io"
)

// Bucket is one object bucket (objects §3). Named errors: those of objects §3. A body that is given is read to its end or
// until it fails, and never after the call has returned; its failure is invalid_body.
type Bucket interface {
	Head(ctx context.Context, key string) (o ObjectInfo, found bool, err error)
	// Get opens an object. body, which the caller closes, gives the range of the one generation that was found.
	Get(ctx context.Context, key string, q ObjectQuery) (o Object, body io.ReadCloser, found bool, err error)
	Put(ctx context.Context, key string, body io.Reader, p ObjectPut) (ObjectInfo, error)
	Delete(ctx context.Context, key string) error
	List(ctx context.Context, q ObjectListQuery) (ObjectPage, error)
	CreateMultipartUpload(ctx context.Context, key, contentType string) (uploadID string, err error)
	UploadPart(ctx context.Context, key, uploadID string, number int, body io.Reader, length int64) (etag string, err error)
	CompleteMultipartUpload(ctx context.Context, key, uploadID string, parts []ObjectPart) (ObjectInfo, error)
	AbortMultipartUpload(ctx context.Context, key, uploadID string) error
}

// ObjectInfo is what is known of an object.
type ObjectInfo struct {
	Key            string // in listings
	ETag           string
	Size           int64
	ContentType    string // "" if none was given
	UploadedMillis int64
}

// ObjectQuery is what a get asks for. At most one of the conditions is set.
type ObjectQuery struct {
	IfMatch, IfNoneMatch string
	Ranged               bool
	Offset               int64
	Length               int64 // 0: to the end
}

// Object is an object that was opened; Offset and Length are what its body gives.
type Object struct {
	ObjectInfo
	Offset, Length int64
}

// ObjectPut says how an object is stored.
type ObjectPut struct {
	Length      int64 // -1: unknown, counted to the body's end
	ContentType string
	IfMatch     string
	IfAbsent    bool
}

// ObjectListQuery says which keys are wanted.
type ObjectListQuery struct {
	Prefix, Delimiter, Cursor string
	Limit                     int // 1 to 1000
}

// ObjectPage is one page of a listing.
type ObjectPage struct {
	Objects  []ObjectInfo
	Prefixes []string
	Cursor   string // "" if this is the last
}

// ObjectPart is a part of a multipart upload.
type ObjectPart struct {
	Number int
	ETag   string
}

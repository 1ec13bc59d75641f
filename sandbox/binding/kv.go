package binding

import (
	"context"
	"time"
)

// KV is one namespace (kv §3). Named errors: invalid_key, value_too_large, metadata_too_large, invalid_cursor,
// backend_unavailable.
type KV interface {
	// Get returns what a key holds; found is false for a key that holds nothing. The entry belongs to the caller.
	Get(ctx context.Context, key string) (e KVEntry, found bool, err error)
	// Put replaces value, metadata and time to live together and returns when that is durable.
	Put(ctx context.Context, key string, e KVEntry, ttl time.Duration) error // ttl 0: never expires
	// Delete returns when the absence of the key is durable, also when it was absent.
	Delete(ctx context.Context, key string) error
	// List returns keys in the order of their bytes.
	List(ctx context.Context, q KVQuery) (KVPage, error)
}

// KVEntry is a value and its metadata.
type KVEntry struct {
	Value    []byte
	Metadata map[string]string // nil if there is none
}

// KVQuery says which keys are wanted.
type KVQuery struct {
	Prefix string
	Limit  int    // 1 to 1000
	Cursor string // of the page before, "" for the first
}

// KVPage is one page of a listing.
type KVPage struct {
	Keys   []string
	Cursor string // for the next page, "" if this is the last
}

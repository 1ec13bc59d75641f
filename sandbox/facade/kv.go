package facade

import (
	"context"
	"encoding/json"
	"time"

	"edged/sandbox/binding"
	"edged/sandbox/engine"
)

// The methods of a namespace (kv §3).
var (
	kvGet             = &Method{"kv", "get", []string{"invalid_key", unavailable}}
	kvGetWithMetadata = &Method{"kv", "getWithMetadata", []string{"invalid_key", unavailable}}
	kvPut             = &Method{"kv", "put", []string{"invalid_key", "value_too_large", "metadata_too_large", unavailable}}
	kvDelete          = &Method{"kv", "delete", []string{"invalid_key", unavailable}}
	kvList            = &Method{"kv", "list", []string{"invalid_cursor", unavailable}}
)

// kvMaxValue is the largest value (kv §3): more is not even copied out of the guest.
const kvMaxValue = 26214400

// kvGet(number, key, withMetadata) brings the bytes of the value, or [bytes, metadata as JSON or null], or null.
func hostKVGet(in *engine.Instance, args []engine.Value) engine.Value {
	b, c, ok := of(in, args[0])
	key, ok2 := in.String(args[1])
	if !ok || !ok2 || b.KV == nil {
		return badCall(in)
	}
	m, both := kvGet, args[2].Bool()
	if both {
		m = kvGetWithMetadata
	}
	return start(in, c, b, m, len(key), func(ctx context.Context, room Room) (func(*engine.Instance) engine.Value, error) {
		var e binding.KVEntry
		var found bool
		err := room.Read(ctx, func() (int, error) {
			var err error
			e, found, err = b.KV.Get(ctx, key)
			return len(e.Value), err
		}, func() { e = binding.KVEntry{} })
		return func(in *engine.Instance) engine.Value {
			switch {
			case !found:
				return engine.Null
			case !both:
				return in.NewArrayBuffer(e.Value)
			}
			return in.NewArray(in.NewArrayBuffer(e.Value), metadata(in, e.Metadata))
		}, err
	})
}

func metadata(in *engine.Instance, m map[string]string) engine.Value {
	if m == nil {
		return engine.Null
	}
	text, err := json.Marshal(m)
	if err != nil {
		return engine.Null // strings always have a JSON form
	}
	return in.NewString(text)
}

// kvPut(number, key, value, metadata as JSON or null, seconds or 0). The value is a string or bytes.
func hostKVPut(in *engine.Instance, args []engine.Value) engine.Value {
	b, c, ok := of(in, args[0])
	key, ok2 := in.String(args[1])
	seconds, ok3 := args[4].Int()
	if !ok || !ok2 || !ok3 || b.KV == nil {
		return badCall(in)
	}
	e := binding.KVEntry{}
	if !args[3].IsNull() {
		text, _ := in.String(args[3])
		if json.Unmarshal([]byte(text), &e.Metadata) != nil {
			return badCall(in)
		}
	}
	e.Value, ok = octets(in, args[2], kvMaxValue)
	if !ok {
		return in.ThrowError("value_too_large", "the value is larger than 26214400 bytes")
	}
	return start(in, c, b, kvPut, len(key)+len(e.Value), func(ctx context.Context, _ Room) (func(*engine.Instance) engine.Value, error) {
		return nothing, b.KV.Put(ctx, key, e, time.Duration(seconds)*time.Second)
	})
}

// octets copies a string, as UTF-8, or the bytes of a buffer or view out of the guest; false if there are more than limit.
func octets(in *engine.Instance, v engine.Value, limit int) ([]byte, bool) {
	if v.IsString() {
		b, ok := in.AppendString(nil, v)
		return b, ok && len(b) <= limit
	}
	view, ok := in.Bytes(v)
	if !ok || len(view) > limit {
		return nil, false
	}
	return append([]byte(nil), view...), true
}

// kvDelete(number, key)
func hostKVDelete(in *engine.Instance, args []engine.Value) engine.Value {
	b, c, ok := of(in, args[0])
	key, ok2 := in.String(args[1])
	if !ok || !ok2 || b.KV == nil {
		return badCall(in)
	}
	return start(in, c, b, kvDelete, len(key), func(ctx context.Context, _ Room) (func(*engine.Instance) engine.Value, error) {
		return nothing, b.KV.Delete(ctx, key)
	})
}

// kvList(number, prefix, limit, cursor or null) brings the JSON of [[key, …], cursor or null].
func hostKVList(in *engine.Instance, args []engine.Value) engine.Value {
	b, c, ok := of(in, args[0])
	prefix, ok2 := in.String(args[1])
	limit, ok3 := args[2].Int()
	if !ok || !ok2 || !ok3 || b.KV == nil {
		return badCall(in)
	}
	q := binding.KVQuery{Prefix: prefix, Limit: int(limit)}
	if !args[3].IsNull() {
		q.Cursor, _ = in.String(args[3])
	}
	return start(in, c, b, kvList, len(prefix), func(ctx context.Context, _ Room) (func(*engine.Instance) engine.Value, error) {
		page, err := b.KV.List(ctx, q)
		if err != nil {
			return nil, err
		}
		var cursor any
		if page.Cursor != "" {
			cursor = page.Cursor
		}
		if page.Keys == nil {
			page.Keys = []string{}
		}
		text, err := json.Marshal([]any{page.Keys, cursor})
		return func(in *engine.Instance) engine.Value { return in.NewString(text) }, err
	})
}

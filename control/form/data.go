package form

import (
	"encoding/json"
	"strconv"

	"edged/control/rules"
)

// The kinds of stores behind the data Forms.
const (
	StoreKV      = "kv"
	StoreObjects = "objects"
	StoreSQL     = "sql"
	StoreQueue   = "queue"
)

// kvNamespace is EdgeKVNamespace 0.2.0 (kv §1).
func kvNamespace() *Driver {
	return data(KVNamespaceURL, "EdgeKVNamespace", StoreKV, nil, func(exists bool) any {
		return struct {
			Exists      bool   `json:"namespaceExists"`
			Key         int    `json:"maxKeyBytes"`
			Value       int    `json:"maxValueBytes"`
			Metadata    int    `json:"maxMetadataBytes"`
			Consistency string `json:"consistency"`
		}{exists, 467, 26214400, 1024, "eventual"}
	})
}

// sqliteDatabase is SQLiteDatabase 0.2.0 (sql §1).
func sqliteDatabase() *Driver {
	return data(SQLiteDatabaseURL, "SQLiteDatabase", StoreSQL, nil, func(exists bool) any {
		return struct {
			Exists bool `json:"databaseExists"`
		}{exists}
	})
}

// objectBucket is ObjectBucket 0.2.0 or 0.3.0: two identities of one Resource shape; the facade of a binding hangs on the
// identity (objects §§1, 6).
func objectBucket(url string) *Driver {
	return data(url, "ObjectBucket", StoreObjects, nil, func(exists bool) any {
		return struct {
			Exists      bool   `json:"bucketExists"`
			Key         int    `json:"maxKeyBytes"`
			Object      int64  `json:"maxObjectBytes"`
			SinglePut   int64  `json:"maxSinglePutBytes"`
			Parts       int    `json:"maxMultipartParts"`
			Consistency string `json:"consistency"`
		}{exists, 979, 5368709120, 314572800, 10000, "strong-read-after-write"}
	})
}

// atLeastOnceQueue is AtLeastOnceQueue 0.2.0 (queue §1). Both settings may change on one UID. The approximate message count
// is left out: it is no stored fact, and a rendering may not move by itself.
func atLeastOnceQueue() *Driver {
	d := data(QueueURL, "AtLeastOnceQueue", StoreQueue, []Field{
		integerField("messageRetentionSeconds", 60, 1209600, func(s *Spec, n int) { s.Queue.RetentionSeconds = n }),
		withDefault(integerField("deliveryDelaySeconds", 0, 43200, func(s *Spec, n int) { s.Queue.DelaySeconds = n }), 0),
	}, func(exists bool) any {
		return struct {
			Exists bool `json:"queueExists"`
		}{exists}
	})
	d.Frozen = nil
	return d
}

// data makes the driver of a store that versions bind: its create, update (which verifies that it is there) and delete are
// done by the runner.
func data(url, kind, store string, fields []Field, observed func(exists bool) any) *Driver {
	return &Driver{
		URL: url, Kind: kind, Role: rules.Data, Store: store, Fields: fields,
		Frozen:  frozenAll,
		Outside: func(Action) bool { return true },
		Observe: func(o *Observation) (any, *rules.Cause) {
			if o.Lost {
				return observed(false), &rules.Cause{Reason: rules.ExternalChange, Text: "the store of " + o.Self.UID + " is gone"}
			}
			return observed(true), nil
		},
	}
}

// integerField makes a required member that holds an integer within bounds.
func integerField(name string, min, max int, note func(*Spec, int)) Field {
	return Field{Name: name, Required: true, Read: func(s *Spec, pointer string, val any) (any, *rules.Verdict) {
		n, v := integer(pointer, val, min, max)
		if v == nil {
			note(s, n)
		}
		return n, v
	}}
}

// withDefault makes an integer member optional.
func withDefault(f Field, n int) Field {
	f.Required, f.Default = false, number(n)
	return f
}

// number writes an integer as the JSON trees of specs hold it.
func number(n int) any { return json.Number(strconv.Itoa(n)) }

package form

import (
	"encoding/json"
	"strings"
	"testing"
)

// attachments §§4.1, 5, kv §1, objects §1, queue §1, sql §§1, 7, 8: members, ranges, closed specs, integers however they are spelled.
func TestDataAndTriggerSpecs(t *testing.T) {
	const w, q, d = `"worker":{"resourceUid":"w"}`, `"queue":{"resourceUid":"q"}`, `"deadLetterQueue":{"resourceUid":"d"}`
	const db, set = `"database":{"resourceUid":"b"}`, `"migrationSet":{"resourceUid":"s"}`
	whole := func(change ...string) string {
		members := map[string]string{"maxBatchSize": "1", "maxBatchTimeoutSeconds": "0", "maxConcurrency": "1", "maxRetries": "0", "retryDelaySeconds": "0"}
		for i := 0; i < len(change); i += 2 {
			members[change[i]] = change[i+1]
		}
		out := q + "," + w
		for _, k := range []string{"maxBatchSize", "maxBatchTimeoutSeconds", "maxConcurrency", "maxRetries", "retryDelaySeconds"} {
			if members[k] != "" {
				out += `,"` + k + `":` + members[k]
			}
		}
		return out
	}
	for _, row := range []struct{ form, spec, rule, pointer string }{
		{CronTriggerURL, w + `,"cron":"*/5 * * * *"`, "", ""},
		{CronTriggerURL, w + `,"cron":"*/60 * * * *"`, "attachments §4", "/cron"},
		{CronTriggerURL, w + `,"cron":5`, "spec", "/cron"},
		{CronTriggerURL, w + `,"cron":null`, "spec", "/cron"},
		{CronTriggerURL, w, "spec", "/cron"},
		{CronTriggerURL, `"cron":"* * * * *"`, "spec", "/worker"},
		{CronTriggerURL, w + `,"cron":"* * * * *","timezone":"UTC"`, "spec", "/timezone"},
		{QueueConsumerURL, whole(), "", ""},
		{QueueConsumerURL, whole() + "," + d, "", ""},
		{QueueConsumerURL, whole() + `,"deadLetterQueue":null`, "REL-0", "/deadLetterQueue"},
		{QueueConsumerURL, whole() + `,"x":1`, "spec", "/x"},
		{QueueConsumerURL, whole("maxBatchSize", "100", "maxBatchTimeoutSeconds", "60", "maxConcurrency", "250", "maxRetries", "100", "retryDelaySeconds", "43200"), "", ""},
		{QueueConsumerURL, whole("maxBatchSize", "1e2"), "", ""},
		{QueueConsumerURL, whole("maxBatchSize", "0"), "spec", "/maxBatchSize"},
		{QueueConsumerURL, whole("maxBatchSize", "101"), "spec", "/maxBatchSize"},
		{QueueConsumerURL, whole("maxBatchSize", "1.5"), "spec", "/maxBatchSize"},
		{QueueConsumerURL, whole("maxBatchSize", `"1"`), "spec", "/maxBatchSize"},
		{QueueConsumerURL, whole("maxBatchSize", ""), "spec", "/maxBatchSize"},
		{QueueConsumerURL, whole("maxBatchTimeoutSeconds", "-1"), "spec", "/maxBatchTimeoutSeconds"},
		{QueueConsumerURL, whole("maxBatchTimeoutSeconds", "61"), "spec", "/maxBatchTimeoutSeconds"},
		{QueueConsumerURL, whole("maxConcurrency", "0"), "spec", "/maxConcurrency"},
		{QueueConsumerURL, whole("maxConcurrency", "251"), "spec", "/maxConcurrency"},
		{QueueConsumerURL, whole("maxRetries", "101"), "spec", "/maxRetries"},
		{QueueConsumerURL, whole("maxRetries", ""), "spec", "/maxRetries"},
		{QueueConsumerURL, whole("retryDelaySeconds", "43201"), "spec", "/retryDelaySeconds"},
		{KVNamespaceURL, "", "", ""},
		{KVNamespaceURL, `"a":1`, "spec", "/a"},
		{SQLiteDatabaseURL, "", "", ""},
		{SQLiteDatabaseURL, `"a":1`, "spec", "/a"},
		{ObjectBucket2URL, "", "", ""},
		{ObjectBucket3URL, `"cors":[]`, "spec", "/cors"},
		{QueueURL, `"messageRetentionSeconds":60`, "", ""},
		{QueueURL, `"messageRetentionSeconds":1209600,"deliveryDelaySeconds":43200`, "", ""},
		{QueueURL, `"messageRetentionSeconds":59`, "spec", "/messageRetentionSeconds"},
		{QueueURL, `"messageRetentionSeconds":1209601`, "spec", "/messageRetentionSeconds"},
		{QueueURL, `"deliveryDelaySeconds":0`, "spec", "/messageRetentionSeconds"},
		{QueueURL, `"messageRetentionSeconds":60,"deliveryDelaySeconds":43201`, "spec", "/deliveryDelaySeconds"},
		{QueueURL, `"messageRetentionSeconds":60,"deliveryDelaySeconds":null`, "spec", "/deliveryDelaySeconds"},
		{SQLiteMigrationsURL, `"artifact":{"url":"https://a.test/m","sha256":"` + strings.Repeat("a", 64) + `"}`, "", ""},
		{SQLiteMigrationsURL, `"artifact":{"url":"http://a.test/m","sha256":"` + strings.Repeat("a", 64) + `"}`, "spec", "/artifact/url"},
		{MigrationURL, db + "," + set, "", ""},
		{MigrationURL, db, "spec", "/migrationSet"},
		{MigrationURL, set, "spec", "/database"},
		{MigrationURL, db + "," + set + `,"down":true`, "spec", "/down"},
		{MigrationURL, db + `,"migrationSet":{"resourceUid":""}`, "REL-0", "/migrationSet/resourceUid"},
		{MigrationURL, db + `,"migrationSet":{"resourceUid":"s","name":"x"}`, "REL-0", "/migrationSet/name"},
		{MigrationURL, db + `,"migrationSet":"s"`, "REL-0", "/migrationSet"},
	} {
		_, v := Builtin()[row.form].Parse(json.RawMessage("{" + row.spec + "}"))
		switch {
		case row.rule == "" && v != nil:
			t.Errorf("%s {%s}: refused: %s", row.form, row.spec, v.Detail())
		case row.rule != "" && (v == nil || v.Rule != row.rule || v.Pointer != row.pointer):
			t.Errorf("%s {%s}: got %v, want %s at %s", row.form, row.spec, v, row.rule, row.pointer)
		}
	}
}

// Equality: an omitted delay is the default; a cron expression is compared by its canonical form.
func TestDataAndTriggerEquality(t *testing.T) {
	digest := func(form, spec string) [32]byte {
		s, v := Builtin()[form].Parse(json.RawMessage(spec))
		if v != nil {
			t.Fatal(v)
		}
		return s.Digest
	}
	for _, row := range []struct {
		form, a, b string
		equal      bool
	}{
		{QueueURL, `{"messageRetentionSeconds":60}`, `{"deliveryDelaySeconds":0.0,"messageRetentionSeconds":6e1}`, true},
		{QueueURL, `{"messageRetentionSeconds":60}`, `{"messageRetentionSeconds":61}`, false},
		{CronTriggerURL, `{"worker":{"resourceUid":"w"},"cron":"*/15 * * * *"}`, `{"worker":{"resourceUid":"w"},"cron":"45,0,15,30 * * * *"}`, true},
		{CronTriggerURL, `{"worker":{"resourceUid":"w"},"cron":"*/15 * * * *"}`, `{"worker":{"resourceUid":"w"},"cron":"*/16 * * * *"}`, false},
	} {
		if got := digest(row.form, row.a) == digest(row.form, row.b); got != row.equal {
			t.Errorf("%s and %s: equal is %t", row.a, row.b, got)
		}
	}
}

// Forms that need a store, or something that applies migrations, are offered only where it is.
func TestOffered(t *testing.T) {
	got := Builtin().Offered(func(store string) bool { return store == StoreKV })
	if got[KVNamespaceURL] == nil || got[ModuleWorkerURL] == nil || got[SQLiteMigrationsURL] == nil || got[QueueURL] != nil || got[MigrationURL] != nil || got[ObjectBucket3URL] != nil {
		t.Errorf("offered are %v", got)
	}
	if Builtin().Offered(func(have string) bool { return have == Migrations })[MigrationURL] == nil {
		t.Error("migrations are not offered where they can be applied")
	}
	for _, url := range []string{actorURL, workflowURL, containURL} {
		if Builtin()[url] != nil {
			t.Errorf("%s is implemented", url)
		}
	}
}

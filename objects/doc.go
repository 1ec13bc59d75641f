// Package objects is the node's object store (objects.md): all buckets in one durable store, bodies to 5 GiB streamed into and
// out of files.
//
//	store.go     Store: open, run, close; catalog.go: the life of buckets
//	options.go   Options; limits.go: the contract's numbers; errors.go: its words
//	bucket.go    Bucket, the door: head and delete
//	put.go       put; intake.go: a body on its way in
//	get.go       get; object.go: a body on its way out
//	list.go      listings; cursor.go: cursors that cannot be made up
//	upload.go    multipart uploads; complete.go: how one becomes an object
//	change.go    one durable change of a bucket, its quota
//	garbage.go   files that may go, and when; sweep.go: deleted buckets
//	scrub.go     comparing bodies with their checksums; checked.go: which were compared lately
//	operate.go   what operators ask; backup.go: online backup, restore
//	files.go     the one door to files; files_linux.go: files without a name
//	keys.go      how Pebble is keyed; record.go: the values
//
// Invariants:
//   - A call that returned nil is on disk. What a reader sees may become durable a moment later.
//   - Metadata names a file only when its bytes and its name are on disk; the file goes only when the loss of its last name is on
//     disk, nobody reads its generation, and no backup is being made. So a crash leaves at most files that nothing names.
//   - A generation never changes: whoever has opened an object reads that one to its end.
//   - Conditions are decided under the lock under which the change becomes visible.
//   - Memory of a transfer does not depend on its size.
//
// Locks, in the order in which they are taken: Store.mu, bucket.mu, garbage.mu.
//
// Not here: JavaScript (package sandbox), the Resource (package control), who may call, and S3.
package objects

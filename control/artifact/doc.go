// Package artifact keeps the bytes that Resources are made of: content-addressed blobs, who holds them and why.
//
//	options.go   Options, Open, Close
//	store.go     Put, Holds, Open: blobs and holdings
//	records.go   the keys and values of the index
//	custody.go   Acquire, Custody, Release: the bytes of one bundle, verified and kept for one Resource
//	acquire.go   the steps of one acquisition
//	manifest.go  ParseManifest (fuzzed)
//	source.go    URLs, and where the bytes of one come from: held, public HTTPS, an operator's origin
//	credential.go what operators' origins are asked with
//	usage.go     how many bytes each tenant holds
//	side.go      Serve: PUT, HEAD and GET /artifacts/sha256/{hex}
//	transfer.go  Holdings, Keep, Adopt: for backups
//	take.go      Take, Has, Pin, Unpin: blobs that the node needs because of a plan that others made
//	sweep.go     Sweep: collects what nobody needs
//
// A blob is a file blobs/{sha256}. A tenant holds a blob if a holding says so: since it uploaded it, or while a
// Resource of it has it in custody. A reference ties a blob to the tenant and the UID of a Resource.
//
// Invariants: a blob is written apart, verified, made durable and only then named, and a holding or reference is
// recorded only for a blob that has its name; so a crash leaves at worst bytes that nobody holds, which Sweep removes.
// A digest never gives one tenant what another holds. A reference keeps its blob, whoever else lets go.
//
// Not here: the Operation around an acquisition, and authentication.
package artifact

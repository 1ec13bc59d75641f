package artifact

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/disk"
	"edged/internal/egress"
	"edged/internal/fault"
)

// format is the version of everything below the store's directory.
const format = 1

// The limits of worker-bundle §2, in bytes.
const (
	MaxManifestBytes = 1 << 20
	MaxBlobBytes     = 16 << 20
	MaxBundleBytes   = 128 << 20
	MaxFiles         = 512
	MaxURLBytes      = 8192
)

// Grace is how long held bytes stay after they were stored or lost their last reference (node-surface §4).
const Grace = 24 * time.Hour

// Names of errors that leave this room. ErrInvalid is the artifact_invalid of an Operation that failed: its detail is a
// sentence for the caller. ErrDigest is an upload whose bytes are not those of its name.
var (
	ErrInvalid = fault.Name(fault.Invalid, "artifact_invalid", 96)
	ErrDigest  = fault.Name(fault.Invalid, "digest_mismatch", 98)
	// ErrQuota is an upload that would make the tenant hold more than it may.
	ErrQuota = fault.Name(fault.Conflict, "held_bytes_exceeded", 210)
)

// Options says where artifacts live and where they may come from.
type Options struct {
	Dir   string        // required
	Cache *pebble.Cache // nil means a private one
	FS    vfs.FS        // of the index; nil means the real filesystem. Blobs are always files of it

	// Origin is the public origin of the control listener, such as https://127.0.0.1:8081: URLs of its side channel are
	// resolved from held bytes, and no URL of it is ever fetched. Empty means that there is none.
	Origin string
	// Siblings are the same of other nodes whose side channels give the same bytes, and may change. nil: there are none.
	Siblings func() []string
	// Origins are exact https origins, private ones allowed, that bytes may come from besides public HTTPS.
	Origins []string
	// Credentials are sent to the origins they are for, which must be among Origins, and to no other.
	Credentials []Credential
	Egress      *egress.Policy // for public sources; nil means public addresses only
	Roots       *x509.CertPool // who may vouch for sources; nil means the system's

	DialTimeout  time.Duration // to connect and shake hands, 0 means 10 s
	FetchTimeout time.Duration // for one file, 0 means 2 min
	TotalTimeout time.Duration // for one bundle, 0 means 15 min
	Parallel     int           // files of one bundle at a time, 0 means 4

	MaxHeldBytes int64 // of all that one tenant holds, 0 means no limit

	// Spread returns when enough other nodes hold what was just uploaded; nil: there are none. The upload fails with its error.
	Spread func(ctx context.Context, tenant string, digest Digest) error
	// Elsewhere looks on other nodes for bytes that a tenant does not hold here, and makes it hold them here. found false says that it
	// holds them nowhere; an error that this cannot be told now. nil: there are no other nodes.
	Elsewhere func(ctx context.Context, tenant string, digest Digest) (found bool, err error)

	Space *disk.Space  // asked before bytes are written; nil means that there is room
	Log   *slog.Logger // nil discards
}

func (o *Options) fill() error {
	var faults []error
	if o.Dir == "" {
		faults = append(faults, errors.New("no directory is given"))
	}
	if o.Origin != "" {
		if _, ok := originOf(o.Origin + "/"); !ok {
			faults = append(faults, errors.New("own origin "+o.Origin+" is not an https origin without a path"))
		}
	}
	origins := make([]string, len(o.Origins))
	for i, text := range o.Origins {
		var ok bool
		if origins[i], ok = originOf(text + "/"); !ok {
			faults = append(faults, errors.New("artifact origin "+text+" is not an https origin without a path"))
		}
	}
	o.Origins = origins
	for i, c := range o.Credentials {
		text, err := c.check(origins)
		if err != nil {
			faults = append(faults, err)
		}
		o.Credentials[i].Origin = text
	}
	if o.Egress == nil {
		o.Egress, _ = egress.New(egress.Options{})
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&o.DialTimeout, 10 * time.Second}, {&o.FetchTimeout, 2 * time.Minute}, {&o.TotalTimeout, 15 * time.Minute}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Parallel == 0 {
		o.Parallel = 4
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(faults...); err != nil {
		return fault.New(fault.Invalid, "artifact.Open", err.Error())
	}
	return nil
}

// Store keeps artifacts. All methods but Close are safe for concurrent use. Errors carry a code: Unavailable is this
// node's disk, Canceled or
// Timeout the caller's context.
type Store struct {
	opt     Options
	db      *pebble.DB
	sources *sources

	// stripes guard, by digest, the step in which a blob gets its name and its first holding, and the one in which it
	// loses both. Nothing slower than a few disk syncs happens under them.
	stripes [64]sync.Mutex

	usage usage

	mu   sync.Mutex
	busy map[string]struct{} // UIDs with an Acquire or Release under way
	pins map[Digest]int      // what the node itself needs
}

// Open opens or makes the store in opt.Dir, which no other process may have open. What a crash left half written is
// removed. A newer format is refused with a Conflict.
func Open(opt Options) (*Store, error) {
	if err := opt.fill(); err != nil {
		return nil, err
	}
	s := &Store{opt: opt, busy: map[string]struct{}{}, pins: map[Digest]int{}}
	s.usage.init(s)
	if err := disk.Prepare(opt.Dir); err != nil {
		return nil, err
	}
	if _, err := disk.CheckFormat(opt.Dir, "artifact", format); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(s.tempDir()); err != nil {
		return nil, unavailable("artifact.Open", err)
	}
	for _, dir := range []string{s.tempDir(), s.blobDir()} {
		if err := disk.Prepare(dir); err != nil {
			return nil, err
		}
	}
	if err := disk.SyncDir(opt.Dir); err != nil {
		return nil, err
	}
	var err error
	s.db, err = disk.OpenPebble(disk.PebbleOptions{
		Dir: filepath.Join(opt.Dir, "index"), FS: opt.FS, Cache: opt.Cache, Log: opt.Log,
	})
	if err != nil {
		return nil, err
	}
	s.sources = newSources(&s.opt)
	return s, nil
}

// Close frees the store. Nothing may be in progress.
func (s *Store) Close() error {
	s.sources.close()
	return unavailable("artifact.Close", s.db.Close())
}

func (s *Store) blobDir() string { return filepath.Join(s.opt.Dir, "blobs") }
func (s *Store) tempDir() string { return filepath.Join(s.opt.Dir, "incoming") }

func unavailable(op string, err error) error { return fault.Wrap(fault.Unavailable, op, err) }

package control

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"edged/control/artifact"
	"edged/control/form"
	"edged/control/raftlog"
	"edged/control/seal"
	"edged/control/state"
	"edged/internal/disk"
	"edged/internal/fault"
)

// RestoreOptions says where a backup goes.
type RestoreOptions struct {
	Dir     string       // required: the data directory, which must hold nothing of this room
	NodeID  string       // required: the identity of the node that the directory is of
	NodeKey []byte       // required: the node key file of the node that the backup is of
	Log     *slog.Logger // nil discards
}

// Restored says what came out of a backup.
type Restored struct {
	At        string // when the backup was made
	Resources int
	Blobs     int
}

// bounds of what is read from a backup besides blobs and the state, which are not kept in memory.
const (
	maxHead     = 1 << 16
	maxFile     = 1 << 20
	maxHoldings = 1 << 30
)

// restoring is one restore under way. Everything is made beside its place and put there at the end, the room's own folder
// last: until that is there, nothing was restored.
type restoring struct {
	opt     RestoreOptions
	dir     string // of what is not in its place yet
	ring    *seal.Ring
	store   *artifact.Store
	holders map[artifact.Digest]map[string]time.Time
	state   *state.State
	out     Restored
	entries int
	ended   bool
}

// Restore makes the data directory of an empty node out of a backup. The node that starts on it has the same UIDs,
// Operations, tokens, secrets and artifacts. It is in no fleet: it is home of everything, and the nodes that the backup knew can never
// join it. The errors: Conflict if the directory is not empty or the node key is not the
// right one, Invalid if the backup is not whole; nothing is left behind then.
func Restore(ctx context.Context, opt RestoreOptions, r io.Reader) (*Restored, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	for _, name := range []string{"control", "artifacts", "tls", keyFile, tokenFile} {
		if _, err := os.Stat(filepath.Join(opt.Dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Newf(fault.Conflict, "control.Restore", "%s has %s already: restore into an empty directory", opt.Dir, name)
		}
	}
	s := &restoring{opt: opt, dir: filepath.Join(opt.Dir, "restoring"), holders: map[artifact.Digest]map[string]time.Time{}}
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, fault.Wrap(fault.Unavailable, "control.Restore", err)
	}
	err := s.restore(ctx, r)
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	if err == nil {
		err = s.place()
	}
	if err = errors.Join(err, os.RemoveAll(s.dir)); err != nil {
		return nil, err
	}
	return &s.out, nil
}

func notWhole(format string, args ...any) error {
	return fault.Newf(fault.Invalid, "control.Restore", "this is no whole backup: "+format, args...)
}

func (s *restoring) restore(ctx context.Context, r io.Reader) (err error) {
	if err := disk.Prepare(filepath.Join(s.dir, "control")); err != nil {
		return err
	}
	path := filepath.Join(s.dir, keyFile)
	if err := seal.Check(s.opt.NodeKey); err != nil {
		return fault.Newf(fault.Conflict, "control.Restore", "the node key file is none: %v", err)
	}
	if err := disk.WriteFile(path, s.opt.NodeKey, 0o600); err != nil {
		return err
	}
	if s.ring, err = seal.Open(path); err != nil {
		return err
	}
	s.store, err = artifact.Open(artifact.Options{Dir: filepath.Join(s.dir, "artifacts"), Log: s.opt.Log})
	if err != nil {
		return err
	}
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return notWhole("%v", err)
		}
		if err := s.entry(ctx, h.Name, in); err != nil {
			return err
		}
		s.entries++
	}
	if !s.ended {
		return notWhole("its end is missing")
	}
	return s.finish()
}

// entry takes one entry, in the order in which Backup writes them.
func (s *restoring) entry(ctx context.Context, name string, r io.Reader) error {
	if s.ended || (s.entries == 0) != (name == headEntry) {
		return notWhole("entry %q is out of place", name)
	}
	switch {
	case name == headEntry:
		return s.head(r)
	case strings.HasPrefix(name, filePrefix):
		return s.file(strings.TrimPrefix(name, filePrefix), r)
	case name == holdingEntry:
		return s.holdings(r)
	case strings.HasPrefix(name, blobPrefix):
		return s.blob(ctx, strings.TrimPrefix(name, blobPrefix), r)
	case name == stateEntry:
		s.state = state.New(form.Builtin())
		if err := s.state.Restore(r); err != nil {
			return notWhole("%v", err)
		}
		return nil
	case name == endEntry:
		raw, err := small(r, 32)
		if n, perr := strconv.Atoi(string(raw)); err != nil || perr != nil || n != s.entries || s.state == nil {
			return notWhole("it says that it has %.32q entries, not %d", raw, s.entries)
		}
		s.ended = true
		return nil
	}
	return notWhole("entry %q is unknown", name)
}

// small reads what must fit into memory.
func small(r io.Reader, most int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(raw)) > most {
		err = errors.New("an entry is too large")
	}
	if err != nil {
		return nil, notWhole("%v", err)
	}
	return raw, nil
}

func (s *restoring) head(r io.Reader) error {
	raw, err := small(r, maxHead)
	if err != nil {
		return err
	}
	var h backupHead
	if err := json.Unmarshal(raw, &h); err != nil || h.Format < 1 {
		return notWhole("it does not begin like one")
	}
	if h.Format > backupFormat {
		return fault.Newf(fault.Conflict, "control.Restore", "the backup has format %d, this program knows up to %d", h.Format, backupFormat)
	}
	s.out.At = h.At
	return nil
}

// file writes one file of the data directory. Only folders that other rooms do not own are written to.
func (s *restoring) file(name string, r io.Reader) error {
	if !filepath.IsLocal(name) || !strings.HasPrefix(name, "tls/") || filepath.Clean(name) != name {
		return notWhole("it has a file %q", name)
	}
	box, err := small(r, maxFile)
	if err != nil {
		return err
	}
	content, err := s.ring.Open(box, fileContext(name)...)
	if err != nil {
		return fault.Newf(fault.Conflict, "control.Restore", "the node key file does not fit this backup: %s", fault.Detail(err))
	}
	path := filepath.Join(s.dir, name)
	if err := disk.Prepare(filepath.Dir(path)); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if strings.HasSuffix(name, ".pem") {
		mode = 0o644
	}
	return disk.WriteFile(path, content, mode)
}

func (s *restoring) holdings(r io.Reader) error {
	lines := bufio.NewScanner(io.LimitReader(r, maxHoldings))
	for lines.Scan() {
		var row holdingRow
		err := json.Unmarshal(lines.Bytes(), &row)
		d, ok := artifact.ParseDigest(row.SHA256)
		if err != nil || !ok {
			return notWhole("a holding is malformed")
		}
		if s.holders[d] == nil {
			s.holders[d] = map[string]time.Time{}
		}
		s.holders[d][string(row.Tenant)] = time.Unix(row.Since, 0)
	}
	if err := lines.Err(); err != nil {
		return notWhole("%v", err)
	}
	return nil
}

func (s *restoring) blob(ctx context.Context, name string, r io.Reader) error {
	d, ok := artifact.ParseDigest(name)
	if !ok || s.holders[d] == nil {
		return notWhole("bytes %q belong to nobody", name)
	}
	s.out.Blobs++
	if err := s.store.Keep(ctx, d, r, s.holders[d]); err != nil {
		if code := fault.CodeOf(err); code == fault.Invalid || code == fault.Canceled || code == fault.TooLarge {
			return notWhole("the bytes %s are damaged", d)
		}
		return err
	}
	return nil
}

// finish ties the artifacts to their Resources and makes the state the first snapshot of a log of one voter.
func (s *restoring) finish() error {
	if missing := missingKeys(s.ring, s.state); missing != nil {
		return fault.Newf(fault.Conflict, "control.Restore", "the node key file lacks the keys %s of this backup", strings.Join(missing, ", "))
	}
	// None of the nodes that the backup knew is a peer of this one.
	s.state.Apply(&state.Command{Kind: state.Disband, Fleet: &state.FleetChange{Member: &state.Member{ID: s.opt.NodeID}}})
	var failed error
	s.state.Each(func(r *state.Resource) bool {
		s.out.Resources++
		failed = s.adopt(r)
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return s.snapshot()
}

func (s *restoring) adopt(r *state.Resource) error {
	kind, ok := artifactKinds[r.Driver().ArtifactKind]
	if !ok || r.Index == nil {
		return nil
	}
	index, digests, err := indexOf(r)
	if err != nil {
		return notWhole("%s", fault.Detail(err))
	}
	err = s.store.Adopt(artifact.Request{Tenant: r.Tenant, UID: r.UID, Digest: digests[0], Kind: kind}, index)
	if fault.CodeOf(err) == fault.Conflict {
		return notWhole("%s", fault.Detail(err))
	}
	return err
}

func (s *restoring) snapshot() error {
	dir := filepath.Join(s.dir, "control")
	if _, err := disk.CheckFormat(dir, "control", format); err != nil {
		return err
	}
	snaps, err := raftlog.OpenSnapshots(filepath.Join(dir, "snapshots"), 2, raftLogger(s.opt.Log))
	if err != nil {
		return err
	}
	addr, transport := raft.NewInmemTransport(raft.ServerAddress(s.opt.NodeID))
	voters := raft.Configuration{Servers: []raft.Server{{ID: raft.ServerID(s.opt.NodeID), Address: addr}}}
	sink, err := snaps.Create(raft.SnapshotVersionMax, 1, 1, voters, 1, transport)
	if err == nil {
		err = frozen{s.state.Freeze()}.Persist(sink)
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, "control.Restore", fmt.Errorf("write snapshot: %w", err))
	}
	return nil
}

// place moves everything to where a node looks for it.
func (s *restoring) place() error {
	for _, name := range []string{keyFile, "tls", "artifacts", "control"} {
		err := os.Rename(filepath.Join(s.dir, name), filepath.Join(s.opt.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, "control.Restore", err)
		}
	}
	return disk.SyncDir(s.opt.Dir)
}

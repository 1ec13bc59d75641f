package kv

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"edged/internal/fault"
)

// marker is the file that says "this directory is a copy". Opening such a directory gives it a new epoch.
type marker struct {
	Epoch      string `json:"epoch"`      // whose copy it is
	TakenMs    int64  `json:"takenMs"`    // when
	CaughtUpMs int64  `json:"caughtUpMs"` // all that members had at this time is in the copy
}

const markerName = "backup.json"

// Backup copies the store, as it is at one instant, into a directory that does not exist yet, while the store goes on. All that
// was acknowledged before the call is in it. Value files are linked where the disk allows it, else copied. To restore, put the
// copy in the place of the room's directory (the node must not run) and start: the store takes a new epoch.
func (s *Store) Backup(dir string) error {
	fs := s.opt.FS
	s.blobs.hold()
	defer s.blobs.release()
	if _, err := fs.Stat(dir); err == nil {
		return fault.Newf(fault.Conflict, "kv.Backup", "%s exists already", dir)
	}
	m := marker{Epoch: s.ledger.epoch.String(), TakenMs: s.opt.clock()}
	var err error
	if m.CaughtUpMs, err = s.caughtUpMs(m.TakenMs); err == nil { // asked before the copy is made
		err = fs.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = s.db.Checkpoint(fs.PathJoin(dir, "db"), pebble.WithFlushedWAL())
	}
	if err == nil {
		err = s.blobs.copyTo(fs.PathJoin(dir, "blobs"))
	}
	if err == nil && fs == vfs.Default {
		err = s.copyFormat(dir)
	}
	if err == nil {
		err = s.writeMarker(dir, m)
	}
	return fault.Wrap(fault.Unavailable, "kv.Backup", err)
}

func (s *Store) copyFormat(dir string) error {
	fs := s.opt.FS
	return vfs.Copy(fs, fs.PathJoin(s.opt.Dir, "format"), fs.PathJoin(dir, "format"))
}

// writeMarker makes the copy whole: without it the directory is not recognised as a backup.
func (s *Store) writeMarker(dir string, m marker) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	f, err := s.opt.FS.Create(s.opt.FS.PathJoin(dir, markerName), writeCategory)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	return errors.Join(err, s.blobs.syncDir(dir))
}

var restoredKey = []byte{prefixMeta, 'r'}

// takeRestored gives a directory that is a copy its new epoch, once.
func (s *Store) takeRestored() error {
	fs := s.opt.FS
	name := fs.PathJoin(s.opt.Dir, markerName)
	if _, err := fs.Stat(name); err != nil {
		return s.loadRestored()
	}
	m, err := readMarker(fs, name)
	if err != nil {
		return err
	}
	if !s.opt.rules.KeepEpoch {
		if err := s.db.Set(restoredKey, binary.BigEndian.AppendUint64(nil, uint64(m.CaughtUpMs)), pebble.Sync); err != nil {
			return err
		}
		if err := s.ledger.renew(s.opt.draw()); err != nil {
			return err
		}
	}
	s.opt.Log.Info("restored from a backup", "epoch", s.ledger.epoch, "was", m.Epoch)
	return errors.Join(fs.Remove(name), s.blobs.syncDir(s.opt.Dir), s.loadRestored())
}

func (s *Store) loadRestored() error {
	v, err := get(s.db, restoredKey)
	if err != nil || v == nil {
		return err
	}
	if len(v) != 8 {
		return errors.New("restore time is malformed")
	}
	s.restoredMs.Store(max(1, int64(binary.BigEndian.Uint64(v))))
	return nil
}

func (s *Store) clearRestored() error {
	s.restoredMs.Store(0)
	return s.db.Delete(restoredKey, pebble.Sync)
}

func readMarker(fs vfs.FS, name string) (m marker, err error) {
	f, err := fs.Open(name)
	if err != nil {
		return m, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(b, &m)
}

// hold keeps value files from being removed until release.
func (b *blobs) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds++
}

func (b *blobs) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holds--
}

// copyTo links every file into another directory: under hold, that is at least what a checkpoint taken before names.
func (b *blobs) copyTo(dir string) error {
	if err := b.fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err := b.each(func(d digest) error {
		folder := b.fs.PathJoin(dir, hex.EncodeToString(d[:1]))
		if err := b.fs.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		return vfs.LinkOrCopy(b.fs, b.path(d), b.fs.PathJoin(folder, hex.EncodeToString(d[:])))
	})
	folders, lerr := b.fs.List(dir)
	for _, folder := range folders {
		lerr = errors.Join(lerr, b.syncDir(b.fs.PathJoin(dir, folder)))
	}
	return errors.Join(err, lerr, b.syncDir(dir))
}

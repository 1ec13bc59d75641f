package control

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"edged/control/artifact"
	"edged/control/operator"
	"edged/control/seal"
	"edged/control/state"
	"edged/internal/fault"
)

// A backup is a tar stream: backup.json (backupHead), files/NAME (each sealed), holdings.jsonl (holdingRow a line),
// blobs/DIGEST, state (the encoded state), end (the number of entries before it). What is secret in it is sealed with the
// node key, which is not in it.
const (
	backupFormat = 1
	headEntry    = "backup.json"
	filePrefix   = "files/"
	holdingEntry = "holdings.jsonl"
	blobPrefix   = "blobs/"
	stateEntry   = "state"
	endEntry     = "end"
)

type backupHead struct {
	Format int    `json:"format"`
	At     string `json:"at"`
}

type holdingRow struct {
	Tenant []byte `json:"tenant"`
	SHA256 string `json:"sha256"`
	Since  int64  `json:"since"` // Unix seconds
}

// backup is one backup on its way out.
type backup struct {
	c       *Control
	out     *tar.Writer
	entries int
}

// Backup writes everything that this room keeps, and the files of Options.BackupFiles, while the node goes on: Resources,
// Operations, sealed secrets, tokens and artifacts as they are at this instant. Bytes that were collected since are left
// out if no Resource needs them. Audit and node key are not part of it.
func (c *Control) Backup(ctx context.Context, w io.Writer) error {
	frozen := c.state.Freeze()
	b := &backup{c: c, out: tar.NewWriter(w)}
	if err := b.write(ctx, frozen); err != nil {
		return err
	}
	return b.out.Close()
}

func (b *backup) write(ctx context.Context, frozen *state.Frozen) error {
	head, err := json.Marshal(backupHead{backupFormat, state.Time(time.Now().UnixMilli())})
	if err != nil {
		return fault.Wrap(fault.Internal, "control.Backup", err)
	}
	if err := b.bytes(headEntry, head); err != nil {
		return err
	}
	for _, name := range b.c.opt.BackupFiles {
		if err := b.file(name); err != nil {
			return err
		}
	}
	digests, err := b.holdings(ctx)
	if err != nil {
		return err
	}
	needed := frozenBlobs(frozen)
	for _, d := range digests {
		if err := b.blob(ctx, d, needed[d]); err != nil {
			return err
		}
	}
	if err := b.state(frozen); err != nil {
		return err
	}
	return b.bytes(endEntry, []byte(fmt.Sprint(b.entries)))
}

// entry starts an entry whose bytes the caller writes.
func (b *backup) entry(name string, size int64) error {
	b.entries++
	return b.out.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, Format: tar.FormatPAX})
}

func (b *backup) bytes(name string, content []byte) error {
	if err := b.entry(name, int64(len(content))); err != nil {
		return err
	}
	_, err := b.out.Write(content)
	return err
}

// file writes one file of the data directory, sealed.
func (b *backup) file(name string) error {
	content, err := os.ReadFile(filepath.Join(b.c.opt.Dir, name))
	if err != nil {
		return fault.Wrap(fault.Unavailable, "control.Backup", err)
	}
	box, err := b.c.secrets.ring.Seal(content, fileContext(name)...)
	if err != nil {
		return err
	}
	return b.bytes(filePrefix+name, box)
}

func fileContext(name string) []string { return []string{"backup file", name} }

// holdings writes who holds what, and returns the digests, each once.
func (b *backup) holdings(ctx context.Context) ([]artifact.Digest, error) {
	var rows []byte
	var digests []artifact.Digest
	err := b.c.artifacts.Holdings(ctx, func(tenant string, d artifact.Digest, since time.Time) error {
		row, err := json.Marshal(holdingRow{[]byte(tenant), d.String(), since.Unix()})
		rows = append(append(rows, row...), '\n')
		if len(digests) == 0 || digests[len(digests)-1] != d {
			digests = append(digests, d)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return digests, b.bytes(holdingEntry, rows)
}

// frozenBlobs returns the bytes without which the Resources of a state are not whole.
func frozenBlobs(frozen *state.Frozen) map[artifact.Digest]bool {
	needed := map[artifact.Digest]bool{}
	need := func(text string) {
		if d, ok := artifact.ParseDigest(text); ok {
			needed[d] = true
		}
	}
	frozen.Each(func(r *state.Resource) bool {
		if r.Index != nil {
			need(r.Index.SHA256)
			for _, f := range r.Index.Files {
				need(f.SHA256)
			}
		}
		return true
	})
	return needed
}

func (b *backup) blob(ctx context.Context, d artifact.Digest, needed bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	blob, err := b.c.artifacts.Open(d)
	if fault.CodeOf(err) == fault.NotFound && !needed {
		return nil // collected since
	}
	if err != nil {
		return err
	}
	defer blob.Close()
	if err := b.entry(blobPrefix+d.String(), blob.Size); err != nil {
		return err
	}
	_, err = io.Copy(b.out, blob)
	return err
}

// state writes the frozen state, whose size has to be known before: it is encoded twice, which gives the same bytes.
func (b *backup) state(frozen *state.Frozen) error {
	var size counter
	if err := frozen.Write(&size); err != nil {
		return err
	}
	if err := b.entry(stateEntry, int64(size)); err != nil {
		return err
	}
	return frozen.Write(b.out)
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func (c *Control) serveBackup(call *operator.Call) error {
	return c.Backup(call.Context(), call.Stream("application/x-tar"))
}

// missingKeys returns the ids of a backup's keys that something in the state is sealed with and the ring does not have.
func missingKeys(ring *seal.Ring, s *state.State) (missing []string) {
	have := ring.IDs()
	note := func(boxes ...[]byte) {
		for _, box := range boxes {
			if id := seal.Box(box).KeyID(); !slices.Contains(have, id) && !slices.Contains(missing, id) {
				missing = append(missing, id)
			}
		}
	}
	if m := s.Marker(); m != nil {
		note(m)
	}
	s.Each(func(r *state.Resource) bool {
		if r.Secrets != nil && !r.Secrets.Lost {
			note(r.Secrets.Boxes...)
		}
		return true
	})
	return missing
}

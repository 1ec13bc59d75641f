package node

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"edged/control/operator"
	"edged/internal/disk"
	"edged/internal/fault"
)

// An archive is a tar of one room's backup: first a file that names the room, then everything below the backup's directory,
// last an empty file without which the archive is not whole.
const (
	archiveHead = "edged-backup"
	archiveEnd  = "edged-backup-end"
	archiveForm = "edged backup 1 "
)

// outgoing holds backups while they are sent. It is on the disk of the stores, so that their files can be linked, and emptied
// when a node starts.
const outgoing = "outgoing"

func (n *Node) emptyOutgoing() error {
	return fault.Wrap(fault.Unavailable, "node.outgoing", os.RemoveAll(filepath.Join(n.opt.DataDir, outgoing)))
}

// sendBackup answers with the archive of what save puts into a directory that does not exist yet.
func (n *Node) sendBackup(c *operator.Call, room string, save func(dir string) error) error {
	const op = "node.backup"
	if err := n.space.Check(); err != nil {
		return err
	}
	base := filepath.Join(n.opt.DataDir, outgoing)
	if err := disk.Prepare(base); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(base, room+"-")
	if err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	defer os.RemoveAll(temp)
	dir := filepath.Join(temp, "backup")
	if err := save(dir); err != nil {
		return err
	}
	return fault.Wrap(fault.Unavailable, op, pack(c.Context(), c.Stream("application/x-tar"), room, dir))
}

// pack writes the archive of a directory of one room.
func pack(ctx context.Context, w io.Writer, room, dir string) error {
	out := tar.NewWriter(w)
	if err := packText(out, archiveHead, archiveForm+room+"\n"); err != nil {
		return err
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return packFile(out, filepath.ToSlash(name), path, d)
	})
	if err == nil {
		err = packText(out, archiveEnd, "")
	}
	return errors.Join(err, out.Close())
}

func packText(out *tar.Writer, name, text string) error {
	err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.WriteString(out, text)
	}
	return err
}

func packFile(out *tar.Writer, name, path string, d fs.DirEntry) error {
	if d.IsDir() {
		return out.WriteHeader(&tar.Header{Name: name + "/", Mode: 0o700, Typeflag: tar.TypeDir, Format: tar.FormatPAX})
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), Typeflag: tar.TypeReg, Format: tar.FormatPAX})
	}
	if err == nil {
		_, err = io.Copy(out, f)
	}
	return err
}

// unpack makes dir, which must not exist, out of an archive of a room, durably. The errors are Invalid: the archive is of
// another room, is none, or is not whole.
func unpack(ctx context.Context, r io.Reader, room, dir string) error {
	const op = "node.unpack"
	in := tar.NewReader(r)
	head, err := in.Next()
	if err != nil || head.Name != archiveHead {
		return fault.New(fault.Invalid, op, "this is no backup of "+room)
	}
	text, err := io.ReadAll(io.LimitReader(in, 256))
	if kind, ok := strings.CutPrefix(strings.TrimSpace(string(text)), archiveForm); err != nil || !ok || kind != room {
		return fault.Newf(fault.Invalid, op, "this is no backup of %s: it says %.80q", room, strings.TrimSpace(string(text)))
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, op, err)
	}
	for folders := []string{dir}; ; {
		if err := ctx.Err(); err != nil {
			return fault.Wrap(fault.CodeOf(err), op, err)
		}
		h, err := in.Next()
		if err != nil {
			return fault.New(fault.Invalid, op, "the backup is not whole")
		}
		if h.Name == archiveEnd {
			return syncAll(folders)
		}
		folder, err := unpackEntry(in, h, dir)
		if err != nil {
			return err
		}
		if folder != "" {
			folders = append(folders, folder)
		}
	}
}

// unpackEntry makes one file or folder and returns the folder's path.
func unpackEntry(in *tar.Reader, h *tar.Header, dir string) (folder string, err error) {
	const op = "node.unpack"
	name := filepath.FromSlash(strings.TrimSuffix(h.Name, "/"))
	if !filepath.IsLocal(name) || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
		return "", fault.Newf(fault.Invalid, op, "the backup has an entry that is none of ours: %.200q", h.Name)
	}
	path := filepath.Join(dir, name)
	if h.Typeflag == tar.TypeDir {
		return path, fault.Wrap(fault.Invalid, op, os.Mkdir(path, 0o700))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, op, err)
	}
	_, err = io.Copy(f, in)
	closed := errors.Join(f.Sync(), f.Close())
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "", fault.New(fault.Invalid, op, "the backup is not whole")
	}
	return "", fault.Wrap(fault.Unavailable, op, errors.Join(err, closed))
}

func syncAll(folders []string) error {
	for _, f := range folders {
		if err := disk.SyncDir(f); err != nil {
			return err
		}
	}
	return nil
}

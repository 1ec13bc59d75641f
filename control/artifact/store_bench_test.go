package artifact

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"edged/internal/disk"
)

// What an upload costs beside a bare durable file: write, sync, rename, sync of the directory.
func BenchmarkPut(b *testing.B) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 16<<10) // 256 KiB
	n := uint64(0)
	next := func() []byte { // other bytes every time
		n++
		binary.BigEndian.PutUint64(content, n)
		return content
	}
	b.Run("impl=ours", func(b *testing.B) {
		s := open(b, Options{})
		defer s.Close()
		b.SetBytes(int64(len(content)))
		b.ReportAllocs()
		for b.Loop() {
			c := next()
			if _, err := s.Put(b.Context(), "acme", digestOf(c), bytes.NewReader(c)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("impl=file", func(b *testing.B) {
		dir := b.TempDir()
		b.SetBytes(int64(len(content)))
		b.ReportAllocs()
		for b.Loop() {
			f, err := os.CreateTemp(dir, "")
			if err != nil {
				b.Fatal(err)
			}
			_, err = f.Write(next())
			d := digestOf(content)
			if err := errors.Join(err, f.Sync(), f.Close(), os.Rename(f.Name(), filepath.Join(dir, d.String())), disk.SyncDir(dir)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

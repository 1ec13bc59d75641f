package objects

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/zeebo/blake3"
)

// benchSizes are the bodies of the comparison; the last is more than one put takes and goes up in two parts.
var benchSizes = []struct {
	name  string
	bytes int
}{{"4KiB", 4 << 10}, {"256KiB", 256 << 10}, {"1MiB", 1 << 20}, {"512MiB", 512 << 20}}

// endless reads a buffer again and again: bodies of any size without their memory.
type endless []byte

func (e endless) Read(p []byte) (int, error) { return copy(p, e), nil }

func benchBody(n int) io.Reader { return io.LimitReader(endless(filled(scratchBytes, 1)), int64(n)) }

// BenchmarkPut: one client stores a new object in place of an older one; raw writes a new file with the same hash, makes it
// durable and removes an older one. Target: 0.85 of raw from 1 MiB on, 0.5 for 4 KiB.
func BenchmarkPut(b *testing.B) {
	for _, size := range benchSizes {
		b.Run("size="+size.name+"/impl=raw", func(b *testing.B) {
			dir, buf := b.TempDir(), make([]byte, scratchBytes)
			b.SetBytes(int64(size.bytes))
			for i := 0; b.Loop(); i++ {
				if err := writeRaw(filepath.Join(dir, fmt.Sprint(i)), size.bytes, buf); err != nil {
					b.Fatal(err)
				}
				os.Remove(filepath.Join(dir, fmt.Sprint(i-4)))
			}
		})
		b.Run("size="+size.name+"/impl=ours", func(b *testing.B) {
			w := benchWorld(b)
			b.SetBytes(int64(size.bytes))
			for i := 0; b.Loop(); i++ {
				w.putLarge(fmt.Sprint("k", i%4), size.bytes)
			}
		})
	}
}

// BenchmarkGet: one client reads a whole object that the page cache holds; raw reads a file. Target: as for BenchmarkPut.
func BenchmarkGet(b *testing.B) {
	for _, size := range benchSizes {
		buf := make([]byte, scratchBytes)
		b.Run("size="+size.name+"/impl=raw", func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "raw")
			if err := writeRaw(path, size.bytes, buf); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(size.bytes))
			for b.Loop() {
				f, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				drain(b, f, buf, size.bytes)
			}
		})
		b.Run("size="+size.name+"/impl=ours", func(b *testing.B) {
			w := benchWorld(b)
			w.putLarge("k", size.bytes)
			b.SetBytes(int64(size.bytes))
			for b.Loop() {
				o, ok, err := w.bucket().Get(b.Context(), "k", GetOptions{})
				if err != nil || !ok {
					b.Fatalf("%t, %v", ok, err)
				}
				drain(b, o, buf, size.bytes)
			}
		})
	}
}

// BenchmarkList: one page of 1,000 prefixes over 100,000 keys.
func BenchmarkList(b *testing.B) {
	w := benchWorld(b)
	for i := range 100_000 {
		if i%100 == 0 || i%1000 < 10 { // enough keys below each prefix to be skipped, and not hours to make them
			w.put(fmt.Sprintf("p%04d/%06d", i/100, i), nil)
		}
	}
	for b.Loop() {
		page, err := w.bucket().List(b.Context(), ListOptions{Delimiter: "/", Limit: 1000})
		if err != nil || len(page.Prefixes) != 1000 {
			b.Fatalf("%d prefixes, %v", len(page.Prefixes), err)
		}
	}
}

// benchWorld is a store on the disk whose garbage goes.
func benchWorld(b *testing.B) *world {
	w := newDiskWorld(b, nil)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.s.Run(ctx) //nolint:errcheck // ends with its context
	}()
	b.Cleanup(func() { cancel(); <-ended })
	return w
}

func (w *world) putLarge(key string, n int) {
	if n <= MaxPutBytes {
		if _, err := w.bucket().Put(w.t.Context(), key, benchBody(n), PutOptions{Length: int64(n)}); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	up, half := w.upload(key, ""), n/2
	var parts []Part
	for number := 1; number <= 2; number++ {
		etag, err := w.bucket().UploadPart(w.t.Context(), key, up, number, benchBody(half), int64(half))
		if err != nil {
			w.t.Fatal(err)
		}
		parts = append(parts, Part{number, etag})
	}
	if _, err := w.bucket().CompleteMultipartUpload(w.t.Context(), key, up, parts); err != nil {
		w.t.Fatal(err)
	}
}

// writeRaw is what a put cannot do without: the bytes, their hash, and both on disk.
func writeRaw(path string, n int, buf []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := blake3.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(f, hash)}, benchBody(n), buf); err != nil {
		return err
	}
	hash.Sum(nil)
	return f.Sync()
}

func drain(b *testing.B, r io.ReadCloser, buf []byte, want int) {
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buf)
	if err != nil || n != int64(want) {
		b.Fatalf("read %d of %d bytes, %v", n, want, err)
	}
	r.Close()
}

package kv

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/zeebo/blake3"

	"edged/kv/replica"
)

// maxFetches bounds the value files that are fetched at once, from all members. Each costs one buffer of memory.
const maxFetches = 4

const fetchBuffer = 64 << 10

var errBlob = errors.New("value file")

// fetchBlobs brings the value files that a unit names here and pins them until release.
func (s *Store) fetchBlobs(ctx context.Context, m Member, changes []replica.Change) (release func(), err error) {
	var pinned []digest
	release = func() {
		for _, d := range pinned {
			s.blobs.unpin(d)
		}
	}
	for i := range changes {
		r := &changes[i].Record
		if r.Flags&replica.Blob == 0 || s.known(r.Version) {
			continue
		}
		s.blobs.pin(r.Digest)
		pinned = append(pinned, r.Digest)
		if err := s.fetchBlob(ctx, m, r.Digest, int64(r.Size)); err != nil {
			release()
			return nil, errors.Join(errBlob, err)
		}
	}
	return release, nil
}

func (s *Store) known(v replica.Version) bool {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	return s.ledger.vector.Covers(v.Origin, v.Seq)
}

// fetchBlob brings one file here unless it is here or on its way already.
func (s *Store) fetchBlob(ctx context.Context, m Member, d digest, size int64) error {
	for {
		if s.blobs.has(d, uint64(size)) {
			return nil
		}
		done, mine := s.blobs.claim(d)
		if mine {
			defer s.blobs.unclaim(d)
			break
		}
		select {
		case <-done: // another session brought it, or failed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case s.fetches <- struct{}{}:
		defer func() { <-s.fetches }()
	case <-ctx.Done():
		return ctx.Err()
	}
	result, err := s.download(ctx, m, d, size)
	s.opt.Metrics.blobs[result].Inc()
	return err
}

// download streams a file to disk, going on where an earlier try stopped, and gives it its name when its digest is right.
func (s *Store) download(ctx context.Context, m Member, d digest, size int64) (result string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(stall, cancel)
	defer idle.Stop()
	b := s.blobs
	name := hex.EncodeToString(d[:])
	part := b.fs.PathJoin(b.partDir(), name)
	h := blake3.New()
	f, have, err := b.openPart(part, size, h)
	if err != nil {
		return "failed", err
	}
	defer f.Close()
	if have < size {
		req, err := s.request(ctx, m, "GET", pathBlob+name, nil)
		if err != nil {
			return "failed", err
		}
		want := http.StatusOK
		if have > 0 {
			req.Header.Set("Range", "bytes="+strconv.FormatInt(have, 10)+"-")
			want = http.StatusPartialContent
		}
		resp, err := s.send(req, want)
		if err != nil {
			return "missing", err
		}
		defer resp.Body.Close()
		buf := make([]byte, fetchBuffer)
		for at := have; at < size; {
			n, rerr := resp.Body.Read(buf[:min(int64(len(buf)), size-at)])
			h.Write(buf[:n]) // first: a vfs file may change the slice that it is given
			if _, err := f.WriteAt(buf[:n], at); err != nil {
				return "failed", err
			}
			idle.Reset(stall)
			if at += int64(n); at < size && rerr != nil {
				return "failed", fmt.Errorf("%d of %d bytes: %w", at, size, noEOF(rerr))
			}
		}
	}
	var got digest
	if h.Sum(got[:0]); got != d {
		return "damaged", errors.Join(errDamaged, b.fs.Remove(part))
	}
	if err := errors.Join(f.Sync(), b.settle(part, d)); err != nil {
		return "failed", err
	}
	if have > 0 {
		return "resumed", nil
	}
	return "ok", nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

package kv

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"edged/kv/replica"
)

// A member that takes nothing costs no memory: what is written for it is what its connection takes, and one unit. The others go on.
func TestStoppedPeer(t *testing.T) {
	const stopped = "Test-Stopped" // a header of the request that nobody reads the answer of
	var buffered atomic.Int64
	fl := newFleet(t, 2, func(_ int, f *fleetNode) {
		f.wrap = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(stopped) != "" {
					w = &countingWriter{w, &buffered}
				}
				h.ServeHTTP(w, r)
			})
		}
	})
	a, b := fl.nodes[0], fl.nodes[1]
	m, _ := b.member(a.Epoch())
	req, err := b.request(t.Context(), m, "POST", pathFeed+"?from=0", bytes.NewReader(replica.Vector{}.Append(nil)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(stopped, "1")
	resp, err := b.send(req, http.StatusOK) // and never reads
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	value := make([]byte, 100_000)
	const puts = 300
	for i := range puts {
		if err := a.kv().Put(t.Context(), fmt.Sprint(i), value, PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	fl.equalSoon(t)
	const window = 4 << 20 // of a stream, as the client of net/http gives it
	if n, most := buffered.Load(), int64(window+2*replica.MaxChunkBytes); n > most || n == 0 {
		t.Errorf("%d of %d bytes were written for a peer that reads nothing, want at most %d", n, puts*len(value), most)
	}
	io.CopyN(io.Discard, resp.Body, 1000)
}

// countingWriter counts what a handler was able to write, and tries to.
type countingWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

// Unwrap lets a response controller through.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer.
func (w *countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}

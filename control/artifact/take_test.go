package artifact

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

	"edged/internal/fault"
)

// What the node takes for itself is verified, needs no holder, and is collected from Grace after the last pin was taken back.
func TestTakeAndPin(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	body := []byte("export default {}")
	digest := Digest(sha256.Sum256(body))
	size := int64(len(body))
	take := func(size int64, body string) fault.Code {
		return fault.CodeOf(s.Take(t.Context(), digest, size, bytes.NewReader([]byte(body))))
	}
	if got := take(size, "export default []"); got != fault.Invalid || s.Has(digest, size) {
		t.Errorf("other bytes are taken: %v", got)
	}
	if got := take(size, string(body)+"x"); got != fault.TooLarge {
		t.Errorf("more bytes than said: %v", got)
	}
	if got := take(size+1, string(body)); got != fault.Invalid {
		t.Errorf("fewer bytes than said: %v", got)
	}
	if got := take(MaxBlobBytes+1, string(body)); got != fault.TooLarge {
		t.Errorf("a size over the limit: %v", got)
	}
	if got := take(size, string(body)); got != 0 || !s.Has(digest, size) || s.Has(digest, size+1) {
		t.Fatalf("the right bytes: %v", got)
	}
	sweep := func(after time.Duration, want int) {
		t.Helper()
		if n, err := s.Sweep(t.Context(), time.Now().Add(after)); err != nil || n != want {
			t.Errorf("a sweep after %v removes %d, %v; want %d", after, n, err, want)
		}
	}
	s.Pin(digest)
	s.Pin(digest)
	sweep(48*time.Hour, 0)
	if err := s.Unpin(digest); err != nil {
		t.Fatal(err)
	}
	sweep(48*time.Hour, 0) // pinned once more
	if err := s.Unpin(digest); err != nil {
		t.Fatal(err)
	}
	sweep(Grace-time.Hour, 0)
	sweep(Grace+time.Hour, 1)
	if s.Has(digest, size) {
		t.Error("the blob is still there")
	}
}

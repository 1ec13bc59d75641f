package front

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/versity/versitygw/s3err"
)

// A body is passed on unchanged, whatever its size, and with at most two pieces of memory.
func TestFeedPassesOn(t *testing.T) {
	for _, size := range []int{0, 1, pieceBytes - 1, pieceBytes, pieceBytes + 1, 3*pieceBytes + 7} {
		want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		for name, body := range map[string]io.Reader{"whole": bytes.NewReader(want), "halves": iotest.HalfReader(bytes.NewReader(want)),
			"with the end": iotest.DataErrReader(bytes.NewReader(want))} {
			var got bytes.Buffer
			waits := 0
			if err := feed(&got, body, int64(size), func() { waits++ }); err != nil || !bytes.Equal(got.Bytes(), want) || waits == 0 {
				t.Errorf("%d bytes, %s: %v, %d bytes arrived, %d waits", size, name, err, got.Len(), waits)
			}
		}
	}
	const large = 1 << 30
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := feed(io.Discard, io.LimitReader(zeros{}, large), large, func() {}); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 8*pieceBytes {
		t.Errorf("1 GiB took %d bytes of memory", used)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// objects §3.1: a body of another length than declared, or that fails, is never passed on whole: its last piece is held back.
func TestFeedHoldsBackTheEnd(t *testing.T) {
	digest := s3err.GetBadDigestErr("a", "b")
	for _, size := range []int{1, 100, pieceBytes, 2 * pieceBytes, 2*pieceBytes + 1} {
		whole := strings.Repeat("x", size)
		for name, tt := range map[string]struct {
			body io.Reader
			want error
		}{
			"short":          {strings.NewReader(whole[1:]), s3err.GetAPIError(s3err.ErrContentLengthMismatch)},
			"long":           {strings.NewReader(whole + "x"), s3err.GetAPIError(s3err.ErrContentLengthMismatch)},
			"wrong checksum": {io.MultiReader(strings.NewReader(whole), iotest.ErrReader(digest)), digest},
			"broken":         {io.MultiReader(strings.NewReader(whole), iotest.ErrReader(errors.New("reset"))), s3err.GetAPIError(s3err.ErrIncompleteBody)},
			"cut":            {io.MultiReader(strings.NewReader(whole[1:]), iotest.ErrReader(io.ErrUnexpectedEOF)), s3err.GetAPIError(s3err.ErrIncompleteBody)},
		} {
			var got bytes.Buffer
			if err := feed(&got, tt.body, int64(size), func() {}); err != tt.want || got.Len() >= size {
				t.Errorf("%d bytes, %s: %v and %d bytes were passed on, want %v", size, name, err, got.Len(), tt.want)
			}
		}
	}
}

// A receiver that wants no more ends the copying.
func TestFeedEndsWithItsReceiver(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(errAnswered)
	if err := feed(w, zeros{}, 1<<40, func() {}); err != errAnswered {
		t.Error(err)
	}
}

package objects

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"edged/internal/testkit"
)

// childDir tells a copy of this test binary to be the process that is killed.
const childDir = "EDGED_TEST_OBJECTS_DIR"

const (
	killWorkers = 4
	killKeys    = 3 // of each worker
)

// versionBody is the body of a version of a key: small, large or empty, and nobody else's.
func versionBody(key string, version int) []byte {
	if version%7 == 0 {
		return nil
	}
	n := []int{10, inlineBytes + 1, 500, blockBytes + 7}[version%4]
	once := fmt.Appendf(nil, "%s/%d;", key, version)
	return bytes.Repeat(once, n/len(once)+1)[:n]
}

// TestKilledChild is that process: it puts, overwrites, uploads and deletes, and says on standard output what it begins and what is
// durable, until it is killed.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("runs only as the child of TestKilledProcess")
	}
	s, err := Open(Options{Dir: dir, Grace: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), uid, 1); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	say := func(what, key string, version int) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("%s %s %d\n", what, key, version)
	}
	first, _ := strconv.Atoi(os.Getenv(childDir + "_FIRST"))
	var all sync.WaitGroup
	for w := range killWorkers {
		all.Go(func() {
			for v := first; ; v++ {
				key := fmt.Sprintf("w%dk%d", w, v%killKeys)
				say("begin", key, v)
				if err := change(t.Context(), s, key, v); err != nil {
					fmt.Printf("error %q %d\n", err, v)
					return
				}
				say("done", key, v)
				if v%10 == 0 {
					_ = s.Sweep(t.Context()) // what it leaves undone, the parent finds
				}
			}
		})
	}
	all.Wait()
}

// change makes version v the object of key: deleted, put or uploaded in parts.
func change(ctx context.Context, s *Store, key string, v int) error {
	b, body := s.Bucket(uid), versionBody(key, v)
	switch {
	case body == nil:
		return b.Delete(ctx, key)
	case v%5 != 0:
		_, err := b.Put(ctx, key, bytes.NewReader(body), PutOptions{Length: int64(len(body))})
		return err
	}
	up, err := b.CreateMultipartUpload(ctx, key, "")
	if err != nil {
		return err
	}
	etag, err := b.UploadPart(ctx, key, up, 1, bytes.NewReader(body), -1)
	if err != nil {
		return err
	}
	_, err = b.CompleteMultipartUpload(ctx, key, up, []Part{{1, etag}})
	return err
}

// A real process killed at random moments leaves every acknowledged object, or one that was begun after it, whole.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	rng := testkit.Rand(t)
	done, begun := map[string]int{}, map[string]int{}
	next := 1
	rounds := 5
	if testing.Short() || raceEnabled {
		rounds = 2
	}
	for range rounds {
		next = killed(t, rng, dir, next, done, begun)
		s, err := Open(Options{Dir: dir, Grace: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := audit(s); err != nil {
			t.Error(err)
		}
		for key, v := range begun {
			if err := isVersion(t.Context(), s, key, done[key], v); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killed runs a child until it has said some things, kills it, and returns a version that it did not reach.
func killed(t *testing.T, rng *rand.Rand, dir string, first int, done, begun map[string]int) (next int) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$", "-test.count=1")
	cmd.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s_FIRST=%d", childDir, first))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	next = first
	until := 50 + rng.IntN(400)
	lines := bufio.NewScanner(out)
	said := 0
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 3 {
			continue
		}
		v, err := strconv.Atoi(words[2])
		switch {
		case err != nil || words[0] == "error":
			t.Errorf("the child says %q", lines.Text())
		case words[0] == "begin":
			begun[words[1]] = v
		case words[0] == "done":
			done[words[1]] = v
		}
		next = max(next, v+1)
		if said++; said == until {
			if err := cmd.Process.Kill(); err != nil { // what it still said is read too
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if said < until {
		t.Fatalf("the child said %d things", said)
	}
	return next
}

// isVersion fails unless a key holds the version that was done last, or the one that was begun after it.
func isVersion(ctx context.Context, s *Store, key string, done, begun int) error {
	o, ok, err := s.Bucket(uid).Get(ctx, key, GetOptions{})
	if err != nil {
		return err
	}
	var got []byte
	if ok {
		if got, err = io.ReadAll(o); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		o.Close()
	}
	if bytes.Equal(got, versionBody(key, done)) || bytes.Equal(got, versionBody(key, begun)) {
		return nil
	}
	return fmt.Errorf("%s has %d bytes %.20q, done is version %d, begun %d", key, len(got), got, done, begun)
}

package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"edged/internal/disk"
	"edged/internal/fleetwire"
)

var errCrash = errors.New("the process is gone")

// crash is a writer whose process ends at one of its files: before it, in the middle of it, or after it and before anybody learns so.
type crash struct {
	file, when string
	over       bool
}

func (c *crash) write(path string, data []byte, perm fs.FileMode) error {
	if c.over {
		return errCrash
	}
	if filepath.Base(path) != c.file {
		return disk.WriteFile(path, data, perm)
	}
	c.over = true
	switch c.when {
	case "in":
		_ = os.WriteFile(filepath.Join(filepath.Dir(path), ".tmp-"+c.file+"-1"), data[:len(data)/2], perm)
	case "after":
		if err := disk.WriteFile(path, data, perm); err != nil {
			return err
		}
	}
	return errCrash
}

// only checks that a directory has these files and no other.
func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(names) {
		t.Errorf("the directory has %q, want %q", got, names)
	}
}

// docs/fleet.md, Certificates: wherever a renewal is interrupted, the next start has a key and the certificate for it, the old pair or the
// new one, and renews from there.
func TestARenewalIsInterrupted(t *testing.T) {
	for _, file := range []string{rootFile, leafFile} {
		for _, when := range []string{"before", "in", "after"} {
			t.Run(when+" "+file, func(t *testing.T) {
				f := newFleet(t, loopback{})
				f.voters = []string{"n-a"}
				f.founded("n-a", func(o *Options) { o.Renew = f.sign }, nil)
				c := &crash{file: file, when: when}
				b := f.aged("n-b", 15*day, func(o *Options) { o.write = c.write }, nil)
				first := b.NotAfter()
				if err := b.Renew(t.Context()); !errors.Is(err, errCrash) {
					t.Fatalf("it went on: %v", err)
				}
				b.stop()
				again := f.run("n-b", b.dir, nil, nil) // Open takes no pair that does not fit
				if renewed := again.NotAfter().After(first); renewed != (file == leafFile && when == "after") {
					t.Errorf("it starts with the new certificate: %v", renewed)
				}
				only(t, b.dir, rootFile, leafFile)
				again.mustStream(t, "n-a")
				now := again.NotAfter()
				if err := again.Renew(t.Context()); err != nil && !now.After(first) { // a second one within the second ends no later
					t.Errorf("it does not renew from there: %v", err)
				}
				if last, err := Open(f.options("n-b", b.dir)); err != nil || !last.NotAfter().After(first) {
					t.Errorf("in the end: %v", err)
				}
			})
		}
	}
}

// A renewal whose answer was lost is asked for again with the same request, and takes whichever answer comes.
func TestALostRenewalIsAskedForAgain(t *testing.T) {
	f := newFleet(t, loopback{})
	f.voters = []string{"n-a"}
	var asked [][]byte
	f.founded("n-a", func(o *Options) {
		o.Renew = func(ctx context.Context, member string, csr []byte) ([]byte, error) {
			asked = append(asked, csr)
			leaf, err := f.sign(ctx, member, csr)
			if len(asked) < 3 {
				return nil, errors.Join(err, errors.New("the answer is lost"))
			}
			return leaf, err
		}
	}, nil)
	b := f.aged("n-b", 15*day, nil, nil)
	first := b.NotAfter()
	for range 2 {
		if err := b.Renew(t.Context()); err == nil {
			t.Fatal("it has an answer")
		}
		if kept, err := Open(f.options("n-b", b.dir)); err != nil || !kept.NotAfter().Equal(first) {
			t.Errorf("without an answer it has another certificate on disk: %v", err)
		}
	}
	if err := b.Renew(t.Context()); err != nil || !b.NotAfter().After(first) {
		t.Fatal(err)
	}
	if len(asked) != 3 || !bytes.Equal(asked[0], asked[1]) || !bytes.Equal(asked[1], asked[2]) {
		t.Errorf("%d requests, or they differ", len(asked))
	}
	if b.asked != nil {
		t.Error("the next renewal would have the same key")
	}
}

// docs/fleet.md, Joining: wherever a join is interrupted, the same invite goes on with it: it is one join, of one key.
func TestAJoinIsInterrupted(t *testing.T) {
	for _, file := range []string{pendingFile, rootFile, leafFile, "keep"} {
		for _, when := range []string{"before", "in", "after"} {
			t.Run(when+" "+file, func(t *testing.T) {
				v, a := newVoter(t)
				j := v.invite(t, v.f, a.addr, "i1", secret)
				c := &crash{file: file, when: when}
				j.opt.write = c.write
				keep := j.opt.Keep
				if file == "keep" {
					j.opt.Keep = func(in fleetwire.JoinAnswer) error {
						if when == "after" {
							_ = keep(in)
						}
						return errCrash
					}
				}
				if _, err := Join(t.Context(), j.opt); !errors.Is(err, errCrash) {
					t.Fatalf("it went on: %v", err)
				}
				joined, err := Joined(j.opt.Dir)
				if err != nil || joined != (file == leafFile && when == "after") {
					t.Fatalf("it is a member: %v, %v", joined, err)
				}
				j.opt.write, j.opt.Keep = nil, keep
				if !joined {
					if _, err := Join(t.Context(), j.opt); err != nil {
						t.Fatalf("the same invite again: %v", err)
					}
				}
				m := v.f.run("n-new", j.opt.Dir, nil, nil)
				only(t, j.opt.Dir, rootFile, leafFile)
				m.mustStream(t, "n-a")
				if left := time.Until(m.NotAfter()); left < 29*day {
					t.Errorf("its certificate is good for %v", left)
				}
			})
		}
	}
}

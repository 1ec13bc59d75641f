package peer

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"edged/internal/fault"
	"edged/internal/pki"
)

// expulsion is what a member that may be removed has been told.
type expulsion struct {
	mu  sync.Mutex
	how []string
}

func (e *expulsion) note(how string) { e.mu.Lock(); defer e.mu.Unlock(); e.how = append(e.how, how) }

func (e *expulsion) told() []string { e.mu.Lock(); defer e.mu.Unlock(); return e.how }

// knows is the option of a voter: who was removed for certain.
func (f *fleet) knows(o *Options) {
	o.Removed = func(member string) bool { f.mu.Lock(); defer f.mu.Unlock(); return f.removed[member] }
}

// blind is the option of a member that has not heard of its own removal.
func (e *expulsion) blind(o *Options) {
	o.Allowed = func(string, string) bool { return true }
	o.OnRemoved = e.note
}

// docs/fleet.md, Revocation: a voter tells a member that it was removed, in whichever order that, the cut and the call come, and the
// member then calls nobody and answers nobody, also after a restart.
func TestARemovedMemberIsToldSo(t *testing.T) {
	get := func(m *member, to string) error {
		resp, err := m.Client().Get("https://" + pki.Host(to) + "/echo")
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	for name, tell := range map[string]func(t *testing.T, f *fleet, voter, b *member){
		"on an open connection, before the cut": func(t *testing.T, f *fleet, _, b *member) {
			f.remove("n-b")
			_ = get(b, "n-voter")
		},
		"the cut comes first": func(t *testing.T, f *fleet, voter, b *member) {
			open := b.mustStream(t, "n-voter")
			f.remove("n-b")
			voter.Recheck()
			ended(t, "a call", open.resp.Body)
			if b.Left() != "" {
				t.Error("it knew before it was told")
			}
			_ = get(b, "n-voter")
		},
		"it was cut off when that was decided": func(t *testing.T, f *fleet, voter, b *member) {
			f.remove("n-b")
			voter.Recheck()
			for begin := time.Now(); b.Left() == "" && time.Since(begin) < 10*time.Second; { // a call on what was just cut fails
				_ = get(b, "n-voter")
			}
		},
		"it asks at an address": func(t *testing.T, f *fleet, voter, b *member) {
			f.remove("n-b")
			voter.Recheck()
			c, err := b.ClientAt(voter.addr)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := c.Get("https://" + pki.Host("any") + "/echo"); err == nil {
				resp.Body.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, loopback{})
			f.voters = []string{"n-voter"}
			voter := f.founded("n-voter", f.knows, nil)
			c := f.founded("n-c", func(o *Options) { o.Allowed = func(string, string) bool { return true } }, nil) // has not heard of it
			var e expulsion
			b := f.founded("n-b", e.blind, nil)
			b.mustStream(t, "n-voter").in.Close()
			tell(t, f, voter, b)
			if told := e.told(); len(told) != 1 || !strings.Contains(told[0], "n-voter") || b.Left() != told[0] {
				t.Fatalf("told %q, knows %q", told, b.Left())
			}
			if err := get(b, "n-c"); fault.CodeOf(err) != fault.Denied || !strings.Contains(err.Error(), "was removed") {
				t.Errorf("it calls another member: %v", err)
			}
			if err := get(c, "n-b"); err == nil {
				t.Error("it answers another member")
			}
			b.stop()
			again := f.run("n-b", b.dir, e.blind, nil)
			if again.Left() != b.Left() || len(e.told()) != 1 {
				t.Errorf("after a restart it knows %q", again.Left())
			}
			if err := get(again, "n-voter"); fault.CodeOf(err) != fault.Denied {
				t.Errorf("after a restart it calls a voter: %v", err)
			}
		})
	}
}

// Who was removed reaches nothing but the word that it was: no handler, no join, no raft stream.
func TestARemovedMemberReachesNothing(t *testing.T) {
	f := newFleet(t, loopback{})
	f.voters = []string{"n-voter"}
	reached := false
	voter := f.founded("n-voter", f.knows, func(p *Peers) {
		p.Handle("/secret", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	})
	voter.RaftListener()
	_, _, cert := f.certificate("n-b", time.Now())
	f.remove("n-b")
	for _, path := range []string{"GET /secret", "POST /fleet/v1/join", "POST /fleet/v1/renew"} {
		c, err := f.bare(voter.addr, cert, protoH1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if resp := readResponse(t, c); resp.StatusCode != http.StatusGone || resp.Header.Get("Edged-Membership") != "removed" || !resp.Close {
			t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
		}
		c.Close()
	}
	if reached {
		t.Error("a handler was reached")
	}
	if c, err := f.bare(voter.addr, cert, protoRaft); err == nil {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a raft stream says something")
		}
		c.Close()
	}
}

// Only a voter's word ends a membership, and only about a node that it knows to be removed: who is merely not known yet is refused as before.
func TestWhoseWordCounts(t *testing.T) {
	f := newFleet(t, loopback{})
	says := func(p *Peers) {
		p.Handle("/says", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tellRemoved(w) }))
	}
	f.founded("n-edge", nil, says)
	f.founded("n-behind", func(o *Options) {
		o.Allowed = func(string, string) bool { return false }
		o.Removed = func(string) bool { return false }
	}, nil)
	f.voters = []string{"n-behind"}
	var e expulsion
	b := f.founded("n-b", e.blind, nil)
	resp, err := b.Client().Get("https://" + pki.Host("n-edge") + "/says")
	if err != nil || resp.StatusCode != http.StatusGone {
		t.Fatalf("%v, %v", resp, err)
	}
	resp.Body.Close()
	if _, err := b.stream(t, "n-behind"); err == nil {
		t.Error("a voter that does not know the member answers it")
	}
	if e.told() != nil || b.Left() != "" {
		t.Errorf("it believes that it was removed: %q", b.Left())
	}
}

// Connections of who was removed are few and short.
func TestConnectionsOfTheRemovedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, &pipes{})
		voter := f.founded("n-voter", f.knows, nil)
		_, _, cert := f.certificate("n-b", time.Now())
		f.remove("n-b")
		for range maxRemoved {
			c, err := f.bare(voter.addr, cert, protoH1)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		synctest.Wait()
		if asks(f.bare(voter.addr, cert, protoH1)) == nil {
			t.Error("one more is served")
		}
		time.Sleep(anonymous)
		synctest.Wait()
		if err := asks(f.bare(voter.addr, cert, protoH1)); err != nil {
			t.Errorf("after their time: %v", err)
		}
	})
}

// What cannot be read of a removal does not count as none.
func TestAnUnreadableRemovalStopsTheStart(t *testing.T) {
	f := newFleet(t, loopback{})
	m := f.founded("n-a", nil, nil)
	m.stop()
	if err := os.Mkdir(filepath.Join(m.dir, removedFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f.options("n-a", m.dir)); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

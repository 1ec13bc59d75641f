package peer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/fleetwire"
)

// voter decides joins as a control plane does: an invite makes one member, and the same request again the same one.
type voter struct {
	f      *fleet
	mu     sync.Mutex
	used   map[string]string // by invite: the request that used it
	asked  int
	answer func(*fleetwire.JoinAnswer) // what goes wrong with an answer
}

const secret = "s3cr3t"

func (v *voter) join(_ context.Context, r fleetwire.JoinRequest) (fleetwire.JoinAnswer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	if r.Secret != secret {
		return fleetwire.JoinAnswer{}, fault.New(fault.Denied, "voter", "no such invite")
	}
	if by, used := v.used[r.InviteID]; used && by != r.ID+string(r.CSR) {
		return fleetwire.JoinAnswer{}, fault.New(fault.Conflict, "voter", "the invite was used")
	}
	v.used[r.InviteID] = r.ID + string(r.CSR)
	leaf, err := v.f.ca.Sign(r.CSR, r.ID, time.Now())
	if err != nil {
		return fleetwire.JoinAnswer{}, err
	}
	v.f.move(r.ID, r.Peer)
	a := fleetwire.JoinAnswer{CertPEM: leaf.PEM, CAPEM: v.f.ca.CertPEM(), RingFile: []byte("ring"), GossipKey: "key",
		Members: []fleetwire.Member{{ID: "n-a", Control: true}}}
	if v.answer != nil {
		v.answer(&a)
	}
	return a, nil
}

type joiner struct {
	opt  JoinOptions
	kept fleetwire.JoinAnswer
	keep error
}

func (v *voter) invite(t *testing.T, f *fleet, addr, id, secret string) *joiner {
	j := &joiner{}
	j.opt = JoinOptions{Dir: filepath.Join(t.TempDir(), "fleet"), URL: "https://" + addr,
		Invite:  fleetwire.Invite{CA: f.ca.Fingerprint(), ID: id, Secret: secret}.Text(),
		Request: fleetwire.JoinRequest{ID: "n-new", Name: "new", Labels: map[string]string{"site": "x"}, KVEpoch: 1<<64 - 1},
		Keep:    func(a fleetwire.JoinAnswer) error { j.kept = a; return j.keep }, Dial: f.net.dial}
	return j
}

func newVoter(t *testing.T) (*voter, *member) {
	f := newFleet(t, loopback{})
	v := &voter{f: f, used: map[string]string{}}
	return v, f.founded("n-a", func(o *Options) { o.Join, o.Renew = v.join, f.sign }, nil)
}

// An invite makes a member, once.
func TestJoin(t *testing.T) {
	v, a := newVoter(t)
	j := v.invite(t, v.f, a.addr, "i1", secret)
	answer, err := Join(t.Context(), j.opt)
	if err != nil {
		t.Fatal(err)
	}
	if string(j.kept.RingFile) != "ring" || j.kept.GossipKey != "key" || len(answer.Members) != 1 || answer.Members[0].ID != "n-a" {
		t.Errorf("kept %+v, answered %+v", j.kept, answer)
	}
	if _, err := os.Stat(filepath.Join(j.opt.Dir, pendingFile)); err == nil {
		t.Error("the pending request stays after the join")
	}
	for name, want := range map[string]os.FileMode{"": 0o700, rootFile: 0o600, leafFile: 0o600} {
		if info, err := os.Stat(filepath.Join(j.opt.Dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", name, info, err)
		}
	}
	m := v.f.run("n-new", j.opt.Dir, nil, nil)
	m.mustStream(t, "n-a")
	a.mustStream(t, "n-new")
	if _, err := Join(t.Context(), j.opt); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a member joins again: %v", err)
	}
	second := v.invite(t, v.f, a.addr, "i1", secret)
	second.opt.Request.ID = "n-second"
	if _, err := Join(t.Context(), second.opt); fault.CodeOf(err) != fault.Conflict || fault.Detail(err) != "the invite was used" {
		t.Errorf("a used invite: %v", err)
	}
	if joined, err := Joined(second.opt.Dir); joined || err != nil {
		t.Errorf("joined %v, %v", joined, err)
	}
}

func TestRefusedJoinsSayWhy(t *testing.T) {
	v, a := newVoter(t)
	edge := v.f.founded("n-edge", nil, nil)
	other := newFleet(t, loopback{}).founded("n-a", func(o *Options) { o.Join = v.join }, nil)
	for name, tt := range map[string]struct {
		spoil func(*JoinOptions)
		want  fault.Code
		says  string
		asked bool
	}{
		"wrong secret": {func(o *JoinOptions) {
			o.Invite = fleetwire.Invite{CA: v.f.ca.Fingerprint(), ID: "i", Secret: "wr0ng"}.Text()
		}, fault.Denied, "no such invite", true},
		"another fleet": {func(o *JoinOptions) { o.URL = other.addr }, fault.Denied, "not of the fleet", false},
		"no voter":      {func(o *JoinOptions) { o.URL = edge.addr }, fault.Unavailable, "no part in the control plane", false},
		"no invite":     {func(o *JoinOptions) { o.Invite = secret }, fault.Invalid, "invite", false},
		"http":          {func(o *JoinOptions) { o.URL = "http://" + a.addr }, fault.Invalid, "peer address", false},
		"a path":        {func(o *JoinOptions) { o.URL = "https://" + a.addr + "/x" }, fault.Invalid, "peer address", false},
		"no port":       {func(o *JoinOptions) { o.URL = "edge.example" }, fault.Invalid, "peer address", false},
		"a bad ID":      {func(o *JoinOptions) { o.Request.ID = "X" }, fault.Invalid, "ID", false},
	} {
		j := v.invite(t, v.f, a.addr, "i-"+name[:1], secret)
		tt.spoil(&j.opt)
		before := v.asked
		_, err := Join(t.Context(), j.opt)
		if fault.CodeOf(err) != tt.want || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v, want %v with %q", name, err, tt.want, tt.says)
		}
		if (v.asked > before) != tt.asked {
			t.Errorf("%s: the secret was sent: %v", name, v.asked > before)
		}
	}
}

// A join whose answer was lost, or could not be kept, is asked for again as the same one.
func TestLostJoinIsRepeated(t *testing.T) {
	v, a := newVoter(t)
	j := v.invite(t, v.f, a.addr, "i1", secret)
	j.keep = errors.New("disk full")
	if _, err := Join(t.Context(), j.opt); !errors.Is(err, j.keep) {
		t.Fatal(err)
	}
	if joined, _ := Joined(j.opt.Dir); joined {
		t.Error("a member without what it has to keep")
	}
	j.keep = nil
	if _, err := Join(t.Context(), j.opt); err != nil {
		t.Errorf("the repetition: %v", err)
	}
	if v.asked != 2 {
		t.Errorf("asked %d times", v.asked)
	}
}

// What the fleet answers must fit what was asked for.
func TestUnfitAnswersAreNotKept(t *testing.T) {
	v, a := newVoter(t)
	other := newFleet(t, loopback{})
	leaf, _, _ := v.f.certificate("n-new", time.Now())
	for name, spoil := range map[string]func(*fleetwire.JoinAnswer){
		"another key": func(a *fleetwire.JoinAnswer) { a.CertPEM = leaf },
		"another CA":  func(a *fleetwire.JoinAnswer) { a.CAPEM = other.ca.CertPEM() },
		"nothing":     func(a *fleetwire.JoinAnswer) { *a = fleetwire.JoinAnswer{} },
		"too long":    func(a *fleetwire.JoinAnswer) { a.RingFile = make([]byte, fleetwire.MaxJoinAnswer) },
	} {
		v.answer = spoil
		j := v.invite(t, v.f, a.addr, name[:3], secret)
		_, err := Join(t.Context(), j.opt)
		if joined, _ := Joined(j.opt.Dir); err == nil || joined || j.kept.CertPEM != nil {
			t.Errorf("%s: %v, joined %v", name, err, joined)
		}
	}
}

// Files that do not belong together are refused and stay as they are.
func TestUnfitFilesAreRefused(t *testing.T) {
	f, other := newFleet(t, loopback{}), newFleet(t, loopback{})
	leaf, key, _ := f.certificate("n-a", time.Now())
	otherLeaf, otherKey, _ := other.certificate("n-a", time.Now())
	for name, tt := range map[string]struct {
		root, both []byte
		want       fault.Code
	}{
		"fits":          {f.ca.CertPEM(), append(bytes.Clone(leaf), key...), 0},
		"no leaf":       {f.ca.CertPEM(), nil, fault.NotFound},
		"no root":       {nil, append(bytes.Clone(leaf), key...), fault.Conflict},
		"no key":        {f.ca.CertPEM(), leaf, fault.Conflict},
		"another key":   {f.ca.CertPEM(), append(bytes.Clone(leaf), otherKey...), fault.Conflict},
		"another fleet": {f.ca.CertPEM(), append(bytes.Clone(otherLeaf), otherKey...), fault.Conflict},
		"noise":         {f.ca.CertPEM(), []byte("noise"), fault.Conflict},
	} {
		dir := t.TempDir()
		for file, b := range map[string][]byte{rootFile: tt.root, leafFile: tt.both} {
			if b != nil {
				os.WriteFile(filepath.Join(dir, file), b, 0o600)
			}
		}
		if _, err := Open(f.options("n-a", dir)); fault.CodeOf(err) != tt.want {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	dir := t.TempDir()
	if err := Found(dir, "n-a", f.ca.CertPEM(), leaf, key); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(f.options("n-b", dir)); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.Detail(err), "n-a") {
		t.Errorf("another node's certificate: %v", err)
	}
	if err := Found(t.TempDir(), "n-a", f.ca.CertPEM(), leaf, otherKey); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("Found with another key: %v", err)
	}
	if _, err := Open(Options{Node: "X"}); fault.CodeOf(err) != fault.Invalid || strings.Count(err.Error(), "missing") != 4 {
		t.Errorf("not every fault is told: %v", err)
	}
	damaged := t.TempDir()
	os.WriteFile(filepath.Join(damaged, pendingFile), []byte("noise"), 0o600)
	if _, _, err := pending(disk.WriteFile, damaged, "n-a"); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a damaged pending request: %v", err)
	}
}

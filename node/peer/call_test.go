package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
)

// Members know each other by their certificates, and bodies flow both ways at once over HTTP/2.
func TestCallsStreamBothWays(t *testing.T) {
	f := newFleet(t, loopback{})
	a, b := f.founded("n-a", nil, nil), f.founded("n-b", nil, nil)
	for _, way := range []struct {
		from *member
		me   string
		to   string
	}{{a, "n-a", "n-b"}, {b, "n-b", "n-a"}} {
		s := way.from.mustStream(t, way.to)
		if err := s.says("again"); err != nil {
			t.Error(err)
		}
		if got := s.resp.Header.Get("Caller"); got != way.me || s.resp.ProtoMajor != 2 {
			t.Errorf("%s is known as %q, over HTTP/%d", way.me, got, s.resp.ProtoMajor)
		}
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB: beyond every window
	resp, err := a.Client().Post("https://"+pki.Host("n-b")+"/echo", "", bytes.NewReader(big))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, big) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

// Whoever answers at a member's address must be that member.
func TestAnotherMembersCertificateIsRefused(t *testing.T) {
	f := newFleet(t, loopback{})
	a, b, c := f.founded("n-a", nil, nil), f.founded("n-b", nil, nil), f.founded("n-c", nil, nil)
	c.RaftListener()
	stranger := newFleet(t, loopback{}).founded("n-b", nil, nil)
	for name, addr := range map[string]string{"another member": c.addr, "another fleet": stranger.addr} {
		f.move("n-b", addr)
		if _, err := a.stream(t, "n-b"); fault.CodeOf(err) != fault.Denied {
			t.Errorf("%s: call: %v", name, err)
		}
		if _, err := a.DialRaft("n-b", time.Minute); fault.CodeOf(err) != fault.Denied {
			t.Errorf("%s: raft: %v", name, err)
		}
	}
	f.move("n-b", b.addr)
	a.mustStream(t, "n-b")
}

// Only members' names are called, and only by https.
func TestOtherURLsAreRefused(t *testing.T) {
	f := newFleet(t, loopback{})
	a := f.founded("n-a", nil, nil)
	for url, want := range map[string]fault.Code{
		"http://n-a.node.edged/": fault.Invalid, "https://" + a.addr + "/": fault.Invalid, "https://example.com/": fault.Invalid,
		"https://n-b.node.edged/": fault.Unavailable,
	} {
		resp, err := a.Client().Get(url)
		if err == nil {
			resp.Body.Close()
		}
		if fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %v", url, err, want)
		}
	}
}

// Who shows no certificate reaches the join alone, whatever it calls it.
func TestStrangersReachNothingButTheJoin(t *testing.T) {
	f := newFleet(t, loopback{})
	joins := 0
	a := f.founded("n-a", func(o *Options) {
		o.Join = func(context.Context, fleetwire.JoinRequest) (fleetwire.JoinAnswer, error) {
			joins++
			return fleetwire.JoinAnswer{}, nil
		}
		o.Renew = f.sign
	}, nil)
	call := func(proto, method, path string) int {
		c, err := f.bare(a.addr, nil, proto)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, method+" "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		resp := readResponse(t, c)
		return resp.StatusCode
	}
	for _, target := range []string{"GET /echo", "POST /echo", "POST /fleet/v1/renew", "GET /fleet/v1/join", "POST //fleet/v1/join",
		"POST /fleet/v1/join/", "POST /fleet/v1/join/../../../echo", "POST /echo/../fleet/v1/join", "OPTIONS *"} {
		method, path, _ := strings.Cut(target, " ")
		if got := call("http/1.1", method, path); got != http.StatusForbidden {
			t.Errorf("%s: %d", target, got)
		}
	}
	if joins != 0 {
		t.Errorf("%d joins", joins)
	}
	if got := call("http/1.1", "POST", "/fleet/v1/join"); got != http.StatusOK || joins != 1 {
		t.Errorf("join: %d, %d joins", got, joins)
	}
	l := a.RaftListener()
	taken := make(chan error, 1)
	go func() { _, err := l.Accept(); taken <- err }()
	if c, err := f.bare(a.addr, nil, protoRaft); err == nil {
		ended(t, "a stranger's raft stream", c)
		c.Close()
	}
	l.Close()
	if <-taken == nil {
		t.Error("a stranger has a raft stream")
	}
	other := newFleet(t, loopback{})
	_, _, foreign := other.certificate("n-a", time.Now())
	_, _, expired := f.certificate("n-x", time.Now().Add(-pki.LeafLife-time.Hour))
	f.remove("n-gone")
	_, _, removed := f.certificate("n-gone", time.Now())
	for name, cert := range map[string]*tls.Certificate{"another fleet": foreign, "expired": expired, "removed": removed} {
		c, err := f.bare(a.addr, cert, protoH1)
		if err == nil {
			_, err = c.Read(make([]byte, 1)) // in TLS 1.3 the server's verdict comes after the client's handshake
		}
		if err == nil || !strings.Contains(err.Error(), "remote error: tls") {
			t.Errorf("%s: %v, want a failed handshake", name, err)
		}
		c.Close()
	}
}

// Raft's streams carry who opened them; they go to the newest listener, and to none before there is one.
func TestRaftStreams(t *testing.T) {
	f := newFleet(t, loopback{})
	a, b := f.founded("n-a", nil, nil), f.founded("n-b", nil, nil)
	c, err := a.DialRaft("n-b", time.Minute)
	if err == nil {
		ended(t, "a stream that nobody takes", c)
		c.Close()
	}
	old := b.RaftListener()
	now := b.RaftListener()
	if _, err := old.Accept(); err == nil {
		t.Error("the replaced listener still accepts")
	}
	if now.Addr().String() != "n-b" {
		t.Errorf("address %s", now.Addr())
	}
	c, err = a.DialRaft("n-b", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := now.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.(*RaftConn).Member; got != "n-a" {
		t.Errorf("the stream is of %q", got)
	}
	go io.WriteString(c, "entries")
	got := make([]byte, 7)
	if _, err := io.ReadFull(s, got); err != nil || string(got) != "entries" {
		t.Errorf("%q, %v", got, err)
	}
	b.stop()
	if _, err := now.Accept(); err == nil {
		t.Error("the listener outlives Run")
	}
	ended(t, "a stream to a member that stopped", c)
}

// A removed member is cut at once: its calls, its streams, and those to it. Others notice nothing.
func TestRemovedMembersAreCut(t *testing.T) {
	f := newFleet(t, loopback{})
	a, b, c := f.founded("n-a", nil, nil), f.founded("n-b", nil, nil), f.founded("n-c", nil, nil)
	l := a.RaftListener()
	in, out, other := b.mustStream(t, "n-a"), a.mustStream(t, "n-b"), c.mustStream(t, "n-a")
	raft, taken := raftStream(t, b, "n-a", l)

	f.remove("n-b")
	a.Recheck()
	ended(t, "a call of the removed member", in.resp.Body)
	ended(t, "a call to the removed member", out.resp.Body)
	ended(t, "its raft stream, at its end", raft)
	ended(t, "its raft stream, at our end", taken)
	if err := other.says("still here"); err != nil {
		t.Errorf("another member was cut: %v", err)
	}
	if _, err := a.stream(t, "n-b"); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a call to the removed member: %v", err)
	}
	if _, err := b.stream(t, "n-a"); err == nil {
		t.Error("the removed member is answered")
	}
}

// Between removal and Recheck no new call is let in on a connection that is open.
func TestRemovalHoldsAtEachRequest(t *testing.T) {
	f := newFleet(t, loopback{})
	f.founded("n-a", nil, nil)
	b := f.founded("n-b", func(o *Options) { o.Allowed = func(string, string) bool { return true } }, nil)
	b.mustStream(t, "n-a")
	f.remove("n-b")
	resp, err := b.Client().Get("https://" + pki.Host("n-a") + "/echo")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := fleetwire.ReadError("test", resp.StatusCode, resp.Body); fault.CodeOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
}

// Run ends although calls wait for nothing but their end, and only when they have ended.
func TestStopEndsOpenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, &pipes{})
		left := make(chan struct{})
		a := f.founded("n-a", nil, func(p *Peers) {
			p.Handle("/feed", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.NewResponseController(w).Flush()
				<-r.Context().Done()
				time.Sleep(time.Second) // it tidies up
				close(left)
			}))
		})
		b := f.founded("n-b", nil, nil)
		resp, err := b.Client().Get("https://" + pki.Host("n-a") + "/feed")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		a.stop()
		select {
		case <-left:
		default:
			t.Error("Run returned before the call had ended")
		}
	})
}

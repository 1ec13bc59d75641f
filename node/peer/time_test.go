package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edged/internal/fault"
	"edged/internal/fleetwire"
	"edged/internal/pki"
)

const day = 24 * time.Hour

// A leaf is renewed in its last third, without a restart: open calls stay, new connections show the new one, and so does
// the next start.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, &pipes{})
		a := f.aged("n-a", 19*day, func(o *Options) { o.Renew = f.sign }, nil)
		f.founded("n-down", func(o *Options) {
			o.Renew = func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("no leader") }
		}, nil)
		b := f.aged("n-b", 20*day-2*time.Hour, nil, nil)
		f.voters = []string{"n-b", "n-gone", "n-down", "n-a"}
		first, firstA := b.NotAfter(), a.NotAfter()
		open := b.mustStream(t, "n-a")
		time.Sleep(time.Hour)
		if b.NotAfter() != first {
			t.Error("renewed in its second third")
		}
		time.Sleep(2 * time.Hour)
		if got := b.NotAfter().Sub(first); got < 19*day || got > 21*day {
			t.Errorf("the new leaf ends %v after the old one", got)
		}
		if err := open.says("still here"); err != nil {
			t.Errorf("the open call: %v", err)
		}
		old := open.resp.Header.Get("Serial")
		open.in.Close()
		io.Copy(io.Discard, open.resp.Body)
		synctest.Wait() // both sides have seen the end: the connection is idle
		b.Client().CloseIdleConnections()
		if now := b.mustStream(t, "n-a").resp.Header.Get("Serial"); now == old {
			t.Error("a new connection shows the old leaf")
		}
		again, err := Open(f.options("n-b", b.dir))
		if err != nil || again.NotAfter() != b.NotAfter() {
			t.Errorf("the next start reads another leaf: %v", err)
		}
		time.Sleep(day)
		if got := a.NotAfter().Sub(firstA); got < 19*day {
			t.Errorf("the voter's own leaf was renewed by %v", got)
		}
	})
}

// An expired certificate opens nothing any more, and what it had opened is cut.
func TestExpiredLeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, &pipes{})
		a := f.founded("n-a", func(o *Options) { o.Renew = f.sign }, nil)
		l := a.RaftListener()
		b := f.aged("n-b", pki.LeafLife-time.Hour, nil, nil) // knows no voter
		call := b.mustStream(t, "n-a")
		_, taken := raftStream(t, b, "n-a", l)
		time.Sleep(59 * time.Minute)
		if err := call.says("still here"); err != nil {
			t.Errorf("before its end: %v", err)
		}
		time.Sleep(time.Minute + 2*recheckEvery)
		synctest.Wait()
		if err := call.says("gone"); err == nil {
			t.Error("a call outlives the certificate")
		}
		ended(t, "a raft stream", taken)
		if _, err := b.stream(t, "n-a"); fault.CodeOf(err) != fault.Denied || !strings.Contains(err.Error(), "expired") {
			t.Errorf("a new call: %v", err)
		}
		if _, err := a.stream(t, "n-b"); fault.CodeOf(err) != fault.Denied {
			t.Errorf("a call to it: %v", err)
		}
	})
}

// An answer to a renewal that does not fit is not kept, and the next one is asked for after a while.
func TestUnfitRenewalsAreNotKept(t *testing.T) {
	f := newFleet(t, loopback{})
	another, _, _ := f.certificate("n-b", time.Now())
	stale := time.Now().Add(-day)
	answers := map[string]func(context.Context, string, []byte) ([]byte, error){
		"another key": func(context.Context, string, []byte) ([]byte, error) { return another, nil },
		"ends no later": func(_ context.Context, m string, csr []byte) ([]byte, error) {
			l, err := f.ca.Sign(csr, m, stale)
			return l.PEM, err
		},
		"another fleet": newFleet(t, loopback{}).sign,
		"refused": func(context.Context, string, []byte) ([]byte, error) {
			return nil, fault.New(fault.Denied, "x", "removed")
		},
		"another member": func(ctx context.Context, _ string, csr []byte) ([]byte, error) { return f.sign(ctx, "n-c", csr) },
	}
	for name, answer := range answers {
		f.founded("n-a", func(o *Options) { o.Renew = answer }, nil)
		b := f.founded("n-b", nil, nil)
		f.voters = []string{"n-a"}
		file, _ := os.ReadFile(filepath.Join(b.dir, leafFile))
		end := b.NotAfter()
		if err := b.Renew(t.Context()); err == nil || !b.NotAfter().Equal(end) {
			t.Errorf("%s: %v, until %v", name, err, b.NotAfter())
		}
		if now, _ := os.ReadFile(filepath.Join(b.dir, leafFile)); string(now) != string(file) {
			t.Errorf("%s: the file changed", name)
		}
	}
	f.voters = nil
	if err := f.founded("n-d", nil, nil).Renew(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("no voters: %v", err)
	}
}

// Who connects and says nothing, or nothing that ends, is cut off in time and holds up nobody.
func TestSlowHandshakesAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, &pipes{})
		a, b := f.founded("n-a", nil, nil), f.founded("n-b", nil, nil)
		begin := time.Now()
		slow, err := f.net.dial(t.Context(), "", a.addr)
		if err != nil {
			t.Fatal(err)
		}
		slow.Write([]byte{22, 3, 1}) // a record begins
		b.mustStream(t, "n-a")
		if took := time.Since(begin); took > time.Second {
			t.Errorf("another member waited %v", took)
		}
		slow.Read(make([]byte, 1))
		if took := time.Since(begin); took > handshakeTime {
			t.Errorf("cut after %v", took)
		}
		slow.Close()
	})
}

// As many as may shake hands at once do; the next waits for one of them to end.
func TestHandshakesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, &pipes{})
		a, b := f.founded("n-a", nil, nil), f.founded("n-b", nil, nil)
		begin := time.Now()
		for range maxShaking {
			c, err := f.net.dial(t.Context(), "", a.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		b.mustStream(t, "n-a")
		if waited := time.Since(begin); waited != handshakeTime {
			t.Errorf("waited %v, want %v", waited, handshakeTime)
		}
	})
}

// Connections without certificate are few and short, however they are used; members' are bounded for each.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, &pipes{})
		a := f.founded("n-a", nil, nil)
		b := f.founded("n-b", nil, nil)
		_, _, cert := f.certificate("n-c", time.Now())
		for range maxAnonymous {
			c, err := f.bare(a.addr, nil, protoH1)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			d, err := f.bare(a.addr, cert, protoH1)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
		}
		synctest.Wait()
		if asks(f.bare(a.addr, nil, protoH1)) == nil {
			t.Error("one more stranger is served")
		}
		if asks(f.bare(a.addr, cert, protoH1)) == nil {
			t.Error("one more connection of a member is served")
		}
		b.mustStream(t, "n-a") // another member has its own share
		time.Sleep(anonymous)
		synctest.Wait()
		c, err := f.bare(a.addr, nil, protoH1)
		for begin := time.Now(); asks(c, err) == nil; time.Sleep(time.Second) {
			if time.Since(begin) > anonymous {
				t.Fatal("a stranger's connection lives on while it is used")
			}
			err = nil
		}
		if err != nil {
			t.Errorf("strangers' connections live on: %v", err)
		}
		c.Close()
	})
}

// asks makes a call on a connection, and reports whether it was answered.
func asks(c *tls.Conn, err error) error {
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 4<<10))
	return err
}

// Joins that are decided are few; one more is told to come again.
func TestJoinsAtOnceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, &pipes{})
		hold := make(chan struct{})
		a := f.founded("n-a", func(o *Options) {
			o.Join = func(context.Context, fleetwire.JoinRequest) (fleetwire.JoinAnswer, error) {
				<-hold
				return fleetwire.JoinAnswer{}, fault.New(fault.Denied, "x", "no")
			}
		}, nil)
		join := func() error {
			_, err := Join(t.Context(), JoinOptions{Dir: t.TempDir(), URL: "https://" + strings.Replace(a.addr, "pipe", "pipe.example", 1),
				Invite:  fleetwire.Invite{CA: f.ca.Fingerprint(), ID: "i", Secret: "s"}.Text(),
				Request: fleetwire.JoinRequest{ID: "n-new"}, Keep: func(fleetwire.JoinAnswer) error { return nil },
				Dial: func(ctx context.Context, n, _ string) (net.Conn, error) { return f.net.dial(ctx, n, a.addr) }})
			return err
		}
		ends := make(chan error, maxJoins)
		for range maxJoins {
			go func() { ends <- join() }()
		}
		synctest.Wait()
		if err := join(); fault.CodeOf(err) != fault.Limited {
			t.Errorf("one more: %v", err)
		}
		close(hold)
		for range maxJoins {
			if err := <-ends; fault.CodeOf(err) != fault.Denied {
				t.Error(err)
			}
		}
	})
}

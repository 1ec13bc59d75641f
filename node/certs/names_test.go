package certs

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func names(t testing.TB, a *Authority, opt NamesOptions) *Names {
	t.Helper()
	if opt.Default == "" {
		opt.Default = "edge.localhost"
	}
	n, err := a.Names(opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A routed name gets a leaf of its own; any other, and no name, gets the default's, never one of its own.
func TestOnlyAllowedNamesGetLeaves(t *testing.T) {
	a := open(t, t.TempDir())
	var routed atomic.Bool
	routed.Store(true)
	n := names(t, a, NamesOptions{
		Allowed: func(name string) bool {
			return routed.Load() && (name == "www.example" || name == "_odd.example" || name == "10.0.0.1")
		},
		DefaultIPs: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	for sni, want := range map[string]string{
		"www.example":    "www.example",
		"WWW.Example.":   "www.example",
		"www.example.":   "www.example",
		"unknown":        "edge.localhost",
		"":               "edge.localhost",
		"_odd.example":   "edge.localhost", // allowed, but no DNS name that a certificate can hold
		"x\x00y.example": "edge.localhost",
		"10.0.0.1":       "edge.localhost",
	} {
		c, err := n.GetCertificate(hello(sni))
		if err != nil || c.Leaf.DNSNames[0] != want {
			t.Errorf("%q: got %v, %v, want %s", sni, c.Leaf.DNSNames, err, want)
		}
	}
	routed.Store(false)
	if c, _ := n.GetCertificate(hello("www.example")); c.Leaf.DNSNames[0] != "edge.localhost" {
		t.Error("a name that is no longer routed is answered with its own leaf")
	}
	if c, _ := n.GetCertificate(hello("")); c.Leaf.VerifyHostname("127.0.0.1") != nil {
		t.Error("the default leaf does not cover the listener's address")
	}
}

// Concurrent first handshakes for one name share one leaf; a due leaf is replaced.
func TestLeafIsMadeOnce(t *testing.T) {
	a := open(t, t.TempDir())
	n := names(t, a, NamesOptions{Allowed: func(string) bool { return true }})
	var got [16]*tls.Certificate
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], _ = n.GetCertificate(hello("www.example")) })
	}
	wg.Wait()
	for _, c := range got {
		if c == nil || c != got[0] {
			t.Fatal("handshakes got different leaves")
		}
	}
	old, err := a.leaf([]string{"www.example"}, time.Now().Add(-61*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	n.leaves.Store("www.example", &entry{cert: old})
	if c, _ := n.GetCertificate(hello("www.example")); c == old {
		t.Error("a leaf with 29 days left was not made anew")
	}
	if n.count != 1 {
		t.Errorf("count is %d, want 1", n.count)
	}
}

// Memory is bounded: the leaves that were used last stay.
func TestLeavesAreBounded(t *testing.T) {
	a := open(t, t.TempDir())
	n := names(t, a, NamesOptions{Allowed: func(string) bool { return true }, MaxLeaves: 16})
	hot, _ := n.GetCertificate(hello("hot.example"))
	for i := range 100 {
		if _, err := n.GetCertificate(hello(fmt.Sprintf("n%d.example", i))); err != nil {
			t.Fatal(err)
		}
		if again, _ := n.GetCertificate(hello("hot.example")); again != hot {
			t.Fatalf("the busiest leaf was dropped after %d names", i)
		}
		kept := 0
		n.leaves.Range(func(any, any) bool { kept++; return true })
		if kept > 16 || kept != n.count {
			t.Fatalf("%d leaves kept, count %d, want at most 16", kept, n.count)
		}
	}
}

// The leaves work in a real handshake against a client that trusts ca.pem alone.
func TestHandshake(t *testing.T) {
	a := open(t, t.TempDir())
	n := names(t, a, NamesOptions{Allowed: func(name string) bool { return name == "www.example" }})
	shake := func(sni string) error {
		server, client := net.Pipe()
		defer server.Close()
		defer client.Close()
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			_ = tls.Server(server, &tls.Config{GetCertificate: n.GetCertificate}).Handshake()
			server.Close()
		})
		return tls.Client(client, &tls.Config{RootCAs: a.Pool(), ServerName: sni}).Handshake()
	}
	if err := shake("www.example"); err != nil {
		t.Error(err)
	}
	if err := shake("other.example"); err == nil {
		t.Error("a client trusts an answer for a name that is not routed")
	}
}

func TestNamesOptions(t *testing.T) {
	a := open(t, t.TempDir())
	yes := func(string) bool { return true }
	for _, opt := range []NamesOptions{
		{Default: "edge.localhost"}, {Allowed: yes}, {Allowed: yes, Default: "no name"}, {Allowed: yes, Default: "a.example", MaxLeaves: -1},
	} {
		if _, err := a.Names(opt); err == nil {
			t.Errorf("%+v is accepted", opt.Default)
		}
	}
}

// A name out of a ClientHello is anything; no answer is an error or a panic.
func FuzzServerName(f *testing.F) {
	for _, s := range []string{"", ".", "a.example", "A..b", "-", strings.Repeat("a.", 130), "1.2.3.4", "\xff"} {
		f.Add(s)
	}
	a, err := Open(Options{Dir: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	n := names(f, a, NamesOptions{Allowed: func(string) bool { return true }, MaxLeaves: 64})
	f.Fuzz(func(t *testing.T, sni string) {
		c, err := n.GetCertificate(hello(sni))
		if err != nil || c == nil {
			t.Fatalf("%q: %v", sni, err)
		}
		if name := canonical(sni); validName(name) && c.Leaf.DNSNames[0] != name {
			t.Fatalf("%q got %v", sni, c.Leaf.DNSNames)
		}
	})
}

// What a handshake pays for a leaf that is at hand, against making one.
func BenchmarkGetCertificate(b *testing.B) {
	a, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	n := names(b, a, NamesOptions{Allowed: func(string) bool { return true }})
	b.Run("impl=kept", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			h := hello("www.example")
			for pb.Next() {
				if _, err := n.GetCertificate(h); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("impl=made", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := a.leaf([]string{"www.example"}, time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package gossip

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func keyFile(t testing.TB, keys ...byte) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# the fleet's keys\n\n")
	for _, k := range keys {
		key := make([]byte, 32)
		key[0] = k
		b.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	}
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// ear is one node and what it heard.
type ear struct {
	*Bell
	mu      sync.Mutex
	heads   map[uint64]Head
	refused map[Refusal]int
}

func (e *ear) head(epoch uint64) Head {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heads[epoch]
}

func (e *ear) refusals(reason Refusal) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused[reason]
}

func listen(t testing.TB, name string, epoch uint64, key string, allowed func(string, uint64) bool) *ear {
	t.Helper()
	e := &ear{heads: map[uint64]Head{}, refused: map[Refusal]int{}}
	b, err := Open(Options{Bind: "127.0.0.1:0", KeyFile: key, Tick: 5 * time.Millisecond, Name: name, Epoch: epoch, Allowed: allowed,
		Log:     slog.New(slog.DiscardHandler),
		Rang:    func(h Head) { e.mu.Lock(); e.heads[h.Epoch] = h; e.mu.Unlock() },
		Refused: func(r Refusal, _ string) { e.mu.Lock(); e.refused[r]++; e.mu.Unlock() }})
	if err != nil {
		t.Fatal(err)
	}
	e.Bell = b
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return e
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come about:", what)
		}
	}
}

func members(name string, epoch uint64) bool {
	return name == "a" && epoch == 1 || name == "b" && epoch == 2 || name == "c" && epoch == 3
}

// Heads reach all members, the newest in place of older ones; strangers, wrong epochs and wrong keys do not take part.
func TestBell(t *testing.T) {
	key := keyFile(t, 1, 2)
	a, b, c := listen(t, "a", 1, key, members), listen(t, "b", 2, keyFile(t, 2, 1), members), listen(t, "c", 3, key, members)
	b.SetPeers([]string{a.Addr()})
	c.SetPeers([]string{a.Addr()})
	eventually(t, "all join", func() bool { return a.Nodes() == 3 && b.Nodes() == 3 && c.Nodes() == 3 })
	for seq := uint64(1); seq <= 50; seq++ {
		a.Ring(Head{Seq: seq, Ms: 7})
	}
	eventually(t, "the head arrives", func() bool { return b.head(1) == Head{1, 50, 7} && c.head(1) == Head{1, 50, 7} })

	stranger := listen(t, "d", 4, key, func(string, uint64) bool { return true })
	stranger.SetPeers([]string{a.Addr()})
	old := listen(t, "b", 9, key, func(string, uint64) bool { return true }) // a member's name under another epoch
	old.SetPeers([]string{a.Addr()})
	eventually(t, "both are refused", func() bool { return a.refusals(Stranger) >= 2 })
	keyless := listen(t, "c", 3, keyFile(t, 3), members)
	keyless.SetPeers([]string{a.Addr()})
	eventually(t, "the wrong key is noticed", func() bool { return a.refusals(Key) >= 1 })
	stranger.Ring(Head{Seq: 1})
	a.Ring(Head{Seq: 51, Ms: 8})
	eventually(t, "members go on", func() bool { return b.head(1).Seq == 51 && c.head(1).Seq == 51 })
	if b.head(4).Seq != 0 || a.Nodes() != 3 {
		t.Errorf("a stranger takes part: %v, %d nodes", b.head(4), a.Nodes())
	}
}

// Whatever a network sends is refused and counted, packets and streams alike, and the bell goes on. This also holds that the words
// are known in which memberlist says so.
func TestGarbageIsCounted(t *testing.T) {
	a := listen(t, "a", 1, keyFile(t, 1), members)
	b := listen(t, "b", 2, keyFile(t, 1), members)
	keys := func() int { return a.refusals(Key) }
	random := make([]byte, 900)
	rand.NewChaCha8([32]byte{}).Read(random)
	sealed := func(version byte) []byte { return append([]byte{version}, random...) } // as the wrong key would seal it
	for _, p := range [][]byte{{0}, {255}, random[:30], random, sealed(0), sealed(1), bytes.Repeat([]byte{0}, 1400)} {
		for _, network := range []string{"udp", "tcp"} {
			was := keys()
			c, err := net.Dial(network, a.Addr())
			if err != nil {
				t.Fatal(err)
			}
			frame := p
			if network == "tcp" { // the length that a sealed stream begins with
				frame = append(binary.BigEndian.AppendUint32([]byte{10}, uint32(len(p))), p...)
			}
			c.Write(frame)
			eventually(t, fmt.Sprintf("%s of %d bytes from %x is counted", network, len(p), p[:1]), func() bool { return keys() > was })
			c.Close()
		}
	}
	for network, p := range map[string][]byte{"tcp": random, "tcp4": {10, 255, 255, 255, 255}, "udp": {244, 1, 'x', 1, 2}, "udp4": {244, 9, 'x'}} {
		// A stream that is not sealed, one that is longer than it may be, and packets for another fleet.
		was := keys()
		c, err := net.Dial(network, a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(p)
		eventually(t, fmt.Sprintf("%s of %x is counted", network, p[:3]), func() bool { return keys() > was })
		c.Close()
	}
	b.SetPeers([]string{a.Addr()})
	eventually(t, "members go on", func() bool { return a.Nodes() == 2 && b.Nodes() == 2 })
}

func TestKeyFile(t *testing.T) {
	write := func(s string) string {
		name := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, tt := range []struct {
		content string
		keys    int
	}{{good, 1}, {"# c\n\n" + good + "\r\n" + good, 2}, {"", 0}, {"# only\n", 0}, {good[:40], 0}, {good + "\nsecret!", 0}, {strings.Repeat(good+"\n", 5), 0}} {
		keys, err := readKeys(write(tt.content))
		if len(keys) != tt.keys || (err == nil) != (tt.keys > 0) {
			t.Errorf("%q: %d keys, %v", tt.content, len(keys), err)
		}
		if err != nil && (fault.CodeOf(err) != fault.Invalid || strings.Contains(err.Error(), "secret!")) {
			t.Errorf("%q: %v", tt.content, err)
		}
	}
	if _, err := readKeys(filepath.Join(t.TempDir(), "none")); fault.CodeOf(err) != fault.Invalid {
		t.Error(err)
	}
}

func FuzzHead(f *testing.F) {
	f.Add(Head{1, 2, 3}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseHead(b)
		if err == nil && string(h.append(nil)) != string(b) {
			t.Errorf("%x reads as %v", b, h)
		}
	})
}

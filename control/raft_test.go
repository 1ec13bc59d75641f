package control

import (
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"

	"edged/control/raftlog"
)

// logOf is a log of n commands with configurations at some places, named by how many voters they have.
func logOf(t testing.TB, n uint64, voters map[uint64]int) (*raftlog.Store, raft.SnapshotStore) {
	dir, quiet := t.TempDir(), slog.New(slog.DiscardHandler)
	log, err := raftlog.Open(raftlog.Options{Dir: filepath.Join(dir, "log"), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	snaps, err := raftlog.OpenSnapshots(filepath.Join(dir, "snapshots"), 2, raftLogger(quiet))
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]*raft.Log, n)
	for i := range entries {
		at := uint64(i) + 1
		entries[i] = &raft.Log{Index: at, Term: 1, Type: raft.LogCommand, Data: make([]byte, 300)}
		if v := voters[at]; v > 0 {
			entries[i].Type, entries[i].Data = raft.LogConfiguration, raft.EncodeConfiguration(configurationOf(v))
		}
	}
	if err := log.StoreLogs(entries); err != nil {
		t.Fatal(err)
	}
	return log, snaps
}

func configurationOf(voters int) (c raft.Configuration) {
	for i := range voters {
		id := string(rune('a' + i))
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	return c
}

// raftVoters is what raft itself finds.
func raftVoters(t testing.TB, log *raftlog.Store, snaps raft.SnapshotStore) []raft.Server {
	opt := Options{NodeID: "a", SnapshotCommands: 8192}
	conf := opt.raftConfig(raftLogger(slog.New(slog.DiscardHandler)))
	conf.NoSnapshotRestoreOnStart = true
	_, lone := raft.NewInmemTransport("a")
	c, err := raft.GetConfiguration(conf, nil, log, log, snaps, lone)
	if err != nil {
		t.Fatal(err)
	}
	return c.Servers
}

// Voters are those that raft finds, with and without a snapshot, before and after the last change of them.
func TestVotersOf(t *testing.T) {
	for name, c := range map[string]struct {
		voters   map[uint64]int
		snapshot uint64 // up to which entry, 0 for none; it has four voters
	}{
		"as founded":               {map[uint64]int{1: 1}, 0},
		"changed":                  {map[uint64]int{1: 1, 5: 2, 9: 3}, 0},
		"none":                     {nil, 0},
		"in a snapshot":            {map[uint64]int{1: 1, 5: 2}, 9},
		"changed since a snapshot": {map[uint64]int{1: 1, 5: 2, 9: 3}, 7},
	} {
		log, snaps := logOf(t, 12, c.voters)
		if c.snapshot > 0 {
			_, lone := raft.NewInmemTransport("a")
			sink, err := snaps.Create(1, c.snapshot, 1, configurationOf(4), 1, lone)
			if err != nil {
				t.Fatal(err)
			}
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
		}
		got, err := votersOf(log, snaps)
		if want := raftVoters(t, log, snaps); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; raft finds %v", name, got, err, want)
		}
	}
}

// Finding the voters of a log as long as it gets, 8192 commands beyond as many that a snapshot has, beside raft's own way.
func BenchmarkVotersOf(b *testing.B) {
	log, snaps := logOf(b, 16384, map[uint64]int{1: 1})
	b.Run("impl=ours", func(b *testing.B) {
		for b.Loop() {
			if got, err := votersOf(log, snaps); err != nil || len(got) != 1 {
				b.Fatal(got, err)
			}
		}
	})
	b.Run("impl=raft", func(b *testing.B) {
		for b.Loop() {
			if got := raftVoters(b, log, snaps); len(got) != 1 {
				b.Fatal(got)
			}
		}
	})
}

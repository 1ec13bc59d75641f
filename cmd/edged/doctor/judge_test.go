package doctor

import (
	"bytes"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"
)

var now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// healthy are the facts of a node that serves on a good machine.
func healthy() Facts {
	return Facts{
		Options: Options{DataDir: "/data", MaxMemory: 128 << 20, Version: "1", Engine: "engine 1"},
		Now:     now, Cores: 4,
		Kernel: kernelFacts{Release: "6.12"},
		Clock:  clockFacts{Synced: true, MaxError: 10 * time.Millisecond},
		Limits: limitFacts{Files: 1 << 20, Memory: 16 << 30},
		Data: dataFacts{Existing: "/data", Made: true, Mode: 0o700, Locked: true, Free: 50 << 30, Total: 100 << 30, Inodes: 1e6, TotalInodes: 1e7,
			Formats: []formatFact{{"format", "node", 1}, {"kv/format", "kv", 1}}, Key: keyFact{Mode: 0o600}, Controlled: true},
		Fsync: fsyncFacts{Rounds: 100, Median: time.Millisecond, P99: 3 * time.Millisecond, Type: "ext4", Options: "rw,relatime", WriteCache: "write back", BlockDevice: true},
		Doors: []doorFacts{{Listener{"http", "127.0.0.1:8080"}, syscall.EADDRINUSE}},
		Certs: certFacts{CADir: "/data/tls", CA: &x509.Certificate{NotAfter: now.AddDate(9, 0, 0)}, KeyMode: 0o600},
		Node:  nodeFacts{Locked: true, PID: 42, Ready: true, Bound: map[string]string{"http": "127.0.0.1:8080"}},
	}
}

// stopped is healthy with no node on the data directory.
func stopped(f *Facts) { f.Node, f.Data.Locked, f.Doors[0].Err = nodeFacts{}, false, nil }

func TestHealthyIsFine(t *testing.T) {
	f := healthy()
	for _, r := range []*Report{Judge(f), func() *Report { stopped(&f); return Judge(f) }()} {
		if !r.Healthy {
			t.Error("a healthy node is not")
		}
		for _, one := range r.Findings {
			if one.Level != Fine {
				t.Errorf("%+v", one)
			}
		}
	}
}

// Each fact that stops or endangers a node, or is worth a note, is found under its own check, with what follows and what to do.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Facts)
		check string
		want  Level
		says  string // in the finding or its fix
	}{
		{"no engine", func(f *Facts) { f.Options.Engine = "" }, "program", Stops, "make build"},
		{"old kernel", func(f *Facts) { f.Kernel.Scan = syscall.ENOTTY }, "kernel.pagemap", Note, "6.7"},
		{"no page table", func(f *Facts) { f.Kernel.Table = fs.ErrNotExist; f.Kernel.Scan = fs.ErrNotExist }, "kernel.pagemap", Note, "/proc"},
		{"no memory files", func(f *Facts) { f.Kernel.Memfd = syscall.EPERM }, "kernel.memfd", Danger, "memfd_create"},
		{"unwritable", func(f *Facts) { f.Data.Err = errors.New("no") }, "data.directory", Stops, "--data-dir"},
		{"open directory", func(f *Facts) { f.Data.Mode = 0o755 }, "data.directory", Danger, "chmod 700"},
		{"full", func(f *Facts) { f.Data.Free = reserve - 1 }, "data.space", Danger, "256 MiB"},
		{"nearly full", func(f *Facts) { f.Data.Free = littleFree - 1 }, "data.space", Danger, "make room"},
		{"no inodes", func(f *Facts) { f.Data.Inodes = 3 }, "data.files", Danger, "3 more files"},
		{"newer format", func(f *Facts) { f.Data.Formats[1].Version = 2 }, "data.format", Stops, "kv 2 (kv/format)"},
		{"unknown room", func(f *Facts) { f.Data.Formats[1].Room = "actors" }, "data.format", Stops, "actors"},
		{"unreadable format", func(f *Facts) { f.Data.Formats[0] = formatFact{Path: "format"} }, "data.format.unread", Stops, "never guessed"},
		{"no node key", func(f *Facts) { f.Data.Key.Err = fs.ErrNotExist }, "data.nodekey", Danger, "copy of node.key"},
		{"unreadable node key", func(f *Facts) { f.Data.Key.Err = syscall.EACCES }, "data.nodekey", Stops, "read"},
		{"open node key", func(f *Facts) { f.Data.Key.Mode = 0o644 }, "data.nodekey", Danger, "rotate"},
		{"fsync fails", func(f *Facts) { f.Fsync.Err = syscall.EIO }, "disk.fsync", Stops, "could not be made durable"},
		{"memory disk", func(f *Facts) { f.Fsync.Type = "tmpfs" }, "disk.honesty", Danger, "memory"},
		{"no barriers", func(f *Facts) { f.Fsync.Options = "rw,nobarrier" }, "disk.honesty", Danger, "nobarrier"},
		{"remote disk", func(f *Facts) { f.Fsync.Type = "nfs4" }, "disk.honesty", Danger, "local disk"},
		{"container layer", func(f *Facts) { f.Fsync.Type = "overlay" }, "disk.honesty", Danger, "volume"},
		{"impossible fsync", func(f *Facts) { f.Fsync.Median = time.Microsecond }, "disk.honesty", Danger, "faster than any device"},
		{"trusted cache", func(f *Facts) { f.Fsync.WriteCache = "write through" }, "disk.honesty", Note, "capacitors"},
		{"slow fsync", func(f *Facts) { f.Fsync.Median = 30 * time.Millisecond }, "disk.fsync", Note, "30ms"},
		{"very slow fsync", func(f *Facts) { f.Fsync.Median = time.Second }, "disk.fsync", Danger, "1s"},
		{"clock never set", func(f *Facts) { f.Now = time.Unix(0, 0) }, "clock", Danger, "1970-01-01"},
		{"clock unsynchronised", func(f *Facts) { f.Clock.Synced = false }, "clock", Danger, "chrony"},
		{"clock off", func(f *Facts) { f.Clock.MaxError = 3 * time.Second }, "clock", Danger, "3s off"},
		{"clock unknown", func(f *Facts) { f.Clock.Err = syscall.EPERM }, "clock", Note, "does not say"},
		{"few files", func(f *Facts) { f.Limits.Files = 1024 }, "limits.files", Danger, "65536"},
		{"not all connections", func(f *Facts) { f.Limits.Files = 20_000 }, "limits.files", Note, "15000 clients"},
		{"small cgroup", func(f *Facts) { f.Limits.Cgroup, f.Options.Inflight = 4<<30, 100 }, "limits.memory", Danger, "--max-inflight 24"},
		{"many cores, little memory", func(f *Facts) { f.Limits.Cgroup, f.Cores = 600<<20, 64 }, "limits.memory", Danger, "--max-inflight 3"},
		{"tiny machine", func(f *Facts) { f.Limits.Memory = 256 << 20 }, "limits.memory", Danger, "512 MiB"},
		{"asked for too many", func(f *Facts) { f.Options.Inflight = 1000 }, "limits.memory", Danger, "--max-inflight 96"},
		{"memory unknown", func(f *Facts) { f.Limits.Memory = 0 }, "limits.memory", Note, "--max-memory"},
		{"few threads", func(f *Facts) { f.Limits.Tasks = 100 }, "limits.tasks", Danger, "TasksMax"},
		{"address space", func(f *Facts) { f.Limits.AddressAS = 4 << 30 }, "limits.address", Danger, "ulimit"},
		{"port taken", func(f *Facts) { stopped(f); f.Doors[0].Err = syscall.EADDRINUSE }, "port.http", Stops, "taken by another"},
		{"port taken beside the node", func(f *Facts) { f.Doors[0].Addr = "127.0.0.1:9" }, "port.http", Stops, "taken by another"},
		{"port not allowed", func(f *Facts) { stopped(f); f.Doors[0].Err = syscall.EACCES }, "port.http", Stops, "CAP_NET_BIND_SERVICE"},
		{"no such address", func(f *Facts) { stopped(f); f.Doors[0].Err = syscall.EADDRNOTAVAIL }, "port.http", Stops, "ip addr"},
		{"another error", func(f *Facts) { stopped(f); f.Doors[0].Err = syscall.EMFILE }, "port.http", Stops, "too many open files"},
		{"another configuration", func(f *Facts) { f.Doors[0].Addr, f.Doors[0].Err = "127.0.0.1:9", nil }, "port.http", Note, "another configuration"},
		{"broken authority", func(f *Facts) { f.Certs.CAErr = errors.New("no pair") }, "tls.ca", Stops, "no pair"},
		{"authority over", func(f *Facts) { f.Certs.CA.NotAfter = now.Add(-time.Hour) }, "tls.ca", Stops, "expired"},
		{"authority ends in days", func(f *Facts) { f.Certs.CA.NotAfter = now.AddDate(0, 0, 9) }, "tls.ca", Danger, "2026-06-10"},
		{"authority ends in months", func(f *Facts) { f.Certs.CA.NotAfter = now.AddDate(0, 6, 0) }, "tls.ca", Note, "2026-12-01"},
		{"open authority", func(f *Facts) { f.Certs.KeyMode = 0o640 }, "tls.key", Danger, "chmod 600"},
		{"no directory of certificates", func(f *Facts) { f.Certs.DirErr = errors.New("gone") }, "tls.dir", Stops, "--tls-dir"},
		{"bad certificate", func(f *Facts) { f.Certs.Dir = []said{{Level: slog.LevelError, File: "www", Why: "no key"}} }, "tls.dir.www", Danger, "no key"},
		{"certificate ends", func(f *Facts) { f.Certs.Dir = []said{{Level: slog.LevelWarn, File: "www", Why: "2026-06-02"}} }, "tls.soon.www", Danger, "renew"},
		{"not ready", func(f *Facts) { f.Node.Ready, f.Node.Reasons = false, "disk" }, "node", Stops, "disk"},
		{"replaced program", func(f *Facts) { f.Node.Stale = true }, "node", Note, "restart"},
		{"held by something else", func(f *Facts) { f.Node = nodeFacts{Locked: true} }, "node", Note, "in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := healthy()
			tt.spoil(&f)
			r := Judge(f)
			seen := map[string]bool{}
			for _, one := range r.Findings {
				if seen[one.Check] {
					t.Errorf("%s is found twice", one.Check)
				}
				seen[one.Check] = true
				if bare := one.Consequence == "" || one.Fix == ""; bare != (one.Level == Fine) {
					t.Errorf("%+v: consequence and fix belong to what is not fine", one)
				}
				if one.Check == tt.check && (one.Level != tt.want || !strings.Contains(one.Found+one.Fix+one.Consequence, tt.says)) {
					t.Errorf("%+v, want %s and %q", one, tt.want, tt.says)
				}
			}
			if !seen[tt.check] {
				t.Errorf("no finding %s: %+v", tt.check, r.Findings)
			}
			if bad := tt.want == Danger || tt.want == Stops; r.Healthy == bad {
				t.Errorf("healthy is %t", r.Healthy)
			}
			var text bytes.Buffer
			if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), tt.says) {
				t.Errorf("%v\n%s", err, &text)
			}
		})
	}
}

// A port 0 asks for any, an unspecified address is the same in both families.
func TestSameDoor(t *testing.T) {
	for _, tt := range []struct {
		bound, asked string
		want         bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", true}, {"127.0.0.1:8080", "127.0.0.1:0", true}, {"127.0.0.1:8080", "localhost:8080", true},
		{"[::]:443", "0.0.0.0:443", true}, {"[::]:443", ":443", true},
		{"127.0.0.1:8080", "127.0.0.1:8081", false}, {"127.0.0.1:8080", "10.0.0.1:8080", false}, {"", "127.0.0.1:8080", false},
	} {
		if got := sameDoor(tt.bound, tt.asked); got != tt.want {
			t.Errorf("bound %s, asked %s: %t", tt.bound, tt.asked, got)
		}
	}
}

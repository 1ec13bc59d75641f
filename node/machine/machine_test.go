package machine

import (
	"os"
	"path/filepath"
	"testing"
)

const mib = 1 << 20

// tree writes the kernel's files.
func tree(t *testing.T, files map[string]string) System {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return System{Root: root}
}

const (
	meminfo = "MemTotal:       4194304 kB\nMemFree:         100 kB\nMemAvailable:   2097152 kB\n"
	pageful = "99 25600 3 4\n" // of 4 KiB: 100 MiB resident
)

// The scarcest counts: the machine, the group or one above it, of both versions; what can be dropped is left.
func TestMemory(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  Memory
		limit int64 // of Limits, the cgroup's
	}{
		{"no groups", map[string]string{"proc/meminfo": meminfo}, Memory{Limit: 4096 * mib, Available: 2048 * mib}, 0},
		{"nothing to read", nil, Memory{}, 0},
		{"second version", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "99999999999\n",
			"sys/fs/cgroup/a/memory.max": "536870912\n", "sys/fs/cgroup/a/memory.current": "419430400\n",
			"sys/fs/cgroup/a/memory.stat": "anon 5\ninactive_file 104857600\nactive_file 7\n", "sys/fs/cgroup/a/b/memory.pressure": "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=3.00\n"},
			Memory{Limit: 512 * mib, Available: 212 * mib, Stalled: 12.5}, 512 * mib},
		{"first version", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu:/x\n4:memory:/x/y\n0::/\n",
			"sys/fs/cgroup/memory/x/y/memory.limit_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/x/y/memory.usage_in_bytes": "1073741824\n",
			"sys/fs/cgroup/memory/x/y/memory.stat":       "total_inactive_file 1048576\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n"},
			Memory{Limit: 1024 * mib, Available: mib}, 1024 * mib},
		{"the machine is scarcer", map[string]string{"proc/meminfo": "MemTotal: 4194304 kB\nMemAvailable: 1024 kB\n", "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "1073741824\n", "sys/fs/cgroup/memory.current": "1048576\n"}, Memory{Limit: 4096 * mib, Available: mib}, 1024 * mib},
		{"garbage", map[string]string{"proc/meminfo": "MemTotal:\nMemTotal: x kB\n", "proc/self/cgroup": "0:\n::\n0::/../../..\n", "sys/fs/cgroup/memory.max": "-5"}, Memory{}, 0},
	} {
		s := tree(t, tt.files)
		if got := s.Memory(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if got := s.Limits(0).Cgroup; got != tt.limit {
			t.Errorf("%s: limit %d, want %d", tt.name, got, tt.limit)
		}
	}
	if got := tree(t, map[string]string{"proc/self/statm": pageful}).Memory().Own; got != 25600*int64(os.Getpagesize()) {
		t.Errorf("own memory %d", got)
	}
	if m := (System{}).Memory(); m.Limit <= 0 || m.Available <= 0 || m.Own <= 0 || m.Available > m.Limit {
		t.Errorf("this machine: %+v", m)
	}
}

// A process's own limits of threads count.
func TestLimits(t *testing.T) {
	s := tree(t, map[string]string{"proc/meminfo": meminfo, "proc/7/cgroup": "0::/a\n3:pids:/p\n", "sys/fs/cgroup/a/pids.max": "300\n", "sys/fs/cgroup/pids/p/pids.max": "200\n"})
	if got := s.Limits(7); got != (Limits{Memory: 4096 * mib, Tasks: 200}) || got.Usable() != 4096*mib {
		t.Errorf("%+v", got)
	}
}

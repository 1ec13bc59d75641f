package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type finding struct{ Check, Level, Found, Consequence, Fix string }

type diagnosis struct {
	Healthy, Running bool
	Findings         []finding
}

func (d diagnosis) of(check string) finding {
	for _, f := range d.Findings {
		if f.Check == check {
			return f
		}
	}
	return finding{}
}

// examine runs the doctor. Its exit code must say the same as its report; what this machine is like decides.
func examine(t *testing.T, args ...string) (d diagnosis) {
	t.Helper()
	out, code := runEdged(t, append([]string{"doctor", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &d); err != nil || (code == 0) != d.Healthy || code > 1 {
		t.Fatalf("exit %d, %v\n%s", code, err, out)
	}
	return d
}

// The doctor knows a running node's directory, formats, addresses and authority, and what would stop the next start of a stopped one.
// It takes the configuration of edged run.
func TestDoctor(t *testing.T) {
	t.Parallel()
	n := start(t, t.TempDir())
	config := write(t, map[string]string{"edged.toml": "http = \"" + n.info.HTTP + "\"\nhttps = \"" + n.info.HTTPS + "\"\ncontrol = \"" + n.info.Control +
		"\"\nadmin = \"" + n.info.Admin + "\"\nlog_format = \"json\"\nfrozen_after = \"20s\"\n"})
	args := []string{"--config", filepath.Join(config, "edged.toml"), "--data-dir", n.dir}
	d := examine(t, args...)
	if !d.Running {
		t.Error("a running node is not seen")
	}
	for _, check := range []string{"node", "data.nodekey", "data.format", "tls.ca", "port.http", "port.https", "port.control", "port.admin", "program"} {
		if f := d.of(check); f.Level != "fine" {
			t.Errorf("%s: %+v", check, f)
		}
	}
	for _, check := range []string{"port.http", "port.control"} {
		if f := d.of(check); !strings.Contains(f.Found, "held by this node") {
			t.Errorf("%+v", f)
		}
	}
	// Every room's format is one that this program knows.
	var rooms []string
	for part := range strings.SplitSeq(d.of("data.format").Found, ", ") {
		rooms = append(rooms, strings.Fields(part)[0])
	}
	slices.Sort(rooms)
	if want := []string{"artifact", "control", "kv", "node", "objects", "plan", "queue", "raftlog", "sqlstore"}; !slices.Equal(rooms, want) {
		t.Errorf("rooms %v, want %v", rooms, want)
	}

	n.stop()
	d = examine(t, args...)
	if f := d.of("port.http"); d.Running || f.Level != "fine" || !strings.Contains(f.Found, "free") {
		t.Errorf("stopped: %+v", f)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "kv", "format"), []byte("kv 99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(n.dir, "node.key")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(n.dir, "tls", "ca.key")); err != nil {
		t.Fatal(err)
	}
	certs := write(t, map[string]string{"www.pem": "no certificate"})
	d = examine(t, append(args, "--tls-dir", certs)...)
	for check, want := range map[string]string{"data.format": "stops", "data.nodekey": "danger", "tls.ca": "stops", "tls.dir.www": "danger"} {
		if f := d.of(check); f.Level != want || f.Consequence == "" || f.Fix == "" {
			t.Errorf("%s: %+v, want %s", check, f, want)
		}
	}
	if d.Healthy {
		t.Error("healthy")
	}
	if out, code := runEdged(t, "doctor", "--isolation", "none"); code != 2 || !strings.Contains(out, "--isolation") {
		t.Errorf("exit %d: %s", code, out)
	}
}

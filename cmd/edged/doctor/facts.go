package doctor

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options is what Gather needs: where to look, as `edged run` is configured.
type Options struct {
	DataDir   string
	TLSDir    string
	Listeners []Listener
	MaxMemory int64 // bytes of one sandbox
	Inflight  int   // --max-inflight, 0 for the default
	Version   string
	Engine    string // "" for a program that was built without
}

// Listener is one address of the configuration; Addr is never empty.
type Listener struct{ Flag, Addr string }

// Facts is what was looked at. Judge reads nothing else.
type Facts struct {
	Options Options
	Now     time.Time
	Cores   int

	Kernel kernelFacts
	Clock  clockFacts
	Limits limitFacts
	Data   dataFacts
	Fsync  fsyncFacts
	Doors  []doorFacts
	Certs  certFacts
	Node   nodeFacts
}

// nodeFacts is what the node on the data directory says about itself; the zero value if none runs.
type nodeFacts struct {
	Locked  bool // somebody holds the data directory
	PID     int  // from run.json; 0 if it does not serve
	Bound   map[string]string
	Ready   bool
	Reasons string // why it is not ready
	Stale   bool   // its program file was replaced since it started
}

// Gather looks at everything. What cannot be looked at is said in the facts; it takes a few seconds at most.
func Gather(ctx context.Context, opt Options) Facts {
	f := Facts{Options: opt, Now: time.Now(), Cores: cores()}
	f.Data = lookAtData(opt.DataDir)
	f.Node = lookAtNode(ctx, opt.DataDir, f.Data.Locked)
	f.Kernel = lookAtKernel()
	f.Clock = lookAtClock()
	f.Limits = lookAtLimits(f.Node.PID)
	f.Fsync = measureFsync(ctx, f.Data.Existing)
	for _, l := range opt.Listeners {
		f.Doors = append(f.Doors, lookAtDoor(l))
	}
	f.Certs = lookAtCerts(opt.DataDir, opt.TLSDir)
	return f
}

// lookAtNode reads run.json and asks the node how it is.
func lookAtNode(ctx context.Context, dir string, locked bool) (n nodeFacts) {
	n.Locked = locked
	if !locked { // a run.json that a killed node left behind says nothing
		return n
	}
	text, err := readSmall(filepath.Join(dir, "run.json"))
	var run struct {
		PID                         int
		HTTP, HTTPS, Control, Admin string
	}
	if err != nil || json.Unmarshal(text, &run) != nil {
		return n
	}
	n.PID = run.PID
	n.Bound = map[string]string{"http": run.HTTP, "https": run.HTTPS, "control": run.Control, "admin": run.Admin}
	exe, err := os.Readlink(procFile(n.PID, "exe"))
	n.Stale = err == nil && strings.HasSuffix(exe, " (deleted)")
	n.Ready = true
	if run.Admin != "" {
		n.Ready, n.Reasons = askReady(ctx, "http://"+dialable(run.Admin)+"/readyz")
	}
	return n
}

// askReady asks the admin listener.
func askReady(ctx context.Context, url string) (ready bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err.Error()
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<10))
	if err != nil {
		return false, err.Error()
	}
	return res.StatusCode == http.StatusOK, strings.TrimSpace(string(text))
}

// maxSmall bounds the files that are read whole.
const maxSmall = 1 << 20

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSmall))
}

package node

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"edged/internal/disk"
	"edged/internal/fault"
)

// formatVersion is the format of the data directory as a whole; every room has its own besides.
const formatVersion = 1

// nodeID returns the node's permanent identity, made on first start.
func nodeID(dataDir string) (string, error) {
	name := filepath.Join(dataDir, "node.id")
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		id := "n-" + strings.ToLower(rand.Text())
		return id, disk.WriteFile(name, []byte(id+"\n"), 0o600)
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, "node.nodeID", err)
	}
	id := strings.TrimSpace(string(b))
	if !strings.HasPrefix(id, "n-") || len(id) > 64 {
		return "", fault.Newf(fault.Conflict, "node.nodeID", "%s does not hold a node identity: restore it or start with an empty directory", name)
	}
	return id, nil
}

// runInfo is DATA/run.json (node-surface §2): what a client on this machine needs to find the node.
type runInfo struct {
	PID            int    `json:"pid"`
	HTTP           string `json:"http"`
	HTTPS          string `json:"https"`
	Control        string `json:"control"`
	Admin          string `json:"admin"`
	Peer           string `json:"peer,omitempty"`
	ControlOrigin  string `json:"controlOrigin"`
	EndpointDomain string `json:"endpointDomain"`
	Role           string `json:"role,omitempty"` // of a member without a part in the control room
}

func runPath(dataDir string) string { return filepath.Join(dataDir, "run.json") }

func (r runInfo) write(dataDir string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fault.Wrap(fault.Internal, "node.run.json", err)
	}
	return disk.WriteFile(runPath(dataDir), append(b, '\n'), 0o600)
}

// Forget removes the run.json that a process left behind which can do so no more. A file that names another process stays.
func Forget(dataDir string, pid int) {
	b, err := os.ReadFile(runPath(dataDir))
	var r runInfo
	if err == nil && json.Unmarshal(b, &r) == nil && r.PID == pid {
		_ = os.Remove(runPath(dataDir)) // the next start would
	}
}

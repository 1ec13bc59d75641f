package node

import (
	"os"
	"path/filepath"
	"time"

	"edged/internal/disk"
	"edged/internal/fault"
)

// What a member does whose certificate has expired, or who lost a part of its data directory: it says what can be done, and makes nothing in
// place of what it had.

// followed reports whether this node has followed the plan of a fleet: then it is the certificate that is gone, and not a new node.
func (n *Node) followed() bool { return exists(filepath.Join(n.opt.DataDir, "plan", "format")) }

// hadLogOfFleet reports whether the control log here is a fleet's.
func (n *Node) hadLogOfFleet() bool {
	return exists(filepath.Join(n.opt.DataDir, "control", inFleetFile))
}

// noteLog has DATA/fleet and DATA/control say of each other that they belong together, once this member has a control log.
func (n *Node) noteLog() {
	for _, name := range []string{filepath.Join(n.fleet.dir, hasLogFile), filepath.Join(n.opt.DataDir, "control", inFleetFile)} {
		if exists(name) {
			continue
		}
		if err := disk.WriteFile(name, []byte(n.id+"\n"), 0o600); err != nil {
			n.log.Error("it is not on disk that this member has a control log", "err", err, "do", fault.CheckDisk)
		}
	}
}

// exists reports whether there is a file, or something that cannot be looked at.
func exists(name string) bool {
	_, err := os.Stat(name)
	return !os.IsNotExist(err)
}

// anew is what can be done with a member that has no certificate that is good.
func anew(id string) string {
	return "put the folder back from a copy of it if there is one whose certificate has not expired; else remove the member (edged fleet remove " + id +
		" at a voter) and let its machine join with an empty data directory and a new invite. Databases, buckets and queues that have their home here are " +
		"then lost but for their backups"
}

func expired(end time.Time, id string) string {
	return "this member's certificate expired on " + end.UTC().Format(time.DateOnly) + ", so no other member answers it or is answered; if this machine's clock is right: " + anew(id)
}

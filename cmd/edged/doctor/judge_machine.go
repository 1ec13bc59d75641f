package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"edged/node"
	"edged/node/machine"
)

// Durable writes: what no device is as fast as, and what is slow.
const (
	tooFast  = 4 * time.Microsecond
	slow     = 20 * time.Millisecond
	verySlow = 200 * time.Millisecond
)

var (
	inMemory = []string{"tmpfs", "ramfs", "devtmpfs"}
	remote   = []string{"nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuse.sshfs", "fuse.s3fs", "ceph", "virtiofs", "afs"}
	careless = []string{"nobarrier", "barrier=0"}
)

// durable judges whether what was acknowledged is on disk, and what that costs.
func durable(f Facts) []Finding {
	s := f.Fsync
	if s.Err != nil {
		return []Finding{{"disk.fsync", Stops, fmt.Sprintf("a block could not be made durable below %s: %v", f.Data.Existing, s.Err),
			"the node acknowledges no write", "mend the disk or name another --data-dir"}}
	}
	cost := fmt.Sprintf("%d durable writes on %s: median %v, 99 %% within %v", s.Rounds, orUnknown(s.Type), short(s.Median), short(s.P99))
	return []Finding{honest(s, cost), latency(s, cost)}
}

func honest(s fsyncFacts, cost string) Finding {
	const check = "disk.honesty"
	lost := "a power cut loses writes that were acknowledged"
	options := strings.Split(s.Options, ",")
	switch {
	case slices.Contains(inMemory, s.Type):
		return Finding{check, Danger, "the data directory is on " + s.Type + ", which is memory", "a restart of the machine loses everything", "name a --data-dir on a disk"}
	case slices.ContainsFunc(careless, func(o string) bool { return slices.Contains(options, o) }):
		return Finding{check, Danger, "the filesystem is mounted without write barriers (" + s.Options + ")", lost, "mount it without nobarrier and barrier=0"}
	case slices.Contains(remote, s.Type):
		return Finding{check, Danger, "the data directory is on " + s.Type + ", a filesystem of another machine or program",
			"locks and durability are what that one makes of them: two nodes could share the directory, and writes be lost", "name a --data-dir on a local disk"}
	case s.Type == "overlay":
		return Finding{check, Danger, "the data directory is in the writable layer of a container", "removing the container removes everything the node keeps", "mount a volume and name it as --data-dir"}
	case s.Median < tooFast:
		return Finding{check, Danger, cost + ": faster than any device", lost, "look for what swallows fsync, such as an unsafe cache mode of the hypervisor"}
	case s.BlockDevice && s.WriteCache == "write through":
		return Finding{check, Note, "the kernel takes the device's write cache for durable and sends it no flush",
			"if the device, or the hypervisor below it, has a volatile cache after all, " + lost,
			"check that the cache has a battery or capacitors, or set its queue/write_cache to write back"}
	}
	return fine(check, "nothing speaks against it: %s, %s", orUnknown(s.Type), orUnknown(s.WriteCache))
}

func latency(s fsyncFacts, cost string) Finding {
	switch {
	case s.Median > verySlow || s.P99 > 10*verySlow:
		return Finding{"disk.fsync", Danger, cost, "writes, deploys and queues run into their deadlines", "use a faster disk, and find what else writes to this one"}
	case s.Median > slow || s.P99 > verySlow:
		return Finding{"disk.fsync", Note, cost, "each acknowledged write and each deploy waits that long", "use a disk with power-loss protection, or find what else writes to this one"}
	}
	return fine("disk.fsync", "%s", cost)
}

// clockSlack is how far off the clock may be.
const clockSlack = time.Second

// firstDay is before anything that this program was made of: a clock that says less was never set.
var firstDay = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// clock judges the time.
func clock(f Facts) []Finding {
	const consequence = "schedules fire at the wrong minute, values and certificates expire too early or too late, and in a fleet the wrong write wins"
	c := f.Clock
	switch {
	case f.Now.Before(firstDay):
		return []Finding{{"clock", Danger, "the clock says " + f.Now.UTC().Format(time.DateOnly), consequence, "set the clock and run a time service such as chrony"}}
	case c.Err != nil:
		return []Finding{{"clock", Note, fmt.Sprintf("the kernel does not say whether the clock is kept right: %v", c.Err), consequence + ", if it is not", "check the host's time service"}}
	case !c.Synced:
		return []Finding{{"clock", Danger, "nothing keeps the clock right (the kernel calls it unsynchronised)", consequence, "run a time service such as chrony or systemd-timesyncd"}}
	case c.MaxError > clockSlack:
		return []Finding{{"clock", Danger, fmt.Sprintf("the clock may be %v off", c.MaxError.Round(time.Millisecond)), consequence, "check the time service and its sources"}}
	}
	return []Finding{fine("clock", "kept right, at most %v off", c.MaxError.Round(time.Millisecond))}
}

// What a node opens besides connections: some thousand files of stores, images and fetches.
const (
	otherFiles  = 4_096
	leastMemory = 512 << 20
	leastTasks  = 256
)

// limits judges what the process may use.
func limits(f Facts) []Finding {
	l := f.Limits
	var out []Finding
	switch {
	case l.Files != 0 && l.Files < otherFiles:
		out = append(out, Finding{"limits.files", Danger, fmt.Sprintf("%d open files are allowed", l.Files),
			"under load the node accepts no connections and opens no store files", "raise the limit of open files to 65536 (LimitNOFILE=, ulimit -Hn)"})
	case l.Files != 0 && node.DefaultConns(int(min(l.Files, 1<<30))) < node.MostConns:
		out = append(out, Finding{"limits.files", Note, fmt.Sprintf("%d open files are allowed", l.Files),
			fmt.Sprintf("%d clients can be connected, not %d", node.DefaultConns(int(l.Files)), node.MostConns), "raise the limit of open files to 65536 (LimitNOFILE=, ulimit -Hn)"})
	default:
		out = append(out, fine("limits.files", "%d open files are allowed", l.Files))
	}
	out = append(out, memory(f))
	if l.Tasks != 0 && l.Tasks < leastTasks {
		out = append(out, Finding{"limits.tasks", Danger, fmt.Sprintf("the cgroup allows %d threads", l.Tasks), "the program ends when it needs one more", "raise pids.max (TasksMax=) to 1024"})
	}
	if l.AddressAS != 0 {
		out = append(out, Finding{"limits.address", Danger, fmt.Sprintf("the address space is limited to %s", size(l.AddressAS)),
			"sandboxes reserve address space that they do not use, and cannot be made", "take the limit away (ulimit -v unlimited)"})
	}
	return out
}

// memory judges what the sandboxes may use together.
func memory(f Facts) Finding {
	const check = "limits.memory"
	l := f.Limits
	have := machine.Lesser(l.Memory, l.Cgroup)
	where := "the machine"
	if have != l.Memory {
		where = "the cgroup"
	}
	found := fmt.Sprintf("%s has %s", where, size(uint64(have)))
	inflight, each := f.Options.Inflight, max(f.Options.MaxMemory, 1)
	if inflight == 0 { // as the node counts it: docs/operating.md, Limits
		inflight = int(min(int64(64*f.Cores), have/each))
		inflight = max(inflight, f.Cores)
	}
	switch worst := int64(inflight) * each; {
	case have == 0:
		return Finding{check, Note, "the kernel does not say how much memory there is", "limits cannot be judged", "give --max-inflight and --max-memory"}
	case have < leastMemory:
		return Finding{check, Danger, found, "the engine, its compiled code and the stores' caches leave little for workers: the kernel kills the node", "give it at least 512 MiB"}
	case worst > have:
		return Finding{check, Danger, fmt.Sprintf("%s, and %d invocations of %s each may run at once", found, inflight, size(uint64(each))),
			"workers that use what they may get the node killed", fmt.Sprintf("run with --max-inflight %d, or a smaller --max-memory", fitting(have, each))}
	}
	return fine(check, "%s", found)
}

// fitting is how many sandboxes fit, with a quarter left for all else.
func fitting(have, each int64) int64 { return max(have/4*3/each, 1) }

func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

package control

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"edged/control/raftlog"
	"edged/internal/fault"
)

// openLog opens raft's files, founds the log if nobody has, and finds out whether this node is one of its voters. Nothing of the state
// is read here: that takes long for a large one, and serving does not wait for it.
func (c *Control) openLog(dir string) error {
	log, err := raftlog.Open(raftlog.Options{Dir: filepath.Join(dir, "log"), Log: c.opt.Log})
	if err != nil {
		return err
	}
	fail := func(what string, err error) error {
		return errors.Join(fault.Wrap(fault.Unavailable, "control.Open", fmt.Errorf("%s: %w", what, err)), log.Close())
	}
	hl := raftLogger(c.opt.Log)
	snaps, err := raftlog.OpenSnapshots(filepath.Join(dir, "snapshots"), 2, hl)
	if err != nil {
		return fail("open snapshots", err)
	}
	conf := c.opt.raftConfig(hl)
	addr, lone := raft.NewInmemTransport(raft.ServerAddress(c.opt.NodeID))
	known, err := raft.HasExistingState(log, log, snaps)
	if err != nil {
		return fail("read log", err)
	}
	if !known && c.opt.Fleet != nil && c.opt.Fleet.HadLog {
		return errors.Join(c.lostLog(), log.Close())
	}
	if !known && !(c.opt.Fleet != nil && c.opt.Fleet.Joined) {
		voters := raft.Configuration{Servers: []raft.Server{{ID: conf.LocalID, Address: addr}}}
		if err := raft.BootstrapCluster(conf, log, log, snaps, lone, voters); err != nil {
			return fail("found log", err)
		}
		known = true
	}
	if known && c.opt.Fleet == nil {
		voters, err := votersOf(log, snaps)
		if err != nil {
			return fail("read voters", err)
		}
		if err := c.checkVoters(voters); err != nil {
			return errors.Join(err, log.Close())
		}
	}
	c.log, c.hasLog = log, known
	c.startRaft = func() (*raft.Raft, error) {
		transport := c.opt.transport(lone, hl)
		r, err := raft.NewRaft(conf, c.machine, log, log, snaps, transport)
		if err != nil {
			err = errors.Join(err, transport.Close())
		}
		return r, fault.Wrap(fault.Unavailable, "control.Run", err)
	}
	return nil
}

// votersOf returns whom raft will find in its files: those of the newest configuration in the log, or else of the newest snapshot.
// raft.GetConfiguration says the same, but copies each entry of the log for it, as raft does once more when it starts.
func votersOf(log *raftlog.Store, snaps raft.SnapshotStore) ([]raft.Server, error) {
	taken, err := snaps.List() // newest first
	if err != nil {
		return nil, err
	}
	var newest raft.SnapshotMeta
	if len(taken) > 0 {
		newest = *taken[0]
	}
	entry, found, err := log.LastConfiguration(newest.Index)
	if err != nil || !found {
		return newest.Configuration.Servers, err
	}
	return raft.DecodeConfiguration(entry.Data).Servers, nil
}

// lostLog says what to do about a member whose control log is gone.
func (c *Control) lostLog() error {
	return fault.Newf(fault.Conflict, "control.Open", "the control log in %s is gone, which this member of a fleet had. If it is on a volume that is not mounted, mount that; "+
		"an older copy of it must not be put back. Else, if the fleet has other voters, remove this member (edged fleet remove %s --lose-data at one of them) and let its machine join "+
		"with an empty data directory and a new invite. If it was the only voter, restore a backup of the control state into an empty data directory "+
		"and found the fleet anew with that", filepath.Join(c.opt.Dir, "control"), c.opt.NodeID)
}

// HasLog reports whether this node had a control log when Open returned: a member that was given no vote yet has none.
func (c *Control) HasLog() bool { return c.hasLog }

// questions holds raft up while somebody waits for its answer: of those that are put while it shuts down, it leaves some unanswered for ever.
type questions struct {
	asking sync.RWMutex // read while a question is open
	over   bool         // raft was shut down
}

// ask puts a question to raft and returns its answer. The error is raft.ErrRaftShutdown once stop was called.
func (q *questions) ask(put func() raft.Future) error {
	q.asking.RLock()
	defer q.asking.RUnlock()
	if q.over {
		return raft.ErrRaftShutdown
	}
	return put().Error()
}

// stop shuts raft down once what was asked is answered, which takes no longer than an election. It may be called again.
func (q *questions) stop(r *raft.Raft) error {
	q.asking.Lock()
	defer q.asking.Unlock()
	q.over = true
	return r.Shutdown().Error()
}

// verifyLeader returns nil if this node has led when, or after, it was called.
func (c *Control) verifyLeader() error {
	return c.questions.ask(func() raft.Future { return c.raft.Load().VerifyLeader() })
}

// passLeadership makes another voter lead, whichever has most of the log.
func (c *Control) passLeadership() error {
	return c.questions.ask(func() raft.Future { return c.raft.Load().LeadershipTransfer() })
}

// ErrShared is in the error of Open for a log that other nodes share, without Options.Fleet by which they could be reached.
var ErrShared = errors.New("the control log has other voters")

// checkVoters refuses a log that this node cannot go on with alone. Of a fleet's log it may be no voter any more, or not yet: nobody asks.
func (c *Control) checkVoters(voters []raft.Server) error {
	const op = "control.Open"
	switch {
	case !slices.ContainsFunc(voters, func(s raft.Server) bool { return string(s.ID) == c.opt.NodeID }):
		// It would wait for an election for ever.
		return fault.Newf(fault.Conflict, op, "the control log in %s belongs to another node than %s", c.opt.Dir, c.opt.NodeID)
	case len(voters) > 1:
		return because(fault.Newf(fault.Conflict, op, "the control log in %s is shared by %d nodes: start with --peer, so that they can be reached",
			c.opt.Dir, len(voters)), ErrShared)
	}
	return nil
}

// raftConfig has short timeouts for a lone voter: it hears from nobody, so that waiting only delays its election.
func (o *Options) raftConfig(log hclog.Logger) *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(o.NodeID)
	var beat time.Duration // 0: raft's own, 1 s
	if o.Fleet == nil {
		beat = 50 * time.Millisecond
	} else {
		beat = o.Fleet.heartbeat
	}
	if beat != 0 {
		conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout, conf.CommitTimeout = beat, beat, beat, beat/10
	}
	conf.SnapshotThreshold, conf.TrailingLogs = o.SnapshotCommands, o.SnapshotCommands
	conf.SnapshotInterval = 10 * time.Second // with the threshold it bounds what a restart has to apply again
	conf.ShutdownOnRemove = false            // it may be added again; its transport ends with Close
	conf.Logger = log
	conf.NoLegacyTelemetry = true
	return conf
}

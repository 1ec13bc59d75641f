package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"edged/control"
	"edged/control/artifact"
	"edged/control/feed"
	"edged/control/plan"
	"edged/internal/life"
	"edged/node/peer"
)

// follower is what a member without the role control has in place of the control room: the plan of others, its files and its keys.
type follower struct {
	saved *plan.Store
	files *artifact.Store
	keys  *control.Keys
	feed  *feed.Follower
	hands *control.Hands
}

// openFollower opens what an earlier start has followed.
func (n *Node) openFollower() (err error) {
	f := &follower{}
	n.follower = f // closed by closeOpened from now on
	if f.files, err = artifact.Open(artifact.Options{Dir: filepath.Join(n.opt.DataDir, "artifacts"), Space: n.space, Log: n.log}); err != nil {
		return err
	}
	if f.saved, err = plan.OpenStore(filepath.Join(n.opt.DataDir, "plan"), n.log); err != nil {
		return err
	}
	if f.keys, err = control.OpenKeys(n.opt.DataDir); err != nil {
		return err
	}
	n.artifacts, n.secrets = f.files, f.keys.Secrets
	fetcher, err := feed.NewFetcher(feed.FetcherOptions{Client: n.fleet.peers.Client(), Files: n.artifacts, Members: n.fleet.upstreams, Metrics: n.feeds})
	if err != nil {
		return err
	}
	f.feed, err = feed.NewFollower(feed.FollowerOptions{Client: n.fleet.peers.Client(), Upstreams: n.fleet.upstreams, Store: f.saved, Files: f.files,
		Fetcher: fetcher, Server: n.fleet.server, Use: n.onPlan, Confirmed: n.hasPlan, Program: n.program(), Log: n.log, Metrics: n.feeds})
	if err != nil {
		return err
	}
	n.openGate(f.feed.CutOff)
	f.hands = control.NewHands(control.HandsOptions{InUse: n.versions.inUse, Retire: n.versions.retire, Detach: n.detach, Reach: f.feed.Reach,
		Caller: func(r *http.Request) string {
			if id := peer.Caller(r); slices.Contains(n.fleet.voters(), id) {
				return id
			}
			return ""
		}})
	if last := f.feed.LastPlan(); !last.Empty() {
		n.takePlan(last)
	}
	return nil
}

func (f *follower) close() error {
	var errs []error
	if f.saved != nil {
		errs = append(errs, f.saved.Close())
	}
	if f.files != nil {
		errs = append(errs, f.files.Close())
	}
	return errors.Join(errs...)
}

const collectEvery = time.Minute

func (n *Node) followerParts(parts *life.Stack) {
	f := n.follower
	parts.Push(life.Part{Name: "plan", Run: func(ctx context.Context) error {
		tick := time.NewTicker(collectEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case now := <-tick.C:
				if _, err := f.files.Sweep(ctx, now); err != nil && ctx.Err() == nil {
					n.log.Warn("artifact sweep failed", "err", err)
				}
			}
		}
	}, Close: f.close})
	parts.Push(life.Part{Name: "plan feed", Run: f.feed.Run})
}

// elsewhere answers the control listener of a member that has no part in the control room.
func (n *Node) elsewhere(w http.ResponseWriter, _ *http.Request) {
	var origins []string
	for id, m := range n.fleet.known() {
		if m.Control && m.Origin != "" && id != n.id {
			origins = append(origins, m.Origin)
		}
	}
	slices.Sort(origins)
	if len(origins) == 0 {
		origins = []string{"a member with the role control"}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusMisdirectedRequest)
	fmt.Fprintf(w, "this node has no part in the control room of its fleet; ask %s\n", strings.Join(origins, " or "))
}

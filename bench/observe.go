package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"edged/control/client"
	"edged/internal/pki"
	"edged/kv/replica"
)

// lookAt is the pause between two looks at a node while something is waited for, for each node of the fleet: a thousand looks a second at all of
// them together, each about a tenth of a millisecond of both sides.
const lookAt = time.Millisecond

// observer sees what a node's KV holds of every other node: it asks the node for its vector by way of the door for members, with the certificate of
// another one. That costs the node no JavaScript, and one look serves all puts that are waited for.
type observer struct {
	node   *nodeProcess
	origin replica.Origin // of the node's own store
	client *http.Client
	url    string
	from   replica.Origin // whose certificate it shows
	pause  time.Duration  // between two looks
	wake   chan struct{}  // capacity 1

	mu      sync.Mutex // guards waiting
	waiting []awaited
}

type awaited struct {
	origin replica.Origin
	seq    uint64
	came   chan<- time.Time // capacity for all that is sent on it
}

// observe returns an observer for each node of the fleet. Each is run by run.
func (f *nodeFleet) observe(ctx context.Context) ([]*observer, error) {
	var lag struct {
		Epoch string
		Peers []struct{ Name, Epoch string }
	}
	var all []*observer
	if err := f.nodes[0].client.Ask(ctx, client.Call{Method: "GET", Path: "kv/lag"}, &lag); err != nil {
		return nil, err
	}
	ids := make([]string, len(f.nodes))
	for i, n := range f.nodes {
		id, err := n.id()
		if err != nil {
			return nil, err
		}
		ids[i] = id
		epoch := lag.Epoch
		if i > 0 {
			at := slices.IndexFunc(lag.Peers, func(p struct{ Name, Epoch string }) bool { return p.Name == id })
			if at < 0 {
				return nil, fmt.Errorf("node 0 does not know the store of node %d", i)
			}
			epoch = lag.Peers[at].Epoch
		}
		origin, err := strconv.ParseUint(epoch, 16, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, &observer{node: n, origin: replica.Origin(origin), url: "https://" + pki.Host(id) + "/kv/v1/vector",
			pause: lookAt * time.Duration(len(f.nodes)), wake: make(chan struct{}, 1)})
	}
	for i, o := range all {
		as := all[(i+1)%len(all)]
		o.from = as.origin
		var err error
		if o.client, err = as.node.memberClient(o.node.peer); err != nil {
			return nil, err
		}
		if err := soon(ctx, func() error { _, err := o.vector(ctx); return err }); err != nil { // who joined last may be unknown yet
			return nil, err
		}
	}
	return all, nil
}

// memberClient calls the door for members at an address with this node's own certificate.
func (n *nodeProcess) memberClient(address string) (*http.Client, error) {
	own := filepath.Join(n.dir, "fleet", "node.pem")
	cert, err := tls.LoadX509KeyPair(own, own)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(n.dir, "fleet", "ca.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}}}, nil
}

func (n *nodeProcess) id() (string, error) {
	b, err := os.ReadFile(filepath.Join(n.dir, "node.id"))
	return strings.TrimSpace(string(b)), err
}

// vector is what the node has on its disk of every node.
func (o *observer) vector(ctx context.Context) (replica.Vector, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", o.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Edged-Kv-From", o.from.String())
	req.Header.Set("Edged-Kv-To", o.origin.String())
	resp, err := o.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the vector of a node: %d %.200s", resp.StatusCode, b)
	}
	if err != nil {
		return nil, err
	}
	return replica.ParseVector(b)
}

// await has the instant sent on came at which the node has what origin wrote up to seq.
func (o *observer) await(origin replica.Origin, seq uint64, came chan<- time.Time) {
	o.mu.Lock()
	o.waiting = append(o.waiting, awaited{origin, seq, came})
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
}

// run looks at the node while something is waited for, until ctx is done.
func (o *observer) run(ctx context.Context) error {
	defer o.client.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.wake:
		}
		for pause := time.NewTimer(0); o.waits(); pause.Reset(o.pause) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-pause.C:
			}
			v, err := o.vector(ctx)
			if err != nil {
				return err
			}
			o.saw(v)
		}
	}
}

func (o *observer) waits() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting) > 0
}

// saw tells those who wait for what a vector covers.
func (o *observer) saw(v replica.Vector) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = slices.DeleteFunc(o.waiting, func(a awaited) bool {
		covered := v.Covers(a.origin, a.seq)
		if covered {
			a.came <- now
		}
		return covered
	})
}

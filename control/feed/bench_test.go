package feed

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"edged/control/plan"
)

// serveTLS serves h over HTTP/2 until the test ends.
func serveTLS(t testing.TB, h http.Handler) *httptest.Server {
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// ownClient is a client with connections of its own, as another node has.
func ownClient(t testing.TB, srv *httptest.Server) *http.Client {
	tr := srv.Client().Transport.(*http.Transport).Clone()
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// big publishes a plan of n workers, with everything that each has.
func big(t testing.TB, s *Server, src *source, n int) {
	d := &plan.Delta{Index: src.plan.Index + 1}
	for i := range n {
		uid := fmt.Sprintf("big%d", i)
		d.Workers.Put = append(d.Workers.Put, &plan.Worker{UID: uid, Tenant: "tenant", Space: "space", Name: uid})
		d.Hosts.Put = append(d.Hosts.Put, &plan.Host{Name: uid + ".edge.test", Worker: uid, Resource: "e" + uid, Endpoint: true})
		d.Versions.Put = append(d.Versions.Put, &plan.Version{UID: "v" + uid, Worker: uid, Tenant: "tenant", Ready: true, Handlers: []string{"fetch"},
			Vars: []byte(`{"NAME":"some value of ordinary length"}`)})
	}
	src.plan.Apply(d)
	publish(t, s, 1, d)
}

// listen follows a server until ctx is done and says when each index came. It reads frames and does not decode plans: that is the work
// of as many machines as there are followers.
func listen(ctx context.Context, client *http.Client, url string, epoch, from uint64, came func(index uint64)) error {
	req, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s%s?epoch=%d&from=%d&partial=false&beat=%d", url, pathFeed, epoch, from, quickBeat.Milliseconds()), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for dec := NewDecoder(resp.Body, nil); ; {
		kind, body, err := dec.frame()
		if err != nil {
			return err
		}
		if kind == frameBeat {
			came(binary.BigEndian.Uint64(body))
		}
	}
}

func percentile(all []time.Duration, p int) float64 {
	slices.Sort(all)
	return float64(all[len(all)*p/100].Microseconds()) / 1000
}

// From the publishing of a change to the instant in which every follower has it: on 10 whole followers (on disk, in use), and as it is
// read by 200.
func BenchmarkPropagation(b *testing.B) {
	b.Run("followers=10", func(b *testing.B) {
		src := newSource(b, rand.New(rand.NewPCG(1, 2)))
		s := newServer(b, ServerOptions{})
		big(b, s, src, 1000)
		srv := serveTLS(b, handler(s, src.files))
		used := make(chan time.Time, 64)
		ctx, cancel := context.WithCancel(context.Background())
		var run sync.WaitGroup
		defer func() { cancel(); run.Wait() }()
		for range 10 {
			dir := b.TempDir()
			files, store := openFiles(b, filepath.Join(dir, "files")), openPlan(b, filepath.Join(dir, "plan"))
			client, ups := ownClient(b, srv), fixed(Upstream{Member: "voter", URL: srv.URL, Voter: true})
			fetcher, err := NewFetcher(FetcherOptions{Client: client, Files: files, Members: ups})
			if err != nil {
				b.Fatal(err)
			}
			f, err := NewFollower(FollowerOptions{Client: client, Upstreams: ups, Store: store, Files: files, Fetcher: fetcher, Server: newServer(b, ServerOptions{}),
				Use: func(*plan.Delta) { used <- time.Now() }})
			if err != nil {
				b.Fatal(err)
			}
			run.Go(func() { _ = f.Run(ctx); _ = store.Close(); _ = files.Close() })
		}
		for range 10 {
			<-used
		}
		var all []time.Duration
		for b.Loop() {
			d := src.deploy(b, "w0")
			d.Index = src.plan.Index + 1
			src.plan.Apply(d)
			start := time.Now()
			publish(b, s, 1, d)
			for range 10 {
				all = append(all, (<-used).Sub(start))
			}
		}
		b.ReportMetric(percentile(all, 50), "p50-ms")
		b.ReportMetric(percentile(all, 99), "p99-ms")
	})
	b.Run("readers=200", func(b *testing.B) {
		src := newSource(b, rand.New(rand.NewPCG(1, 2)))
		s := newServer(b, ServerOptions{})
		big(b, s, src, 1000)
		srv := serveTLS(b, s.Handler())
		ctx, cancel := context.WithCancel(context.Background())
		var run sync.WaitGroup
		defer func() { cancel(); run.Wait() }()
		came := make(chan time.Time, 1024)
		var ready sync.WaitGroup
		ready.Add(200)
		for range 200 {
			client := ownClient(b, srv)
			first := true
			run.Go(func() {
				last := uint64(0)
				_ = listen(ctx, client, srv.URL, 1, src.plan.Index, func(index uint64) {
					if first {
						first = false
						ready.Done()
					} else if index > last {
						came <- time.Now()
					}
					last = index
				})
			})
		}
		ready.Wait()
		var all []time.Duration
		for b.Loop() {
			d := &plan.Delta{Index: s.plan.Index + 1}
			d.Workers.Put = []*plan.Worker{{UID: "w0", Name: fmt.Sprint(d.Index)}}
			start := time.Now()
			publish(b, s, 1, d)
			for range 200 {
				all = append(all, (<-came).Sub(start))
			}
		}
		b.ReportMetric(percentile(all, 50), "p50-ms")
		b.ReportMetric(percentile(all, 99), "p99-ms")
	})
}

// 200 followers come at once over new connections, each one delta behind, or with nothing: until the last is up to date.
func BenchmarkReconnectStorm(b *testing.B) {
	for what, behind := range map[string]bool{"behind": true, "empty": false} {
		b.Run(what, func(b *testing.B) {
			src := newSource(b, rand.New(rand.NewPCG(1, 2)))
			s := newServer(b, ServerOptions{})
			big(b, s, src, 5000)
			first := src.plan.Index
			d := &plan.Delta{Index: first + 1}
			d.Workers.Put = []*plan.Worker{{UID: "w0"}}
			publish(b, s, 1, d)
			srv := serveTLS(b, s.Handler())
			for b.Loop() {
				var run sync.WaitGroup
				for range 200 {
					run.Go(func() {
						tr := srv.Client().Transport.(*http.Transport).Clone()
						defer tr.CloseIdleConnections()
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						epoch, from := uint64(0), uint64(0)
						if behind {
							epoch, from = 1, first
						}
						done := false
						err := listen(ctx, &http.Client{Transport: tr}, srv.URL, epoch, from, func(index uint64) { done = index == first+1; cancel() })
						if !done {
							b.Error("not up to date: ", err)
						}
					})
				}
				run.Wait()
			}
		})
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

const connections = 64

// contender is one server under the same load.
type contender struct {
	name, url, host string

	rate, p50, p99 []float64 // per window; requests per second, milliseconds
}

// benchHello loads bare fasthttp and the node in both isolation modes in short alternating windows.
func benchHello(ctx context.Context, cfg config, r *report) error {
	if _, err := exec.LookPath("wrk"); err != nil {
		return errors.New("wrk is not installed (Debian: apt-get install wrk)")
	}
	base, stop, err := startFasthttp(ctx)
	if err != nil {
		return err
	}
	defer stop()
	all := []*contender{{name: "bare fasthttp", url: "http://" + base + "/", host: "localhost"}}
	for _, isolation := range []string{"request", "worker"} {
		dir, err := os.MkdirTemp("", "edged-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		n, err := startNode(ctx, cfg, dir, "--isolation", isolation)
		if err != nil {
			return err
		}
		defer n.stop() //nolint:errcheck // its numbers are taken
		host, err := n.deployWorker(ctx, "hello", helloSource)
		if err != nil {
			return err
		}
		all = append(all, &contender{name: "edged, isolation " + isolation, url: "http://" + n.http + "/", host: host})
	}
	for i := range cfg.windows + 1 {
		for _, c := range all {
			window := cfg.window
			if i == 0 {
				window = time.Second // warms up, not kept
			}
			if err := c.load(ctx, window); err != nil {
				return err
			}
			if i == 0 {
				c.rate, c.p50, c.p99 = nil, nil, nil
			}
		}
	}
	r.line("  wrk, %d connections, %d alternating windows of %v, medians (lowest-highest)", connections, cfg.windows, cfg.window)
	for _, c := range all {
		rate := spreadOf(c.rate)
		r.line("  %-26s %8.0f req/s (%.0f-%.0f)   p50 %.2f ms   p99 %.1f ms", c.name, rate.median, rate.low, rate.high,
			spreadOf(c.p50).median, spreadOf(c.p99).median)
	}
	bare := spreadOf(all[0].rate).median
	r.target("isolation request / bare fasthttp", spreadOf(all[1].rate).median/bare, 0.35, false, "")
	r.line("  %-44s %8.2f", "isolation worker / bare fasthttp", spreadOf(all[2].rate).median/bare)
	return nil
}

var (
	rateLine    = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	latencyLine = regexp.MustCompile(`\s(50|99)%\s+([0-9.]+)(us|ms|s)`)
	errorLine   = regexp.MustCompile(`Socket errors: .*|Non-2xx or 3xx responses: .*`)
)

// load is one window of wrk.
func (c *contender) load(ctx context.Context, window time.Duration) error {
	seconds := strconv.Itoa(max(1, int(window.Seconds())))
	cmd := exec.CommandContext(ctx, "wrk", "-t2", "-c"+strconv.Itoa(connections), "-d"+seconds+"s", "--latency", "-H", "Host: "+c.host, c.url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("wrk: %w\n%s", err, out)
	}
	if bad := errorLine.Find(out); bad != nil {
		return fmt.Errorf("%s: wrk says %q: the numbers mean nothing", c.name, bad)
	}
	m := rateLine.FindSubmatch(out)
	if m == nil {
		return fmt.Errorf("wrk printed no rate:\n%s", out)
	}
	rate, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		return err
	}
	c.rate = append(c.rate, rate)
	for _, m := range latencyLine.FindAllSubmatch(out, -1) {
		d, err := time.ParseDuration(string(m[2]) + string(m[3]))
		if err != nil {
			return err
		}
		ms := float64(d) / float64(time.Millisecond)
		if string(m[1]) == "50" {
			c.p50 = append(c.p50, ms)
		} else {
			c.p99 = append(c.p99, ms)
		}
	}
	return nil
}

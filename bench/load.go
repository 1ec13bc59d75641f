package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

const connections = 64

// contender is one server under the same load.
type contender struct {
	name, url, host string
	script          string // what wrk sends instead of GET, in its own language; "" for none

	rate, p50, p99 []float64 // per window; requests per second, milliseconds
	refused        int       // answers that were no success
}

// contest loads all contenders in turn, in windows of the same length after one that warms up, and prints what each did.
func contest(ctx context.Context, cfg config, r *report, conns int, all ...*contender) error {
	if _, err := exec.LookPath("wrk"); err != nil {
		return errors.New("wrk is not installed (Debian: apt-get install wrk)")
	}
	for i := range cfg.windows + 1 {
		for _, c := range all {
			if i == 0 { // warms up, not kept
				if err := c.load(ctx, time.Second, conns); err != nil {
					return err
				}
				c.rate, c.p50, c.p99 = nil, nil, nil
			} else if err := c.load(ctx, cfg.window, conns); err != nil {
				return err
			}
		}
	}
	r.line("  wrk, %d connections, %d alternating windows of %v, medians (lowest-highest)", conns, cfg.windows, cfg.window)
	for _, c := range all {
		rate := spreadOf(c.rate)
		r.line("  %-34s %8.0f req/s (%.0f-%.0f)   p50 %.2f ms   p99 %.1f ms", c.name, c.median(), rate.low, rate.high,
			spreadOf(c.p50).median, spreadOf(c.p99).median)
		r.note(c.name, rate, "req/s")
		r.percentiles(c.name, c.p50, c.p99)
		if c.refused > 0 {
			r.line("    %d of its answers are no success: MISSED", c.refused)
			r.missed = append(r.missed, c.name+": only successes")
		}
	}
	return nil
}

// median is a contender's rate.
func (c *contender) median() float64 { return spreadOf(c.rate).median }

// over is its rate beside another's, window by window.
func (c *contender) over(other *contender) spread { return pairs(c.rate, other.rate) }

var (
	rateLine    = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
	latencyLine = regexp.MustCompile(`\s(50|99)%\s+([0-9.]+)(us|ms|s)`)
	errorLine   = regexp.MustCompile(`Socket errors: .*`)
	refusedLine = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
	totalLine   = regexp.MustCompile(`(\d+) requests in`)
)

// number returns what the pattern's group matched; 0 if it is not there.
func number(pattern *regexp.Regexp, out []byte) int {
	m := pattern.FindSubmatch(out)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// load is one window of wrk. A few answers that are no success are counted, many end it.
func (c *contender) load(ctx context.Context, window time.Duration, conns int) error {
	seconds := strconv.Itoa(max(1, int(window.Seconds())))
	args := []string{"-t2", "-c" + strconv.Itoa(conns), "-d" + seconds + "s", "--latency", "--timeout", "10s", "-H", "Host: " + c.host}
	if c.script != "" {
		dir, err := os.MkdirTemp("", "edged-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, "load.lua")
		if err := os.WriteFile(file, []byte(c.script), 0o600); err != nil {
			return err
		}
		args = append(args, "-s", file)
	}
	out, err := exec.CommandContext(ctx, "wrk", append(args, c.url)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("wrk: %w\n%s", err, out)
	}
	if bad := errorLine.Find(out); bad != nil {
		return fmt.Errorf("%s: wrk says %q: the numbers mean nothing", c.name, bad)
	}
	refused, total := number(refusedLine, out), number(totalLine, out)
	if c.refused += refused; refused > total/100 {
		return fmt.Errorf("%s: %d of %d answers are no success: the numbers mean nothing", c.name, refused, total)
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
		if string(m[1]) == "50" {
			c.p50 = append(c.p50, milliseconds(d))
		} else {
			c.p99 = append(c.p99, milliseconds(d))
		}
	}
	return nil
}

// sending is a wrk script: one method with a body of so many bytes.
func sending(method string, bytes int) string {
	return fmt.Sprintf("wrk.method = %q\nwrk.body = string.rep('0123456789abcdef', %d)\n", method, bytes/16)
}

package selftest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// A host reaches its own worker, whatever its letter case, port and trailing dot; a name that nobody has reaches none.
func routingHost(ctx context.Context, r *run) error {
	if err := r.says(ctx, r.probe, "/host", "probe "+r.probe); err != nil {
		return err
	}
	if err := r.says(ctx, r.peer, "/version", "peer one"); err != nil {
		return err
	}
	for _, host := range []string{strings.ToUpper(r.peer), r.peer + ":80", r.peer + "."} {
		a, err := r.front.ask(ctx, r.peer, "GET /version HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
		if err == nil {
			err = a.want("Host: "+host, 200, "", "peer one")
		}
		if err != nil {
			return err
		}
	}
	if r.front.at.Scheme == "https" {
		a, err := r.front.ask(ctx, r.peer, "GET / HTTP/1.1\r\nHost: "+r.probe+"\r\nConnection: close\r\n\r\n")
		if err == nil {
			err = a.want("a Host that is not the TLS server name", 421, "misdirected", "")
		}
		return err
	}
	a, err := r.front.get(ctx, "nobody-has-this."+r.probe, "/host")
	if err == nil {
		err = a.want("an unknown host", 404, "unknown_host", "")
	}
	return err
}

// weighed is how many requests tell how traffic is split; half of it is 60 to 140 of them but once in ten million runs.
const weighed = 200

// Two versions with half of the traffic each get about that.
func routingWeights(ctx context.Context, r *run) error {
	if err := r.split(ctx); err != nil {
		return err
	}
	got := map[string]int{}
	for range weighed {
		a, err := r.front.get(ctx, r.peer, "/version")
		if err != nil {
			return err
		}
		if a.status != 200 || a.body != "peer one" && a.body != "peer two" {
			return fmt.Errorf("one of two versions said %v", a)
		}
		got[a.body]++
	}
	if n := got["peer two"]; n < weighed*3/10 || n > weighed*7/10 {
		return fmt.Errorf("a version with half of the traffic got %d of %d requests", n, weighed)
	}
	return nil
}

// Nothing that one invocation did to module state or globals is there in the next, under --isolation request.
func isolationRequests(ctx context.Context, r *run) error {
	for range 20 {
		a, err := r.front.get(ctx, r.probe, "/count")
		if err != nil {
			return err
		}
		var n int
		if _, err := fmt.Sscanf(a.body, "[%d,", &n); err != nil || a.status != 200 {
			return fmt.Errorf("got %v", a)
		}
		if !r.opt.Reuses && a.body != `[1,"undefined"]` {
			return fmt.Errorf("an invocation sees what an earlier one did: %v (if the node runs with --isolation worker, say --reuses)", a)
		}
	}
	return nil
}

// What one worker did to its globals is not there in another.
func isolationWorkers(ctx context.Context, r *run) error {
	for range 5 {
		if a, err := r.front.get(ctx, r.probe, "/count"); err != nil || a.status != 200 {
			return fmt.Errorf("the other worker: %v %w", a, err)
		}
		if err := r.says(ctx, r.peer, "/mark", "peer undefined"); err != nil {
			return err
		}
	}
	return nil
}

// env has the declared names and no other.
func envExact(ctx context.Context, r *run) error {
	return r.says(ctx, r.probe, "/env", `[["CACHE","DB","FILES","GREETING","PEER","TASKS"],"hi"]`)
}

// What a handler does wrong is a complete 500 of the host without details.
func errorsHost(ctx context.Context, r *run) error {
	for _, path := range []string{"/throw", "/number"} {
		a, err := r.front.get(ctx, r.probe, path)
		if err == nil {
			err = a.want(path, 500, "worker_error", "")
		}
		if err == nil && strings.Contains(a.body, "inside") {
			err = fmt.Errorf("%s: the answer tells the error's text: %v", path, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Edged- fields are the node's alone, in both directions.
func headersTrusted(ctx context.Context, r *run) error {
	a, err := r.front.get(ctx, r.probe, "/own")
	if err == nil {
		err = a.want("/own", 200, "", "own")
	}
	if err == nil && a.header.Get("X-Own") != "kept" {
		err = errors.New("/own: a header of the worker's is missing")
	}
	if err != nil {
		return err
	}
	a, err = r.front.ask(ctx, r.probe, "GET /claims HTTP/1.1\r\nHost: "+r.probe+"\r\nEdged-Error: x\r\nConnection: close\r\n\r\n")
	if err != nil {
		return err
	}
	return a.want("/claims", 200, "", "[]")
}

// Both bodies stream: each piece of a request is in the answer before the next piece exists.
func streamDuplex(ctx context.Context, r *run) error {
	c, err := r.front.dial(ctx, r.probe)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST /echo HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n", r.probe); err != nil {
		return err
	}
	stop := time.AfterFunc(r.opt.Patience, func() { c.SetDeadline(time.Now()) }) // a front that waits for the whole body is told from a slow one
	defer stop.Stop()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return fmt.Errorf("no head came before a byte of the body was sent: %w", err)
	}
	defer res.Body.Close()
	piece := make([]byte, 3)
	for _, want := range []string{"one", "two", "six"} {
		if _, err := fmt.Fprintf(c, "3\r\n%s\r\n", want); err != nil {
			return err
		}
		if _, err := io.ReadFull(res.Body, piece); err != nil || string(piece) != want {
			return fmt.Errorf("got %q (%w), want %q before the next piece was sent", piece, err, want)
		}
	}
	if _, err := io.WriteString(c, "0\r\n\r\n"); err != nil {
		return err
	}
	if rest, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil || len(rest) != 0 {
		return fmt.Errorf("behind the end came %q (%w)", rest, err)
	}
	return nil
}

// An error in a body that has begun is a visible cut, and the head stays as it was.
func streamCut(ctx context.Context, r *run) error {
	a, err := r.front.get(ctx, r.probe, "/cut")
	if err != nil {
		return err
	}
	if a.status != 200 || a.body != "hello" || a.err == nil {
		return fmt.Errorf("got %v, ended by %w; want 200, a piece, and a cut", a, a.err)
	}
	return nil
}

// What may be under way between a worker and a client that stands still: sockets' buffers and a few pieces.
const underWay = 64 << 20

// A worker does not produce what nobody reads.
func streamDownload(ctx context.Context, r *run) error {
	c, err := r.front.dial(ctx, r.probe)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "GET /flood HTTP/1.1\r\nHost: %s\r\n\r\n", r.probe); err != nil {
		return err
	}
	if err := c.SetDeadline(time.Now().Add(r.opt.Patience)); err != nil {
		return err
	}
	if _, err := io.CopyN(io.Discard, c, 1<<20); err != nil {
		return fmt.Errorf("the first megabyte did not come: %w", err)
	}
	if err := pause(ctx, time.Second); err != nil { // time to run away
		return err
	}
	c.Close()
	return r.comes(ctx, r.probe, "/flooded", func(a answer) error {
		n, err := strconv.Atoi(a.body)
		if err != nil || a.status != 200 {
			return fmt.Errorf("the worker's stream was not cancelled when its client left: %v", a)
		}
		if n < 1<<20 || n > underWay {
			return fmt.Errorf("%d bytes were produced for a client that read one megabyte", n)
		}
		return nil
	})
}

// A client cannot send without end what no worker reads.
func streamUpload(ctx context.Context, r *run) error {
	c, err := r.front.dial(ctx, r.probe)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST /hold HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n", r.probe); err != nil {
		return err
	}
	piece := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat("x", 64<<10))
	for sent := 0; sent < underWay; sent += len(piece) {
		if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		_, err := io.WriteString(c, piece)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if opErr := (*net.OpError)(nil); errors.As(err, &opErr) {
			return fmt.Errorf("the connection ended while the worker was at work, after %d bytes: %w", sent, err)
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("%d bytes were taken for a worker that reads none", underWay)
}

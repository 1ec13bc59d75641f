package selftest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Each malformed or ambiguous request is refused whole, and nothing behind it is taken for a request.
func smugglingRefused(ctx context.Context, r *run) error {
	post, get := "POST /ignore HTTP/1.1\r\nHost: "+r.probe+"\r\n", "GET /ignore HTTP/1.1\r\n"
	host := "Host: " + r.probe + "\r\n"
	behind := get + host + "Connection: close\r\n\r\n"
	var faults []error
	for _, shape := range []struct{ name, send, want string }{
		{"two lengths", post + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "400 bad_request"},
		{"length and chunks", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 bad_request"},
		{"signed length", post + "Content-Length: +5\r\n\r\nhello", "400 bad_request"},
		{"length list", post + "Content-Length: 5, 5\r\n\r\nhello", "400 bad_request"},
		{"other coding", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400 bad_request"},
		{"space before the colon", post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "400 bad_request"},
		{"folded line", post + "X: a\r\n folded\r\n\r\n", "400 bad_request"},
		{"bare line feed", post + "X: a\nY: b\r\n\r\n", "400 bad_request"},
		{"no host", get + "\r\n", "400 bad_request"},
		{"two hosts", get + host + host + "\r\n", "400 bad_request"},
		{"another host in the target", "GET http://other.invalid/ HTTP/1.1\r\n" + host + "\r\n", "400 bad_request"},
		{"bad chunk size", post + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", ""},
	} {
		got, err := r.front.all(ctx, r.probe, shape.send+behind)
		status, code, _ := strings.Cut(shape.want, " ")
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s: %w", shape.name, err))
		case strings.Count(got, "HTTP/1.1 ") != 1:
			faults = append(faults, fmt.Errorf("%s: %d answers, want one: %.300q", shape.name, strings.Count(got, "HTTP/1.1 "), got))
		case shape.want == "": // the worker may have answered before the body was looked at
		case !strings.HasPrefix(got, "HTTP/1.1 "+status+" ") || !strings.Contains(got, "\r\nEdged-Error: "+code+"\r\n"):
			faults = append(faults, fmt.Errorf("%s: got %.200q, want %s", shape.name, got, shape.want))
		}
	}
	return errors.Join(faults...)
}

// What a worker does not read of a body is thrown away and never taken for a request.
func smugglingLeftover(ctx context.Context, r *run) error {
	hidden := "GET /host HTTP/1.1\r\nHost: " + r.probe + "\r\n\r\n"
	next := "GET /env HTTP/1.1\r\nHost: " + r.probe + "\r\nConnection: close\r\n\r\n"
	var faults []error
	for _, shape := range []struct{ name, send string }{
		{"a body with a length", fmt.Sprintf("POST /ignore HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", r.probe, len(hidden), hidden)},
		{"a body in chunks", fmt.Sprintf("POST /ignore HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", r.probe, len(hidden), hidden)},
		{"a body of a GET", fmt.Sprintf("GET /ignore HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", r.probe, len(hidden), hidden)},
	} {
		got, err := r.front.all(ctx, r.probe, shape.send+next)
		// The node may close after the first answer; if it does not, the second answer is that of the second request.
		if answers := strings.Count(got, "HTTP/1.1 200"); err != nil || answers < 1 || answers > 2 || strings.Contains(got, "probe "+r.probe) ||
			answers == 2 && !strings.Contains(got, `"GREETING"`) || !strings.Contains(got, "ignored") {
			faults = append(faults, fmt.Errorf("%s: got %.600q (%w), want the answers of the requests around it", shape.name, got, err))
		}
	}
	return errors.Join(faults...)
}

// floor is the largest body that every host accepts.
const floor = 100 << 20

// A request with a body as large as the floor is accepted, one beyond every limit is refused before the worker.
func limitBody(ctx context.Context, r *run) error {
	head := func(size int64) (answer, error) {
		c, err := r.front.dial(ctx, r.probe)
		if err != nil {
			return answer{}, err
		}
		defer c.Close() // no byte of the body is ever sent
		if _, err := fmt.Fprintf(c, "POST /ignore HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", r.probe, size); err != nil {
			return answer{}, err
		}
		return readAnswer(bufio.NewReader(c), "POST")
	}
	a, err := head(floor)
	if err == nil {
		err = a.want("a body of 100 MiB, which is the floor (--max-request-body)", 200, "", "ignored")
	}
	if err != nil {
		return err
	}
	a, err = head(1 << 50)
	if err != nil {
		return err
	}
	return a.want("a body of a pebibyte", 413, "body_too_large", "")
}

// The floors of header fields and of the URL hold, and what is far beyond is refused by its name.
func limitHead(ctx context.Context, r *run) error {
	var many strings.Builder
	for i := range 60 { // with what else a request has, 64
		fmt.Fprintf(&many, "X-Many-%02d: %s\r\n", i, strings.Repeat("v", 250))
	}
	scheme := r.front.at.Scheme + "://"
	path := "/lengths?" + strings.Repeat("q", 8192-len(scheme+r.probe+"/lengths?"))
	a, err := r.front.ask(ctx, r.probe, "GET "+path+" HTTP/1.1\r\nHost: "+r.probe+"\r\nConnection: close\r\n"+many.String()+"\r\n")
	if err == nil {
		err = a.want("a URL of 8192 characters and 64 fields of 16 KiB", 200, "", "[8192,60]")
	}
	if err != nil {
		return err
	}
	for _, over := range []struct {
		send   string
		status int
		code   string
	}{
		{"GET /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\n", 414, "url_too_long"},
		{"GET / HTTP/1.1\r\nHost: " + r.probe + "\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", 431, "headers_too_large"},
	} {
		a, err := r.overlong(ctx, over.send)
		if err == nil {
			err = a.want("a head of a mebibyte", over.status, over.code, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// overlong sends what the node stops reading; the answer comes although the sending fails.
func (r *run) overlong(ctx context.Context, send string) (answer, error) {
	c, err := r.front.dial(ctx, r.probe)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	// The answer is asked for at once: what is sent behind it may reset the connection.
	first := send[:40<<10]
	if _, err := io.WriteString(c, first); err != nil {
		return answer{}, err
	}
	return readAnswer(bufio.NewReader(c), "GET")
}

// A worker that takes more memory than it may is stopped, and the next request finds a sound one.
func limitMemory(ctx context.Context, r *run) error { return r.stopped(ctx, "/eat", "memory_exceeded") }

// A worker that computes without end is stopped, and the next request finds a sound one.
func limitCPU(ctx context.Context, r *run) error { return r.stopped(ctx, "/spin", "cpu_exceeded") }

func (r *run) stopped(ctx context.Context, path, code string) error {
	a, err := r.front.get(ctx, r.probe, path)
	if err == nil {
		err = a.want(path, 500, code, "")
	}
	if err != nil {
		return err
	}
	return r.says(ctx, r.probe, "/host", "probe "+r.probe)
}

package selftest

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// front is a public listener. Every request has a connection of its own.
type front struct {
	at       *url.URL
	tls      *tls.Config
	patience time.Duration // how long a connection that the node has to close may stay open
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20

// dial connects as a client of host does.
func (f front) dial(ctx context.Context, host string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", f.at.Host)
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(end); err != nil {
			c.Close()
			return nil, err
		}
	}
	if f.at.Scheme != "https" {
		return c, nil
	}
	conf := &tls.Config{}
	if f.tls != nil {
		conf = f.tls.Clone()
	}
	conf.ServerName, conf.NextProtos = host, []string{"http/1.1"}
	secure := tls.Client(c, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return secure, nil
}

// answer is a response, read to its end.
type answer struct {
	status int
	code   string // Edged-Error
	header http.Header
	body   string
	err    error // the body was cut
}

// String shows it in a report, shortened.
func (a answer) String() string {
	text := fmt.Sprintf("%d", a.status)
	if a.code != "" {
		text += " " + a.code
	}
	return fmt.Sprintf("%s %.300q", text, a.body)
}

// get asks for a path of a host.
func (f front) get(ctx context.Context, host, path string) (answer, error) {
	return f.ask(ctx, host, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
}

// ask sends the bytes of a request on a connection for host and reads one answer.
func (f front) ask(ctx context.Context, host, request string) (answer, error) {
	c, err := f.dial(ctx, host)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		return answer{}, err
	}
	method, _, _ := strings.Cut(request, " ")
	return readAnswer(bufio.NewReader(c), method)
}

func readAnswer(in *bufio.Reader, method string) (answer, error) {
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return answer{}, fmt.Errorf("no answer can be read: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return answer{res.StatusCode, res.Header.Get("Edged-Error"), res.Header, string(body), err}, nil
}

// all sends bytes and returns every byte that comes until the node closes the connection.
func (f front) all(ctx context.Context, host, send string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	c, err := f.dial(ctx, host)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, send); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(c, maxAnswer))
	if err != nil && len(b) > 0 { // a node that closes before it has read all may cut what it sends
		err = nil
	}
	return string(b), err
}

// says wants 200 and a body from a path.
func (r *run) says(ctx context.Context, host, path, want string) error {
	a, err := r.front.get(ctx, host, path)
	if err != nil {
		return err
	}
	return a.want(path, 200, "", want)
}

// want compares an answer; "" for body compares none.
func (a answer) want(what string, status int, code, body string) error {
	switch {
	case a.status != status || a.code != code:
		return fmt.Errorf("%s: got %v, want %d %s", what, a, status, code)
	case body != "" && a.body != body:
		return fmt.Errorf("%s: got %v, want %q", what, a, body)
	case a.err != nil:
		return fmt.Errorf("%s: the answer was cut: %w", what, a.err)
	}
	return nil
}

// comes asks a path until it says what is wanted.
func (r *run) comes(ctx context.Context, host, path string, right func(answer) error) error {
	end := time.Now().Add(r.opt.Patience)
	for {
		a, err := r.front.get(ctx, host, path)
		if err == nil {
			err = right(a)
		}
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("still after %v: %w", r.opt.Patience, err)
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

// jsonText is how the probes write v.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

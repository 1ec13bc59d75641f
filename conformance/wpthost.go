package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"edged/internal/fault"
	"edged/sandbox/binding"
	"edged/sandbox/event"
)

// wptOrigin is where the suite's files seem to be.
const wptOrigin = "http://web-platform.test:8000"

// hosts stand in files whose name has ".sub." for what the suite's server would write there.
var hosts = strings.NewReplacer(
	"{{host}}", "web-platform.test", "{{hosts[][]}}", "web-platform.test", "{{hosts[alt][]}}", "not-web-platform.test",
	"{{domains[]}}", "web-platform.test", "{{domains[www]}}", "www.web-platform.test", "{{domains[www1]}}", "www1.web-platform.test",
	"{{domains[www2]}}", "www2.web-platform.test", "{{hosts[alt][www]}}", "www.not-web-platform.test",
	"{{ports[http][0]}}", "8000", "{{ports[http][1]}}", "8001", "{{ports[https][0]}}", "8443", "{{ports[https][1]}}", "8444",
	"{{ports[http-local][0]}}", "8002", "{{ports[http-public][0]}}", "8003", "{{ports[https-local][0]}}", "8445", "{{ports[https-public][0]}}", "8446",
	"{{ports[ws][0]}}", "8666", "{{ports[wss][0]}}", "8667", "{{ports[h2][0]}}", "9000", "{{location[server]}}", wptOrigin,
)

func substitute(name, text string) string {
	if strings.Contains(path.Base(name), ".sub.") {
		return hosts.Replace(text)
	}
	return text
}

// wptHost answers requests for the suite's files. What the suite computes with programs of its own server is refused,
// like any other host.
type wptHost struct{ dir string }

var errNoServer = fault.New(fault.Unavailable, "conformance.wptHost", "only the suite's files are served")

// Fetch serves GET and HEAD of files, with the head that a file NAME.headers beside it asks for.
func (h wptHost) Fetch(_ context.Context, o *binding.Outbound, res *event.Response) error {
	u, err := url.Parse(string(o.Request.URL))
	if err != nil || u.Scheme+"://"+u.Host != wptOrigin || strings.HasSuffix(u.Path, ".py") {
		return errNoServer
	}
	method := string(o.Request.Method)
	if method != "GET" && method != "HEAD" {
		return errNoServer
	}
	o.URL = string(o.Request.URL)
	name := filepath.Join(h.dir, filepath.FromSlash(path.Clean("/"+u.Path)))
	content, err := os.ReadFile(name)
	res.Status, res.Length = 200, int64(len(content))
	if err != nil {
		res.Status, content = 404, []byte("no such file")
	}
	res.Header = fmt.Appendf(res.Header, "content-type\n%s\n", contentType(name))
	if more, err := os.ReadFile(name + ".headers"); err == nil {
		res.Header = appendHeaders(res.Header[:0], string(more))
	}
	if method == "GET" {
		res.Stream, res.Length = io.NopCloser(strings.NewReader(substitute(name, string(content)))), -1
	}
	return nil
}

// appendHeaders appends what a .headers file says, packed.
func appendHeaders(dst []byte, lines string) []byte {
	for line := range strings.Lines(lines) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok {
			dst = fmt.Appendf(dst, "%s\n%s\n", strings.ToLower(name), strings.TrimSpace(value))
		}
	}
	return dst
}

// contentType is what the suite's server says about a file.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html", ".htm":
		return "text/html"
	case ".js", ".mjs":
		return "text/javascript"
	case ".json":
		return "application/json"
	case ".txt":
		return "text/plain"
	case ".css":
		return "text/css"
	case ".xml":
		return "text/xml"
	case ".png":
		return "image/png"
	}
	return "application/octet-stream"
}

package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edged/router/table"
	"edged/sandbox/event"
)

// asset keeps content in memory.
func asset(mediaType, content string) *table.Asset {
	return &table.Asset{MediaType: mediaType, Size: int64(len(content)),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

// static-assets §§2, 3, 5: the whole table of who answers.
func TestAssetStage(t *testing.T) {
	replaced := make(chan *source, 1) // the 404 that an asset should replace
	worker := handlerFunc(func(_ context.Context, req *event.Request, res *event.Response) error {
		switch {
		case strings.HasSuffix(string(req.URL), "/hit.txt") && string(req.Method) != "POST":
			s := newSource()
			replaced <- s
			res.Status, res.Stream = 404, s
			return nil
		case strings.HasSuffix(string(req.URL), "/teapot"):
			return answer(res, 418, "worker")
		}
		return answer(res, 404, "worker")
	})
	assets := table.Assets{"hit.txt": asset("text/x-hit", "hit"), "teapot": asset("text/x-pot", "pot"), "index.html": asset("text/html", "root")}
	for _, tt := range []struct {
		first, fetch, spa bool
		method, path      string
		want              string // status, media type, body
	}{
		{false, true, false, "GET", "/hit.txt?q", "200 text/x-hit hit"},
		{false, true, false, "HEAD", "/hit.txt", "200 text/x-hit "},
		{false, true, false, "POST", "/hit.txt", "404 text/plain worker"},
		{false, true, false, "GET", "/miss", "404 text/plain worker"},
		{false, true, true, "GET", "/miss", "200 text/html root"},
		{false, true, true, "GET", "/a//b", "404 text/plain worker"},
		{false, false, false, "GET", "/hit.txt", "200 text/x-hit hit"},
		{false, false, false, "GET", "/", "200 text/html root"},
		{false, false, false, "GET", "/miss", "404 text/plain; charset=utf-8 not_found\n"},
		{false, false, true, "GET", "/miss", "200 text/html root"},
		{false, false, true, "GET", "/%2f", "404 text/plain; charset=utf-8 not_found\n"},
		{false, false, true, "POST", "/hit.txt", "404 text/plain; charset=utf-8 not_found\n"},
		{true, true, false, "GET", "/hit.txt", "200 text/x-hit hit"},
		{true, true, false, "HEAD", "/hit.txt", "200 text/x-hit "},
		{true, true, false, "GET", "/teapot", "418 text/plain worker"},
		{true, true, false, "GET", "/miss", "404 text/plain worker"},
		{true, true, false, "POST", "/teapot", "418 text/plain worker"},
		{true, true, true, "GET", "/miss", "200 text/html root"},
	} {
		name := fmt.Sprintf("%+v", tt)
		v := &table.Version{UID: "v", HasFetch: tt.fetch, Assets: assets, RunWorkerFirst: tt.first, SPA: tt.spa}
		if tt.fetch {
			v.Handler = worker
		}
		f := start(t, Options{}, v)
		c := f.dial(t)
		c.send(tt.method + " " + tt.path + " HTTP/1.1\r\nHost: a.test\r\n\r\n")
		res, body := c.response(tt.method)
		if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get("Content-Type"), " ", body); got != tt.want {
			t.Errorf("%s: got %q", name, got)
		}
		if res.StatusCode == 200 && tt.method == "HEAD" && res.ContentLength != 3 {
			t.Errorf("%s: HEAD has length %d", name, res.ContentLength)
		}
		if tt.first && strings.HasSuffix(tt.path, "/hit.txt") {
			wait(t, "the worker", replaced).checkClosedOnce(t) // a replaced 404 is cancelled
		}
	}
}

// Files are sent whole whatever their size, from disk and from elsewhere; a short file is a visible cut.
func TestAssetBytes(t *testing.T) {
	dir := t.TempDir()
	assets := table.Assets{}
	contents := map[string][]byte{}
	for _, size := range []int{0, 1, smallBody, smallBody + 1, 1 << 20} {
		b := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
		name := fmt.Sprintf("f%d", size)
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		contents[name], contents["m"+name] = b, b
		assets[name] = &table.Asset{MediaType: "x/y", Size: int64(size), Open: func() (io.ReadCloser, error) { return os.Open(filepath.Join(dir, name)) }}
		assets["m"+name] = asset("x/y", string(b))
		for _, lie := range []string{"", "m"} {
			longer := *assets[lie+name]
			longer.Size++
			assets["short-"+lie+name] = &longer
		}
	}
	assets["lost"] = &table.Asset{MediaType: "x/y", Size: 1, Open: func() (io.ReadCloser, error) { return nil, errors.New("gone") }}
	f := start(t, Options{}, &table.Version{UID: "v", Assets: assets})
	c := f.dial(t)
	for name, want := range contents {
		c.send("GET /" + name + " HTTP/1.1\r\nHost: a.test\r\n\r\n")
		if res, body := c.response("GET"); body != string(want) || res.ContentLength != int64(len(want)) {
			t.Errorf("%s: got %d bytes, length %d", name, len(body), res.ContentLength)
		}
		cut := f.dial(t)
		cut.send("GET /short-" + name + " HTTP/1.1\r\nHost: a.test\r\n\r\n")
		if b, err := io.ReadAll(cut.head("GET").Body); err == nil {
			t.Errorf("%s: a short file looks whole (%d bytes)", name, len(b))
		}
	}
	res, _ := f.get(t, "/lost")
	checkError(t, res, 503, "not_serving")
}

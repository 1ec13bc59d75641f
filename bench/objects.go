package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// objectsSource stores and serves bodies: those below /forward only pass through, of the others every chunk is touched.
const objectsSource = `const touched = () => new TransformStream({ transform(chunk, c) { chunk[0] ^= 1; c.enqueue(chunk) } });
export default { async fetch(request, env) {
	const [, way, key] = new URL(request.url).pathname.split("/"), touch = way === "touch";
	if (request.method === "PUT") return Response.json(await env.FILES.put(key, touch ? request.body.pipeThrough(touched()) : request.body));
	if (way === "none") return new Response("Hello World");
	const object = await env.FILES.get(key);
	return object === null ? new Response("none", { status: 404 }) : new Response(touch ? object.body.pipeThrough(touched()) : object.body);
} }`

const largeObject = 256 << 20 // within what one put takes; through the node's listener

// benchObjects measures the store at its door beside plain files with the same hash, and bodies through a worker.
func benchObjects(ctx context.Context, cfg config, r *report) error {
	all, err := room(ctx, "./objects", func(binary string, all results) error {
		// First, while nothing else has written.
		if err := r.largePuts(ctx, binary); err != nil {
			return err
		}
		if err := all.run(ctx, binary, storeTurns, "^Benchmark(Put|Get)$/^size=(4KiB|256KiB|1MiB)$", "300ms"); err != nil {
			return err
		}
		if err := all.run(ctx, binary, storeTurns, "^BenchmarkGet$/^size=512MiB$", "3x"); err != nil {
			return err
		}
		return all.run(ctx, binary, 1, "^BenchmarkList$", "500ms")
	})
	if err != nil {
		return err
	}
	r.line("  from Go, one client, medians of %d turns", storeTurns)
	for _, op := range []string{"Put", "Get"} {
		for _, size := range []struct {
			name string
			want float64
		}{{"4KiB", 0.5}, {"256KiB", 0}, {"1MiB", 0.85}, {"512MiB", 0.85}} {
			name, what := op+"/size="+size.name, strings.ToLower(op)+" "+size.name
			if op == "Put" && size.name == "512MiB" {
				continue // largePuts
			}
			r.line("  %-44s %8.0f MB/s, a file %.0f MB/s", what, all.of(name+"/impl=ours", "MB/s"), all.of(name+"/impl=file", "MB/s"))
			ratio := spreadOf(all[name+"/impl=both"]["ratio"]) // both in turn, one operation each
			if size.want > 0 {
				r.reach(what+" / a file", ratio, size.want, false, "")
			} else {
				r.ratio(what+" / a file", ratio, false)
			}
		}
	}
	r.line("  %-44s %8.2f ms", "a page of 1,000 prefixes", all.of("List/what=prefixes/impl=seeks", "ns/op")/1e6)
	return withNode(ctx, cfg, func(n *nodeProcess) error { return n.measureBodies(ctx, cfg, r) }, "--max-request-body", "300MiB")
}

// objectWorker serves objectsSource and returns its host.
func (n *nodeProcess) objectWorker(ctx context.Context) (string, error) {
	files, err := n.boundTo(ctx, "ObjectBucket/0.3.0/", "FILES", struct{}{})
	if err != nil {
		return "", err
	}
	return n.deployBound(ctx, objectsSource, map[string]any{"bucketBindings": []bound{files}})
}

func (n *nodeProcess) measureBodies(ctx context.Context, cfg config, r *report) error {
	host, err := n.objectWorker(ctx)
	if err != nil {
		return err
	}
	short := cfg.fewer()
	short.windows, short.window = max(1, cfg.windows/3), time.Second
	for _, size := range []struct {
		name  string
		bytes int
	}{{"4 KiB", 4 << 10}, {"256 KiB", 256 << 10}, {"1 MiB", 1 << 20}} {
		if _, err := n.transfer(ctx, "PUT", host, "/forward/k", int64(size.bytes)); err != nil {
			return err
		}
		all := []*contender{n.contender("no object", host, "/none/k")}
		for _, way := range []string{"forward", "touch"} {
			put, get := n.contender("put "+size.name+", "+way, host, "/"+way+"/k"), n.contender("get "+size.name+", "+way, host, "/"+way+"/k")
			put.script = sending("PUT", size.bytes)
			all = append(all, put, get)
		}
		if err := contest(ctx, short, r, 16, all...); err != nil {
			return err
		}
		r.besideFirst(all)
	}
	for _, way := range []string{"forward", "touch"} {
		for _, method := range []string{"PUT", "GET"} {
			took, err := n.transfer(ctx, method, host, "/"+way+"/large", largeObject)
			if err != nil {
				return err
			}
			r.value(fmt.Sprintf("%s of %d MiB, one client, %s", method, largeObject>>20, way), once(largeObject/1e6/took.Seconds()), "MB/s")
		}
	}
	if guest := n.metric("edged_sandbox_body_spliced_bytes_total"); guest > 0 {
		r.line("  %-44s %8.0f MB", "bodies that did not enter the sandbox", guest/1e6)
	}
	return nil
}

// transfer sends a body of so many bytes, or gets one, and returns how long that took.
func (n *nodeProcess) transfer(ctx context.Context, method, host, path string, bytes int64) (time.Duration, error) {
	var body io.Reader
	if method == "PUT" {
		body = io.LimitReader(zeros{}, bytes)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+n.http+path, body)
	if err != nil {
		return 0, err
	}
	req.Host = host
	if body != nil {
		req.ContentLength = bytes
	}
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	got, err := io.Copy(io.Discard, res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || method == "GET" && got != bytes) {
		err = fmt.Errorf("%s %s: status %d, %d bytes", method, path, res.StatusCode, got)
	}
	return time.Since(began), err
}

// zeros is a body of any length.
type zeros struct{}

// Read is io.Reader's.
func (zeros) Read(p []byte) (int, error) { return len(p), nil }

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const apiProject = "examples/hono-api"

// benchAPI loads a JSON API made with a router from npm.
func benchAPI(ctx context.Context, cfg config, r *report) error {
	if _, err := os.Stat(apiProject + "/node_modules"); err != nil {
		r.line("  skipped: the packages of %s are not installed (make examples)", apiProject)
		return nil
	}
	return withNode(ctx, cfg, func(n *nodeProcess) error {
		if out, err := exec.CommandContext(ctx, cfg.binary, "deploy", apiProject, "--data-dir", n.dir).CombinedOutput(); err != nil {
			return fmt.Errorf("edged deploy: %w\n%s", err, out)
		}
		host, err := n.hostOf(ctx, "hono-api.endpoint")
		if err != nil {
			return err
		}
		hello, err := n.deployWorker(ctx, "hello", helloSource)
		if err != nil {
			return err
		}
		get, post := n.contender("GET, a route with parameters", host, "/hello/you?lang=de"), n.contender("POST, JSON in, digest, JSON out", host, "/notes")
		post.script = "wrk.method = 'POST'\nwrk.body = '{\"title\":\"shopping\",\"body\":\"milk and bread\"}'\nwrk.headers['content-type'] = 'application/json'\n"
		one := n.contender("hello", hello, "/")
		if err := contest(ctx, cfg.fewer(), r, connections, one, get, post); err != nil {
			return err
		}
		r.ratio("GET / hello", get.over(one), false)
		r.ratio("POST / hello", post.over(one), false)
		return nil
	})
}

// benchBundle compares a worker whose code is 200 KB with the one-line worker: what is loaded once must not cost a request.
func benchBundle(ctx context.Context, cfg config, r *report) error {
	return withNode(ctx, cfg, func(n *nodeProcess) error {
		hello, err := n.deployWorker(ctx, "hello", helloSource)
		if err != nil {
			return err
		}
		source := largeSource(200_000)
		began := time.Now()
		host, err := n.deployWorker(ctx, "large", source)
		if err != nil {
			return err
		}
		r.value(fmt.Sprintf("%d bytes of code, from upload to endpoint", len(source)), once(milliseconds(time.Since(began))), "ms")
		small, large := n.contender("hello", hello, "/"), n.contender("the same answer from 200 KB of code", host, "/")
		if err := contest(ctx, cfg.fewer(), r, connections, small, large); err != nil {
			return err
		}
		r.ratio("200 KB / one line", large.over(small), false)
		return nil
	})
}

// largeSource is a module of at least so many bytes: classes, functions and tables, some of which each request uses.
func largeSource(bytes int) string {
	var b strings.Builder
	i := 0
	for ; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "class Shape%d { constructor(a) { this.a = a; this.names = [\"n%d\", \"m%d\"] } area() { return this.a * %d } }\n", i, i, i, i)
		fmt.Fprintf(&b, "const table%d = { id: %d, label: \"entry number %d\", make: (a) => new Shape%d(a), sum: (list) => list.reduce((x, y) => x + y, 0) };\n", i, i, i, i)
	}
	b.WriteString("const all = [")
	for j := range i {
		fmt.Fprintf(&b, "table%d,", j)
	}
	b.WriteString("];\nlet next = 0;\nexport default { async fetch() { const t = all[next++ % all.length]; t.make(2).area(); return new Response(\"Hello World\") } }\n")
	return b.String()
}

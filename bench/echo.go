package main

import "context"

const echoBytes = 1 << 20

// echoSource forwards a body, or looks at every chunk of it.
const echoSource = `export default { fetch(request) {
	if (new URL(request.url).pathname === "/forward") return new Response(request.body);
	return new Response(request.body.pipeThrough(new TransformStream({ transform(chunk, c) { chunk[0] ^= 1; c.enqueue(chunk) } })));
} }`

// benchEcho sends bodies of 1 MiB through a worker and back, beside a bare fasthttp that does the same.
func benchEcho(ctx context.Context, cfg config, r *report) error {
	base, stop, err := startFasthttp(ctx)
	if err != nil {
		return err
	}
	defer stop()
	return withNode(ctx, cfg, func(n *nodeProcess) error {
		host, err := n.deployWorker(ctx, "echo", echoSource)
		if err != nil {
			return err
		}
		post := sending("POST", echoBytes)
		bare := &contender{name: "bare fasthttp", url: "http://" + base + "/echo", host: "localhost", script: post}
		forward, touch := n.contender("edged, forwarded", host, "/forward"), n.contender("edged, every chunk touched", host, "/touch")
		forward.script, touch.script = post, post
		if err := contest(ctx, cfg.fewer(), r, 16, bare, forward, touch); err != nil {
			return err
		}
		r.reach("echo of 1 MiB, forwarded / bare fasthttp", forward.over(bare), 0.5, false, "")
		r.ratio("echo of 1 MiB, touched / bare fasthttp", touch.over(bare), false)
		return nil
	})
}

package main

import (
	"context"
	"os"
)

// benchHello loads bare fasthttp and the node in both isolation modes in short alternating windows; and another build of it, if there is one.
func benchHello(ctx context.Context, cfg config, r *report) error {
	base, stop, err := startFasthttp(ctx)
	if err != nil {
		return err
	}
	defer stop()
	all := []*contender{{name: "bare fasthttp", url: "http://" + base + "/", host: "localhost"}}
	builds := []string{cfg.binary}
	if cfg.beside != "" {
		builds = append(builds, cfg.beside)
	}
	for i, build := range builds {
		for _, isolation := range []string{"request", "worker"} {
			dir, err := os.MkdirTemp("", "edged-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			one := cfg
			one.binary = build
			n, err := startNode(ctx, one, dir, "--isolation", isolation)
			if err != nil {
				return err
			}
			defer n.stop() //nolint:errcheck // its numbers are taken
			host, err := n.deployWorker(ctx, "hello", helloSource)
			if err != nil {
				return err
			}
			name := "edged, isolation " + isolation
			if i > 0 {
				name = "the other build, isolation " + isolation
			}
			all = append(all, n.contender(name, host, "/"))
		}
	}
	if err := contest(ctx, cfg, r, connections, all...); err != nil {
		return err
	}
	r.reach("isolation request / bare fasthttp", all[1].over(all[0]), 0.4, false, "")
	r.reach("isolation worker / bare fasthttp", all[2].over(all[0]), 0.5, false, "")
	if cfg.beside != "" {
		r.value("isolation request / the other build", all[1].over(all[3]), "")
		r.value("isolation worker / the other build", all[2].over(all[4]), "")
	}
	return nil
}

// contender is a path of a worker of this node.
func (n *nodeProcess) contender(name, host, path string) *contender {
	return &contender{name: name, url: "http://" + n.http + path, host: host}
}

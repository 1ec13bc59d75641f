package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Peers are optional: what is not installed is named and left out.

const (
	workerdConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "%s", http = (), service = "main")]
);
const main :Workerd.Worker = (modules = [(name = "worker", esModule = embed "worker.js")], compatibilityDate = "2026-01-01");
`
	nodeServer = `import http from "node:http";
const [host, port] = process.argv[2].split(":");
http.createServer((request, response) => {
	response.setHeader("content-type", "text/plain;charset=UTF-8");
	response.end("Hello World");
}).listen(Number(port), host);
`
	nginxConfig = `daemon off; user root; worker_processes auto; pid %[1]s/nginx.pid; error_log stderr;
events {}
http {
	access_log off; sendfile on; keepalive_requests 1000000;
	client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
	server { listen %[2]s; root %[1]s/files; }
}
`
)

// peer is a server of somebody else's in a folder of its own.
type peer struct {
	addr, dir string
	cmd       *exec.Cmd
}

// startPeer writes files into a new folder and runs a command; both are told the folder and a free address. It returns when the address
// answers.
func startPeer(ctx context.Context, files func(dir, addr string) map[string]string, command func(dir, addr string) []string) (*peer, error) {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") // finds a free port
	if err != nil {
		return nil, err
	}
	p := &peer{addr: ln.Addr().String(), dir: dir}
	ln.Close()
	for name, text := range files(dir, p.addr) {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return nil, err
		}
	}
	argv := command(dir, p.addr)
	said := new(tail)
	p.cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.cmd.Stderr = said
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", p.addr); err == nil {
			c.Close()
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("%s did not start:\n%s", argv[0], *said)
}

// stop ends the peer. An interrupt lets those with processes of their own end them.
func (p *peer) stop() {
	p.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // killed below if it stays
	gone := make(chan struct{})
	go func() { p.cmd.Wait(); close(gone) }() //nolint:errcheck // it was ended
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		p.cmd.Process.Kill() //nolint:errcheck // it is gone then
		<-gone
	}
	os.RemoveAll(p.dir)
}

func workerd(ctx context.Context, source string) (*peer, error) {
	found, _ := filepath.Glob("bench/peers/node_modules/@cloudflare/workerd-*/bin/workerd")
	if len(found) == 0 {
		return nil, errors.New("workerd is not installed (make bench-peers installs it with npm)")
	}
	binary, err := filepath.Abs(found[0])
	if err != nil {
		return nil, err
	}
	return startPeer(ctx, func(_, addr string) map[string]string {
		return map[string]string{"config.capnp": fmt.Sprintf(workerdConfig, addr), "worker.js": source}
	}, func(dir, _ string) []string { return []string{binary, "serve", dir + "/config.capnp"} })
}

func (p *peer) contender(name, path string) *contender {
	return &contender{name: name, url: "http://" + p.addr + path, host: "localhost"}
}

// peerHello compares the same scripts in workerd, and node's own server for the fixed answer.
func peerHello(ctx context.Context, cfg config, r *report) error {
	return withNode(ctx, cfg, func(n *nodeProcess) error {
		host, err := n.deployWorker(ctx, "hello", helloSource)
		if err != nil {
			return err
		}
		all := []*contender{n.contender("edged, isolation request", host, "/")}
		w, err := workerd(ctx, helloSource)
		if err != nil {
			r.line("  without workerd: %v", err)
		} else {
			defer w.stop()
			all = append(all, w.contender("workerd", "/"))
		}
		var fixed *contender
		js, err := startPeer(ctx, func(_, _ string) map[string]string { return map[string]string{"server.mjs": nodeServer} },
			func(dir, addr string) []string { return []string{"node", dir + "/server.mjs", addr} })
		if err != nil {
			r.line("  without node: %v", err)
		} else {
			defer js.stop()
			fixed = js.contender("node http, one process", "/")
			all = append(all, fixed)
		}
		if err := contest(ctx, cfg, r, connections, all...); err != nil {
			return err
		}
		if w != nil {
			r.reach("hello, requests per second / workerd", all[0].over(all[1]), 2, false, "")
			r.reach("hello, p99 / workerd", pairs(all[0].p99, all[1].p99), 0.25, true, "")
		}
		if fixed != nil {
			r.ratio("hello / node's own server", all[0].over(fixed), false)
		}
		return nil
	})
}

// peerEcho compares bodies of 1 MiB.
func peerEcho(ctx context.Context, cfg config, r *report) error {
	w, err := workerd(ctx, echoSource)
	if err != nil {
		r.line("  without workerd: %v", err)
		return nil
	}
	defer w.stop()
	return withNode(ctx, cfg, func(n *nodeProcess) error {
		host, err := n.deployWorker(ctx, "echo", echoSource)
		if err != nil {
			return err
		}
		var all []*contender
		for _, way := range []string{"/forward", "/touch"} {
			all = append(all, n.contender("edged, "+way[1:], host, way), w.contender("workerd, "+way[1:], way))
		}
		for _, c := range all {
			c.script = sending("POST", echoBytes)
		}
		if err := contest(ctx, cfg.fewer(), r, 16, all...); err != nil {
			return err
		}
		r.ratio("echo of 1 MiB, forwarded / workerd", all[0].over(all[1]), false)
		r.ratio("echo of 1 MiB, touched / workerd", all[2].over(all[3]), false)
		return nil
	})
}

// peerObjects compares reading an object through a worker that forwards it with nginx serving a file of the same bytes.
func peerObjects(ctx context.Context, cfg config, r *report) error {
	if _, err := exec.LookPath("nginx"); err != nil {
		r.line("  skipped: nginx is not installed (Debian: apt-get install nginx-light)")
		return nil
	}
	sizes := []struct {
		name  string
		bytes int
	}{{"4KiB", 4 << 10}, {"256KiB", 256 << 10}, {"1MiB", 1 << 20}}
	p, err := startPeer(ctx, func(dir, addr string) map[string]string {
		files := map[string]string{"nginx.conf": fmt.Sprintf(nginxConfig, dir, addr)}
		for _, size := range sizes {
			files["files/"+size.name] = string(make([]byte, size.bytes))
		}
		return files
	}, func(dir, _ string) []string { return []string{"nginx", "-p", dir, "-c", dir + "/nginx.conf"} })
	if err != nil {
		return err
	}
	defer p.stop()
	return withNode(ctx, cfg, func(n *nodeProcess) error {
		host, err := n.objectWorker(ctx)
		if err != nil {
			return err
		}
		for _, size := range sizes {
			if _, err := n.transfer(ctx, "PUT", host, "/forward/"+size.name, int64(size.bytes)); err != nil {
				return err
			}
			ours, theirs := n.contender("edged, get "+size.name+", forwarded", host, "/forward/"+size.name), p.contender("nginx, "+size.name, "/"+size.name)
			if err := contest(ctx, cfg.fewer(), r, 16, ours, theirs); err != nil {
				return err
			}
			r.ratio("get "+size.name+" / nginx", ours.over(theirs), false)
		}
		return nil
	})
}

// peerQueue compares the queue at its door with NATS JetStream inside a process of its own, in alternating turns.
func peerQueue(ctx context.Context, cfg config, r *report) error {
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	jetstream := filepath.Join(dir, "jetstream")
	if out, err := exec.CommandContext(ctx, "go", "-C", "bench/peers/jetstream", "build", "-o", jetstream, ".").CombinedOutput(); err != nil {
		r.line("  skipped: JetStream does not build here: %v\n%s", err, out)
		return nil
	}
	all, err := room(ctx, "./queue", func(binary string, all results) error {
		for range storeTurns {
			if err := all.run(ctx, binary, 1, "^Benchmark(Send|SendBatch)$/^senders=/^impl=ours$", "500ms"); err != nil {
				return err
			}
			if err := all.run(ctx, binary, 1, "^BenchmarkDeliver$", "30000x"); err != nil {
				return err
			}
			out, err := exec.CommandContext(ctx, jetstream).CombinedOutput()
			if err != nil {
				return fmt.Errorf("JetStream: %w\n%s", err, out)
			}
			all.parse(string(out))
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.line("  512 B, medians of %d turns; JetStream embedded, one work queue stream in files, every write synced", storeTurns)
	for _, b := range []struct{ what, name string }{{"send, 1 sender", "Send/senders=1"}, {"send, 128 senders", "Send/senders=128"},
		{"100 at once, 1 sender", "SendBatch/senders=1"}, {"100 at once, 8 senders", "SendBatch/senders=8"}} {
		r.compared(b.what, all, b.name+"/impl=ours", b.name+"/impl=jetstream", "JetStream", "msg/s", 0)
	}
	r.compared("consume, 16 at once", all, "Deliver/concurrency=16", "Deliver/concurrency=16/impl=jetstream", "JetStream", "msg/s", 0)
	return nil
}

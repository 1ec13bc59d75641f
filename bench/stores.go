package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"edged/sqlstore"
)

const storeTurns = 3 // of the rooms' benchmarks, raw and ours alternating

// room runs benchmarks of a room.
func room(ctx context.Context, pkg string, runs func(binary string, all results) error) (results, error) {
	binary, err := benchBinary(ctx, pkg)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(filepath.Dir(binary))
	all := results{}
	return all, runs(binary, all)
}

const kvSource = `export default { async fetch(request, env) {
	const key = "key-" + Math.floor(Math.random() * 5000).toString().padStart(32, "0");
	switch (new URL(request.url).pathname) {
	case "/put": await env.CACHE.put(key, "0123456789abcdef".repeat(16)); break;
	case "/get": await env.CACHE.get(key); break;
	}
	return new Response("Hello World");
} }`

// benchKV measures the store at its door beside raw Pebble, and a worker that calls it.
func benchKV(ctx context.Context, cfg config, r *report) error {
	all, err := room(ctx, "./kv", func(binary string, all results) error {
		if err := all.run(ctx, binary, storeTurns, "^Benchmark(Put|Get)$", "500ms"); err != nil {
			return err
		}
		return all.run(ctx, binary, 1, "^BenchmarkApply$", "1s")
	})
	if err != nil {
		return err
	}
	apart, err := room(ctx, "./kv/nettest", func(binary string, all results) error {
		return all.run(ctx, binary, 1, "^BenchmarkConvergeProcesses$", "1x")
	})
	if err != nil {
		return err
	}
	r.line("  from Go, 256 B, 128 clients, medians of %d turns", storeTurns)
	r.compared("put, new keys", all, "Put/impl=ours", "Put/impl=pebble", "raw", "/s", 0.4)
	r.compared("put, keys that are there", all, "Put/impl=ours-overwrite", "Put/impl=pebble", "raw", "/s", 0)
	r.compared("get", all, "Get/impl=ours", "Get/impl=pebble", "raw", "/s", 0.8)
	r.target("a peer's feed applied, new keys", all.of("Apply/impl=ours/keys=new", "rec/s"), 100_000, false, "1/s")
	r.ratio("a peer's feed applied / raw batches", spreadOf(all["Apply/impl=ours/keys=new"]["of-raw"]), false)
	for _, n := range []int{3, 5, 8} {
		name := fmt.Sprintf("ConvergeProcesses/processes=%d", n)
		r.line("  %d processes on loopback, %.0f puts/s: convergence p50 %.1f ms, p99 %.1f ms", n, apart.of(name, "puts/s"), apart.of(name, "p50-ms"), apart.of(name, "p99-ms"))
		r.percentiles(fmt.Sprintf("convergence of %d processes", n), apart[name]["p50-ms"], apart[name]["p99-ms"])
	}
	return withNode(ctx, cfg, func(n *nodeProcess) error {
		cache, err := n.boundTo(ctx, "EdgeKVNamespace/0.2.0/", "CACHE", struct{}{})
		if err != nil {
			return err
		}
		host, err := n.deployBound(ctx, kvSource, map[string]any{"kvBindings": []bound{cache}})
		if err != nil {
			return err
		}
		return n.calls(ctx, cfg, r, 2*connections, host, "/", "/put", "/get")
	}, "--max-inflight", "1024")
}

const sqlSchema = `CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, score REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 10000) INSERT INTO t SELECT i, 'name '||i, i/3.0 FROM n;`

const sqlSource = `const id = () => ({ type: "integer", value: String(1 + Math.floor(Math.random() * 10000)) });
const text = { type: "text", value: "somebody" };
export default { async fetch(request, env) {
	switch (new URL(request.url).pathname) {
	case "/select": await env.DB.query("SELECT id, name, score FROM t WHERE id=?1", [id()]); break;
	case "/insert": await env.DB.execute("INSERT INTO t(name, score) VALUES(?1, 1.5)", [text]); break;
	case "/transaction": await env.DB.transaction(Array.from({ length: 10 }, () => ({ sql: "UPDATE t SET name=?2 WHERE id=?1", params: [id(), text] }))); break;
	case "/scan": await env.DB.query("SELECT id, name, score FROM t WHERE id <= 10000"); break;
	}
	return new Response("Hello World");
} }`

// benchSQL measures the store at its door beside the raw driver, and a worker that calls it.
func benchSQL(ctx context.Context, cfg config, r *report) error {
	all, err := room(ctx, "./sqlstore", func(binary string, all results) error {
		if err := all.run(ctx, binary, storeTurns, "^Benchmark(PointSelect|Insert|Transaction10|Scan10000)$", "300ms"); err != nil {
			return err
		}
		return all.run(ctx, binary, 1, "^BenchmarkOpenClose$", "300ms")
	})
	if err != nil {
		return err
	}
	r.line("  from Go, one client, medians of %d turns (open: one); raw is the same driver without this room", storeTurns)
	for _, b := range []struct {
		what, name string
		want       float64
	}{{"point select", "PointSelect", 0.6}, {"insert", "Insert", 0}, {"transaction of 10 updates", "Transaction10", 0}, {"scan of 10,000 rows", "Scan10000", 0},
		{"open, query, close", "OpenClose", 0}} {
		r.compared(b.what, all, b.name+"/impl=ours", b.name+"/impl=raw", "raw", "/s", b.want)
	}
	dir, err := os.MkdirTemp("", "edged-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var db bound
	err = withNodeIn(ctx, cfg, dir, func(n *nodeProcess) (err error) {
		db, err = n.boundTo(ctx, "SQLiteDatabase/0.2.0/", "DB", struct{}{})
		return err
	})
	if err != nil {
		return err
	}
	if err := migrated(ctx, filepath.Join(dir, "sql"), db.Resource.UID); err != nil { // while nobody has the database
		return err
	}
	return withNodeIn(ctx, cfg, dir, func(n *nodeProcess) error {
		host, err := n.deployBound(ctx, sqlSource, map[string]any{"sqliteBindings": []bound{db}})
		if err != nil {
			return err
		}
		if err := n.calls(ctx, cfg, r, 2*connections, host, "/", "/select", "/insert", "/transaction"); err != nil {
			return err
		}
		return n.calls(ctx, cfg, r, 4, host, "/scan") // an answer of 10,000 rows is large: few at once
	}, "--max-inflight", "1024")
}

// benchDatabases measures 1,000 databases in turn beside the raw driver. Most of its time goes into making them.
func benchDatabases(ctx context.Context, _ config, r *report) error {
	all, err := room(ctx, "./sqlstore", func(binary string, all results) error {
		return all.run(ctx, binary, 1, "^BenchmarkThousandDatabases$", "300ms")
	})
	if err == nil {
		r.beside("1,000 databases in turn", all.perSecond("ThousandDatabases/impl=ours"), all.perSecond("ThousandDatabases/impl=raw"), 0, "/s")
	}
	return err
}

// migrated gives a database of a node that does not run its schema and its rows.
func migrated(ctx context.Context, dir, uid string) error {
	s, err := sqlstore.Open(sqlstore.Options{Dir: dir})
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(sqlSchema))
	_, err = s.Database(uid, 1).Apply(ctx, []sqlstore.MigrationFile{{Path: "bench.sql", SHA256: hex.EncodeToString(sum[:]),
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(sqlSchema)), nil }}})
	return errors.Join(err, s.Close())
}

// deployBound makes a worker with bindings and returns its host.
func (n *nodeProcess) deployBound(ctx context.Context, source string, version map[string]any) (string, error) {
	bundle, err := n.bundle(ctx, "bound", source)
	if err != nil {
		return "", err
	}
	version["bundle"], version["handlers"] = bundle, []string{"fetch"}
	_, host, err := n.deployVersion(ctx, "bound", version)
	return host, err
}

// calls loads the paths of a worker, each of which is one call of a binding, but for "/", which calls nothing. What a call costs more
// than that, and more than the room at its door, is JavaScript's and the way to the room.
func (n *nodeProcess) calls(ctx context.Context, cfg config, r *report, conns int, host string, paths ...string) error {
	var all []*contender
	for _, path := range paths {
		name := "from JavaScript, " + path[1:]
		if path == "/" {
			name = "from JavaScript, no call"
		}
		all = append(all, n.contender(name, host, path))
	}
	if err := contest(ctx, cfg.fewer(), r, conns, all...); err != nil {
		return err
	}
	r.besideFirst(all)
	return nil
}

// besideFirst says the rates of all but the first beside the first's, which does nothing but answer.
func (r *report) besideFirst(all []*contender) {
	for _, c := range all[1:] {
		r.ratio(c.name+" / "+strings.TrimPrefix(all[0].name, "from JavaScript, "), c.over(all[0]), false)
	}
}

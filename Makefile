.DEFAULT_GOAL := help
.PHONY: help engine build run test lint unit race fuzz benchmarks examples bench bench-peers soak wpt test262 test262-edits sqllogictest sim test-upgrade test-upgrade-load test-net test-ops edged-s3 test-s3 clean
SHELL := bash

version := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
commit  := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
ldflags := -s -w -X main.version=$(version) -X main.commit=$(commit)
staticcheck := honnef.co/go/tools/cmd/staticcheck@v0.8.2
fuzztime ?= 3s
seeds ?= 5000

help: ## what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

# npm writes this file when it has installed all of the lock file.
engine_package := sandbox/engine/npm/node_modules/.package-lock.json

engine: ## fetch the pinned JavaScript engine and build it into its embedded folder; EDGED_ENGINE_PACKAGE names a local copy
ifeq ($(EDGED_ENGINE_PACKAGE),)
engine: $(engine_package)
endif
engine:
	@go run ./cmd/mkengine

$(engine_package): sandbox/engine/npm/package.json sandbox/engine/npm/package-lock.json sandbox/engine/npm/.npmrc
	cd sandbox/engine/npm && npm ci --ignore-scripts --no-audit --no-fund

build: engine ## bin/edged
	CGO_ENABLED=0 go build -trimpath -ldflags '$(ldflags)' -o bin/edged ./cmd/edged

run: build ## build and serve with the defaults; stop with Ctrl-C
	bin/edged run

test: lint examples unit race test-s3 test-plots fuzz benchmarks ## everything: format, vet, staticcheck, all tests, the race detector, fuzz targets, each benchmark once

lint: engine
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted (run gofmt -w):"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	go run $(staticcheck) ./...

unit: engine
	CGO_ENABLED=0 go test -count=1 ./...

# The race detector alone needs a C compiler.
race: engine
	@if command -v "$${CC:-gcc}" >/dev/null; then \
		set -x; CGO_ENABLED=1 go test -count=1 -race -shuffle=on -timeout 40m ./...; \
	else echo "race tests skipped: no C compiler ($${CC:-gcc}) was found"; fi

fuzz: engine
	scripts/fuzz.sh $(fuzztime)

benchmarks: engine
	@mkdir -p bin
	go test -run '^$$' -bench . -benchtime 1x ./... >bin/benchmarks.log 2>&1 || { grep -A30 -e '--- FAIL' -e '^panic:' -e '^FAIL' bin/benchmarks.log; exit 1; }

# The S3 front is a module of its own (docs/s3.md): what it needs is not the node's.
edged-s3: ## bin/edged-s3, the S3 front of object buckets
	CGO_ENABLED=0 go build -C s3 -trimpath -ldflags '-s -w' -o ../bin/edged-s3 .

test-s3: engine ## the S3 front before a real node: its own tests and the supported part of VersityGW's integration suite
	cd s3 && go vet ./... && go run $(staticcheck) ./...
	cd s3 && CGO_ENABLED=0 go test -count=1 ./...

sim: ## thousands of seeds of the replication simulation; seeds=5000
	go test ./kv -run 'TestSimulation$$' -count=1 -timeout 2h -sim.seeds $(seeds)

test-ops: engine ## deploy/prometheus and deploy/grafana against a live node and a real Prometheus; needs Debian's package prometheus
	go test ./cmd/edged/e2e -run 'TestDashboards|TestRulesAndDashboards|TestEveryAlert|TestPromtool|TestWatched' -count=1 -v

test-upgrade: engine ## a node and a fleet of the commit before (or UPGRADE_FROM=…) upgraded to this one, and back; part of unit, in about a minute
	go test ./cmd/edged/e2e -run 'TestUpgradeOfData|TestRollingUpgrade' -count=1 -v

test-upgrade-load: engine ## three upgrades under 5,000 requests a second: no error, and how long the longest request waited
	EDGED_UPGRADE_RATE=5000 go test ./cmd/edged/e2e -run TestUpgradeLosesNoRequest -count=1 -v

test-net: engine ## stores, then fleets, in real processes over links that are cut, slow and lossy; needs ip, nft and tc, takes six minutes
	EDGED_TEST_NET=1 go test ./kv/nettest -run TestNetwork -count=1 -timeout 10m -v
	EDGED_TEST_NET=1 go test ./cmd/edged/nettest -run TestFleetNetwork -count=1 -timeout 15m -v

# The examples' npm packages and built sites: the tests deploy every example.
examples: $(patsubst %/package-lock.json,%/node_modules/.package-lock.json,$(wildcard examples/*/package-lock.json))

examples/%/node_modules/.package-lock.json: examples/%/package.json examples/%/package-lock.json
	cd examples/$* && npm ci --ignore-scripts --no-audit --no-fund && npm run build --if-present

.PHONY: bench-check bench-plots test-plots

# Both leave their run in bin/ too, for bench-check and bench-plots.
bench: build examples/hono-api/node_modules/.package-lock.json ## the numbers of docs/performance.md, in about nine minutes on a quiet machine; needs wrk
	@go run ./bench -json bin/bench.json

soaktime ?= 5m
soak: build ## ten times more requests than a node can serve, for soaktime=5m, on a quiet machine
	@go run ./bench -only soak -soak $(soaktime)

# Each peer that is missing is named and left out.
bench-peers: build ## beside workerd, node, nginx and NATS JetStream, in about three minutes; needs wrk, and npm, node, nginx for theirs
	@$(MAKE) --no-print-directory bench/peers/node_modules/.package-lock.json || echo "workerd is left out: npm did not install it"
	@go run ./bench -peers -json bin/bench-peers.json

bench_runs = $(wildcard bin/bench.json bin/bench-peers.json)

bench-check: ## compare the last runs of make bench and bench-peers by ratio with the committed results; fails if something regressed
	@test -n "$(bench_runs)" || { echo "there is no run: make bench or make bench-peers first"; exit 1; }
	@go run ./bench -check $(bench_runs)

bench-plots: ## draw the same runs, and the committed results, as PNG into bin/plots
	@test -n "$(bench_runs)" || { echo "there is no run: make bench or make bench-peers first"; exit 1; }
	@go run -C bench/plot . -out "$(CURDIR)/bin/plots" -kept "$(CURDIR)/bench/results" $(addprefix "$(CURDIR)"/,$(bench_runs))

test-plots:
	cd bench/plot && go vet ./... && go run $(staticcheck) ./... && CGO_ENABLED=0 go test -count=1 ./...

bench/peers/node_modules/.package-lock.json: bench/peers/package.json bench/peers/package-lock.json
	cd bench/peers && npm ci --ignore-scripts --no-audit --no-fund

# The public suites are not in this project: docs/conformance.md says where the results come from.
wpt: engine ## run the web platform tests from a local copy, WPT_DIR=…; ARGS are more flags (-only url/,streams/ -json FILE -v)
	@test -n "$(WPT_DIR)" || { echo "name a copy of the web platform tests: make wpt WPT_DIR=…"; exit 1; }
	go run ./conformance $(ARGS) wpt "$(WPT_DIR)"

test262: engine ## run test262 from a local copy, TEST262_DIR=…; ARGS are more flags (-every 40 -json FILE -v)
	@test -n "$(TEST262_DIR)" || { echo "name a copy of test262: make test262 TEST262_DIR=…"; exit 1; }
	go run ./conformance $(ARGS) test262 "$(TEST262_DIR)"

# The engine is built without the edits for the second run, and with them again at the end.
test262-edits: engine ## every case of test262 on the engine with our edits and without them, status by status, TEST262_DIR=…; ARGS as above
	@test -n "$(TEST262_DIR)" || { echo "name a copy of test262: make test262-edits TEST262_DIR=…"; exit 1; }
	@mkdir -p bin
	go run ./conformance $(ARGS) -json bin/edited.json test262 "$(TEST262_DIR)"
	trap 'go run ./cmd/mkengine' EXIT; go run ./cmd/mkengine -slow && go run ./conformance $(ARGS) -json bin/unedited.json test262 "$(TEST262_DIR)"
	go run ./conformance compare bin/edited.json bin/unedited.json

sqllogictest: ## run SQLite's sqllogictest corpus from a local copy through the SQL binding's door, SLT_DIR=…
	@test -n "$(SLT_DIR)" || { echo "name a copy of the corpus: make sqllogictest SLT_DIR=…"; exit 1; }
	SLT_DIR="$(SLT_DIR)" go test -count=1 -run TestSQLLogic -v -timeout 2h ./sqlstore

clean: ## remove what was built (not ./data)
	rm -rf bin sandbox/engine/npm/node_modules bench/peers/node_modules examples/*/node_modules examples/*/dist
	find sandbox/engine/wasm/dist -type f ! -name placeholder.txt -delete

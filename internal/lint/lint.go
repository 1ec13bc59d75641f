// Package lint holds the tree to its own picture: which package may import which, which library has which door, and what
// every package and exported name must carry. All of it are tests; a failure says the reason.
//
//	lint.go         the rules
//	lint_test.go    the tree held to them, and the rules held to examples
//
// Not here: what gofmt, vet and staticcheck already say.
package lint

import (
	"fmt"
	"strings"
)

// layer says where a package stands; a package may import only lower layers, and its own room.
var layers = map[string]int{
	"internal": 0,
	"kv":       1, "objects": 1, "sqlstore": 1, "queue": 1,
	"router": 2, "sandbox": 2, "control": 2, "cron": 2,
	"node": 3,
	"cmd":  4, "bench": 4, "conformance": 4, "examples": 4,
}

// doors names, per library, the packages that may import it. A prefix ending in "/..." covers a folder.
var doors = map[string][]string{
	"github.com/tetratelabs/wazero":      {"sandbox/engine", "sandbox/engine/userwasm"},
	"github.com/valyala/fasthttp":        {"router", "bench"},
	"github.com/hashicorp/memberlist":    {"kv/gossip"},
	"github.com/hashicorp/raft":          {"control", "control/raftlog"},
	"github.com/ncruces/go-sqlite3":      {"sqlstore/engine"},
	"github.com/cockroachdb/pebble":      {"internal/disk", "control/raftlog", "control/artifact", "control/plan", "kv/...", "objects/...", "queue", "bench"},
	"github.com/evanw/esbuild":           {"cmd/edged/deploy"},
	"github.com/prometheus/":             {"internal/meter", "internal/trace", "node", "node/...", "router", "sandbox", "control", "control/...", "cron", "kv", "objects", "sqlstore", "queue"},
	"github.com/mattn/go-sqlite3":        {},
	"modernc.org/sqlite":                 {},
	"edged/internal/testkit":             {},
	"github.com/robfig/cron":             {}, // the grammar is internal/cronexpr's; tests compare it with this one
	"github.com/stretchr/testify":        {},
	"github.com/pkg/errors":              {},
	"golang.org/x/exp":                   {},
	"github.com/cockroachdb/errors":      {},
	"github.com/hashicorp/raft-boltdb":   {},
	"github.com/hashicorp/raft-wal":      {},
	"github.com/golang/protobuf":         {},
	"google.golang.org/protobuf":         {},
	"github.com/sirupsen/logrus":         {},
	"go.uber.org/zap":                    {},
	"github.com/hashicorp/go-multierror": {},
}

func room(pkg string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(pkg, "edged/"), "/")
	return first
}

// checkImport returns why package from may not import package to, "" where it may. Both are import paths.
func checkImport(from, to string) string {
	from = strings.TrimPrefix(from, "edged/")
	for lib, allowed := range doors {
		if !strings.HasPrefix(to, strings.TrimSuffix(lib, "/")) {
			continue
		}
		for _, a := range allowed {
			if from == a || strings.HasSuffix(a, "/...") && strings.HasPrefix(from+"/", strings.TrimSuffix(a, "...")) {
				return ""
			}
		}
		return fmt.Sprintf("%s has no door in %s (doors: %s)", lib, from, strings.Join(allowed, ", "))
	}
	if !strings.HasPrefix(to, "edged/") {
		return ""
	}
	to = strings.TrimPrefix(to, "edged/")
	fromRoom, toRoom := room(from), room(to)
	switch {
	case fromRoom == "internal" && toRoom != "internal":
		return "the ground imports no room"
	case fromRoom == toRoom && fromRoom != "internal":
		return checkInside(from, to)
	case toRoom == "internal":
		return ""
	case fromRoom == "router" && to == "sandbox/event":
		return "" // the one sideways arrow: plain types
	}
	lf, okf := layers[fromRoom]
	lt, okt := layers[toRoom]
	switch {
	case !okf || !okt:
		return fmt.Sprintf("room %s or %s is not in the picture", fromRoom, toRoom)
	case lt == 4:
		return "nobody imports a program"
	case lf == 4:
		return ""
	case lf <= lt:
		return fmt.Sprintf("layer %d (%s) may not import layer %d (%s)", lf, fromRoom, lt, toRoom)
	case lf == 2 && lt == 1:
		return "services know no store; node connects them"
	}
	return ""
}

// checkInside holds "the root of a room imports its parts, never the reverse".
func checkInside(from, to string) string {
	if to == room(from) && from != to && !strings.HasSuffix(from, "test") && room(from) != "cmd" {
		return "a part of a room may not import the room's root"
	}
	return ""
}

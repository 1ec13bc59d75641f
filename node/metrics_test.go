package node

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"edged/control"
	"edged/control/feed"
	"edged/cron"
	"edged/internal/disk"
	"edged/internal/fault"
	"edged/internal/trace"
	"edged/kv"
	"edged/node/accesslog"
	"edged/node/tail"
	"edged/objects"
	"edged/queue"
	"edged/router"
	"edged/sandbox"
	"edged/sqlstore"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md")

// everyMetric is a node's registry with the metrics of every room, and a queue so that those per queue are there.
func everyMetric(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := newRegistry("v0.0.0")
	(&Node{registry: reg, ready: newReadiness(), space: disk.NewSpace(disk.SpaceOptions{Dir: t.TempDir()})}).showState()
	new(memoryWatch).show(reg)
	router.NewMetrics(reg)
	tail.NewMetrics(reg)
	accesslog.NewMetrics(reg)
	sandbox.NewMetrics(reg)
	control.NewMetrics(reg)
	feed.NewMetrics(reg)
	cron.NewMetrics(reg)
	trace.NewMetrics(reg)
	kv.NewMetrics(reg)
	objects.NewMetrics(reg)
	sqlstore.NewMetrics(reg)
	store, err := queue.Open(queue.Options{Dir: t.TempDir(), Metrics: queue.NewMetrics(reg),
		Deliver: func(context.Context, *queue.Batch) (queue.Outcome, error) { return 0, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := store.Create(t.Context(), queue.Ref{UID: "q", Epoch: 1}, queue.Settings{Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	return reg
}

// Prometheus' own conventions: units, suffixes, help texts.
func TestMetricsKeepTheConventions(t *testing.T) {
	problems, err := testutil.GatherAndLint(everyMetric(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// node-surface §5: labels come from closed sets. One that is not here needs a set that is closed, or a cap.
var (
	closed = []string{"as", "class", "code", "kind", "limit", "origin", "outcome", "reason", "result", "source", "status", "verdict"}
	capped = []string{"queue", "worker"} // UIDs, 100 of each and meter.Other
)

func TestLabelsAreClosed(t *testing.T) {
	word := regexp.MustCompile(`^[a-z0-9_]+$`)
	for _, f := range gather(t) {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				switch name, value := l.GetName(), l.GetValue(); {
				case name == "version" && strings.HasSuffix(f.GetName(), "_info"), slices.Contains(capped, name):
				case !slices.Contains(closed, name):
					t.Errorf("%s has the label %s, which is in no list", f.GetName(), name)
				case !word.MatchString(value):
					t.Errorf("%s has the value %q, which is no word", f.GetName(), value)
				}
			}
		}
	}
}

// gather reads the metrics that are this program's own.
func gather(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	all, err := everyMetric(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "edged_") })
}

// docs/metrics.md names every metric as it is, and none that is not.
func TestMetricsPageIsComplete(t *testing.T) {
	const path = "../docs/metrics.md"
	var rows []string
	for _, f := range gather(t) {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", f.GetName(), strings.ToLower(f.GetType().String()), labelsOf(f), f.GetHelp()))
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| metric | type | labels | says |\n| --- | --- | --- | --- |\n"
	before, table, found := strings.Cut(string(page), head)
	table, after, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table that begins with\n%s and ends with an empty line", path, head)
	}
	there := strings.Split(table, "\n")
	for _, r := range rows {
		if !slices.Contains(there, r) {
			t.Errorf("the page lacks\n%s", r)
		}
	}
	for _, r := range there {
		if !slices.Contains(rows, r) {
			t.Errorf("no metric is as the page says\n%s", r)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+head+strings.Join(rows, "\n")+"\n\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if t.Failed() {
		t.Log("write the table anew: go test ./node -run TestMetricsPageIsComplete -update")
	}
}

// labelsOf tells the labels of a metric and their values, but for those that are the same everywhere.
func labelsOf(f *dto.MetricFamily) string {
	values := map[string][]string{}
	for _, m := range f.Metric {
		for _, l := range m.Label {
			values[l.GetName()] = append(values[l.GetName()], "`"+l.GetValue()+"`")
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(capped, name) || name == "code" && len(values[name]) == len(fault.Codes())+1 || name == "version" {
			out = append(out, "`"+name+"`")
			continue
		}
		vs := slices.Compact(slices.Sorted(slices.Values(values[name])))
		out = append(out, "`"+name+"`: "+strings.Join(vs, ", "))
	}
	return strings.Join(out, "; ")
}

// edged_node_ready says what /readyz says.
func TestReadinessIsAMetric(t *testing.T) {
	var free atomic.Uint64
	n := &Node{registry: prometheus.NewRegistry(), ready: newReadiness()}
	look := func() [2]float64 {
		n.space = disk.NewSpace(disk.SpaceOptions{Free: func(string) (uint64, error) { return free.Load(), nil }})
		all, err := n.registry.Gather() // sorted by name
		if err != nil || len(all) != 2 {
			t.Fatal(all, err)
		}
		return [2]float64{all[0].Metric[0].Gauge.GetValue(), all[1].Metric[0].Gauge.GetValue()}
	}
	n.showState()
	free.Store(1 << 30)
	if got := look(); got != [2]float64{1 << 30, 0} {
		t.Errorf("starting: %v", got)
	}
	n.ready.set("node", "")
	if got := look(); got != [2]float64{1 << 30, 1} {
		t.Errorf("ready: %v", got)
	}
	free.Store(1 << 20)
	if got := look(); got != [2]float64{1 << 20, 0} {
		t.Errorf("the disk is full: %v", got)
	}
}

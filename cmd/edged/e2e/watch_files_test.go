package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"go.yaml.in/yaml/v3"
)

const top = "../../.."

// rule is one of deploy/prometheus; Record or Alert is its name.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(top, "deploy/prometheus", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func rules(t *testing.T, name string) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, name, &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no rules", name)
	}
	return all
}

//lint:ignore SA1019 what every Grafana imports; the second model wants a Grafana of 2025 or later
type classic = dashboard.Dashboard

// expression is what Prometheus is asked, and who asks.
type expression struct{ by, text string }

// dashboards reads deploy/grafana by the types that Grafana generates from its schema: a field that it does not have, a value that it
// does not allow or a panel of an unknown kind is an error.
func dashboards(t *testing.T) (queries []expression) {
	t.Helper()
	plugins.RegisterDefaultPlugins()
	files, err := filepath.Glob(filepath.Join(top, "deploy/grafana/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no dashboards", err)
	}
	uids := map[string]string{}
	for _, path := range files {
		name := filepath.Base(path)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := strictly(raw); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var d classic // read again: the strict reading does not keep panels
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d.Uid == nil || d.Title == nil || uids[*d.Uid] != "" {
			t.Fatalf("%s has no title, or no uid of its own", name)
		}
		uids[*d.Uid] = name
		for _, v := range d.Templating.List {
			if of := v.Query; v.Name != "datasource" {
				call := labelValues.FindStringSubmatch(*of.String)
				if call == nil {
					t.Fatalf("%s: variable %s asks %q", name, v.Name, *of.String)
				}
				queries = append(queries, expression{name + " variable " + v.Name, "count by (" + call[2] + ") (" + call[1] + ")"})
			}
		}
		queries = append(queries, panelQueries(t, name, &d)...)
	}
	return queries
}

// strictly refuses what the schema does not have. The generated readers return an error, which is empty, of what is good too, and do not
// look into the queries.
func strictly(raw []byte) error {
	type reader interface{ UnmarshalJSONStrict([]byte) error }
	read := func(into reader, raw []byte) error {
		err := into.UnmarshalJSONStrict(raw)
		if faults := cog.BuildErrors(nil); errors.As(err, &faults) && len(faults) == 0 {
			return nil
		}
		return err
	}
	var d struct {
		Panels []struct{ Targets []json.RawMessage }
	}
	err := errors.Join(read(&classic{}, raw), json.Unmarshal(raw, &d))
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			err = errors.Join(err, read(&prometheus.Dataquery{}, target))
		}
	}
	return err
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

func panelQueries(t *testing.T, name string, d *classic) (queries []expression) {
	t.Helper()
	ids, places := map[uint32]bool{}, map[[2]uint32]bool{}
	for _, p := range d.Panels {
		panel := p.Panel
		if panel == nil || panel.Id == nil || panel.Title == nil || panel.GridPos == nil || len(panel.Targets) == 0 {
			t.Fatalf("%s has a panel without id, title, place or query", name)
		}
		place := [2]uint32{panel.GridPos.X, panel.GridPos.Y}
		if ids[*panel.Id] || places[place] {
			t.Errorf("%s: the id or the place of %q is taken", name, *panel.Title)
		}
		ids[*panel.Id], places[place] = true, true
		for _, target := range panel.Targets {
			q, ok := target.(*prometheus.Dataquery)
			if !ok || q.Expr == "" {
				t.Fatalf("%s: %q has a query that is none of Prometheus: %T", name, *panel.Title, target)
			}
			queries = append(queries, expression{name + " " + *panel.Title, grafanaVariables.Replace(q.Expr)})
		}
	}
	return queries
}

// grafanaVariables stands for Grafana: all of them, and the interval of the rules.
var grafanaVariables = strings.NewReplacer("$instance", ".*", "$worker", ".*", "$__rate_interval", "5m")

// Every dashboard keeps Grafana's published schema.
func TestDashboardsKeepTheSchema(t *testing.T) {
	if queries := dashboards(t); len(queries) < 50 {
		t.Errorf("only %d queries were found", len(queries))
	}
}

// expressions returns every expression of rules and dashboards.
func expressions(t *testing.T) []expression {
	all := dashboards(t)
	for _, file := range []string{"recording.yml", "alerts.yml"} {
		for _, r := range rules(t, file) {
			all = append(all, expression{file + " " + r.Record + r.Alert, r.Expr})
		}
	}
	return all
}

// selector finds what an expression reads: a name, and what it asks of the labels.
var selector = regexp.MustCompile(`\b(edged[_:][\w:]+|process_\w+|go_\w+|up)\b(?:\{[^}]*\})?`)

// Rules and dashboards name only metrics of docs/metrics.md (which another test holds to the program), recorded ones, and those of
// every Go program.
func TestRulesAndDashboardsNameMetricsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, m := range documented(t) {
		known[m[1]] = m[2] != "histogram"
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			known[m[1]+suffix] = m[2] == "histogram"
		}
	}
	for _, r := range rules(t, "recording.yml") {
		known[r.Record] = true
	}
	for _, e := range expressions(t) {
		found := selector.FindAllStringSubmatch(e.text, -1)
		if len(found) == 0 {
			t.Errorf("%s reads nothing: %s", e.by, e.text)
		}
		for _, m := range found {
			if strings.HasPrefix(m[1], "edged") && !known[m[1]] {
				t.Errorf("%s reads %s, which there is not", e.by, m[1])
			}
		}
	}
}

func documented(t *testing.T) [][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(top, "docs/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?m)^\\| `(edged_\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(page), -1)
}

// Every alert says what is wrong, has its part of docs/runbook.md, and is tested with a node that has it and one that nearly has it.
func TestEveryAlertHasARunbookAndATest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, "docs/runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)\n\n(\w+)\.`).FindAllStringSubmatch(string(page), -1) {
		parts[m[1]] = strings.ToLower(m[2])
	}
	var file struct {
		Tests []struct {
			Input []struct{ Series string } `yaml:"input_series"`
			Alert []struct {
				Name   string `yaml:"alertname"`
				Raised []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	readYAML(t, "tests.yml", &file)
	tested := map[string]bool{}
	for _, one := range file.Tests {
		nearly := slices.ContainsFunc(one.Input, func(in struct{ Series string }) bool { return strings.Contains(in.Series, `instance="good"`) })
		for _, a := range one.Alert {
			tested[a.Name] = nearly && len(a.Raised) == 1
		}
	}
	for _, r := range rules(t, "alerts.yml") {
		if parts[r.Alert] != r.Labels["severity"] {
			t.Errorf("%s: the runbook says %q, the severity is %q", r.Alert, parts[r.Alert], r.Labels["severity"])
		}
		if want := "docs/runbook.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want || r.Annotations["summary"] == "" {
			t.Errorf("%s: annotations %v, want a summary and %s", r.Alert, r.Annotations, want)
		}
		if !tested[r.Alert] {
			t.Errorf("tests.yml does not test that %s is raised for one node and not for another", r.Alert)
		}
		delete(parts, r.Alert)
	}
	for name := range parts {
		t.Errorf("the runbook has a part for %s, which is no alert", name)
	}
}

// program returns the path of a program of Debian's package prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: apt-get install prometheus", name)
	}
	return path
}

// What Prometheus itself says of the rules and their tests.
func TestPromtoolAcceptsTheRules(t *testing.T) {
	tool := program(t, "promtool")
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"check", "rules", "recording.yml", "alerts.yml"}, {"test", "rules", "tests.yml"}} {
		cmd := exec.CommandContext(t.Context(), tool, args...)
		cmd.Dir = filepath.Join(top, "deploy/prometheus")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// docs/fleet.md: a member compares the flags that all should have alike with a voter's after its start, and warns of each that differs; what
// voters alone decide by, an edge does not compare.
func TestSettingsAreCompared(t *testing.T) {
	t.Parallel()
	f := foundFleet(t, 1, 0)
	joined := func(role string, flags ...string) *node {
		return f.join(f.nodes[0], filepath.Join(t.TempDir(), "data"), role, append(flags, "--artifact-origins", "https://files.test")...)
	}
	b := joined("control,edge", "--custom-domain-zones", "b.test=team,a.test")
	d := joined("edge", "--egress", "none", "--endpoint-domain", "other.test")
	for n, want := range map[*node][]string{
		b: {`--artifact-origins is \"https://files.test\" here and \"\" there`, `--custom-domain-zones is \"a.test,b.test=team\" here and \"*\" there`},
		d: {`--egress is \"none\" here and \"public\" there`, `--endpoint-domain is \"other.test\" here and \"edge.localhost\" there`},
	} {
		line := ""
		n.until("comparison of settings", func() bool {
			for line = range strings.Lines(n.log.String()) {
				if strings.Contains(line, "other settings than a voter") {
					return true
				}
			}
			return false
		})
		if !strings.Contains(line, `"differ":"`+strings.Join(want, "; ")+`"`) {
			t.Errorf("the warning is %s, want %v", line, want)
		}
	}
}

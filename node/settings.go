package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"edged/control"
	"edged/internal/fault"
)

// settings are the flags that members are better started with alike, as text that can be compared: what one voter decides by them, another
// would decide otherwise once it leads. A file of rules is shown by its digest.
func (n *Node) settings() map[string]string {
	out := map[string]string{"--endpoint-domain": n.opt.EndpointDomain, "--egress": egressName(n.opt.Egress)}
	if n.control != nil {
		zones := []string{}
		for _, z := range n.opt.zones() {
			zones = append(zones, strings.TrimSuffix(z.Name+"="+z.Tenant, "="))
		}
		slices.Sort(zones)
		origins := slices.Sorted(slices.Values(n.opt.ArtifactOrigins))
		out["--custom-domain-zones"], out["--artifact-origins"] = strings.Join(zones, ","), strings.Join(origins, ",")
	}
	return out
}

func egressName(value string) string {
	if value == "" || value == "public" || value == "none" {
		return value
	}
	text, err := os.ReadFile(value)
	if err != nil {
		return "unreadable rules"
	}
	return fmt.Sprintf("rules %.8x", sha256.Sum256(text))
}

// differing lists the settings of this node that are others at a voter, by name.
func differing(own, voters map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if theirs, told := voters[name]; told && theirs != own[name] {
			out = append(out, fmt.Sprintf("%s is %.200q here and %.200q there", name, own[name], theirs))
		}
	}
	return out
}

// compareSettings asks a voter for its settings and warns of what is another here. A voter that runs a program of before has none to tell.
func (n *Node) compareSettings(ctx context.Context) error {
	raw, err := n.askVoters(ctx, http.MethodGet, control.PathSettings, nil)
	if err != nil {
		return err
	}
	var theirs map[string]string
	if json.Unmarshal(raw, &theirs) != nil {
		return fault.New(fault.Unavailable, "node.settings", "a voter tells no settings")
	}
	if list := differing(n.settings(), theirs); len(list) > 0 {
		n.log.Warn("this node was started with other settings than a voter: workers and domains are treated differently here; start all members alike", "differ", strings.Join(list, "; "))
	}
	return nil
}

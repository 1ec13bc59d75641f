package deploy

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"edged/internal/fault"
)

// Whole is the whole traffic of a worker in basis points.
const Whole = 10000

const all = Whole

// Share is a version's part of the traffic.
type Share struct {
	Version string `json:"version"` // UID
	Weight  int    `json:"weight"`  // basis points, 1 to 10000
}

// next returns the distribution that gives a version points of the traffic. With less than all of it, the rest goes to
// the current version: of several the heaviest, so that a new trial takes the place of the one before.
func next(current []Share, version string, points int) ([]Share, error) {
	if points == all {
		return []Share{{version, all}}, nil
	}
	const op = "deploy.weight"
	if len(current) == 0 {
		return nil, fault.New(fault.Conflict, op, "nothing is deployed yet that a smaller weight could stand beside: deploy without --weight first")
	}
	others := slices.DeleteFunc(slices.Clone(current), func(s Share) bool { return s.Version == version })
	if len(others) == 0 {
		return current, nil
	}
	slices.SortStableFunc(others, func(a, b Share) int { return b.Weight - a.Weight })
	if len(others) > 1 && others[0].Weight == others[1].Weight {
		return nil, fault.New(fault.Conflict, op, "several versions have the same weight, so none is the current one: deploy without --weight, or update the deployment")
	}
	return []Share{{others[0].Version, all - points}, {version, points}}, nil
}

type ref struct {
	UID string `json:"resourceUid"`
}

type weighted struct {
	Version ref `json:"workerVersion"`
	Weight  int `json:"weight"`
}

type deploymentSpec struct {
	Worker   ref        `json:"worker"`
	Versions []weighted `json:"versions"`
}

func deploymentOf(worker string, shares []Share) deploymentSpec {
	spec := deploymentSpec{Worker: ref{worker}}
	for _, s := range shares {
		spec.Versions = append(spec.Versions, weighted{ref{s.Version}, s.Weight})
	}
	return spec
}

// equal compares as the Form does (worker-deployment §1): versions are a set.
func (d deploymentSpec) equal(other deploymentSpec) bool {
	return d.Worker == other.Worker && slices.Equal(d.sorted(), other.sorted())
}

func (d deploymentSpec) sorted() []weighted {
	list := slices.Clone(d.Versions)
	slices.SortFunc(list, func(a, b weighted) int { return strings.Compare(a.Version.UID, b.Version.UID) })
	return list
}

// active returns the distribution that a deployment's observation shows as the source of new work.
func active(observed json.RawMessage) []Share {
	var o struct {
		Active           bool
		SelectedVersions []struct {
			ResourceUID string
			Weight      int
		}
	}
	if json.Unmarshal(observed, &o) != nil || !o.Active {
		return nil
	}
	var shares []Share
	for _, s := range o.SelectedVersions {
		shares = append(shares, Share{s.ResourceUID, s.Weight})
	}
	return shares
}

// ParsePoints reads a part of the traffic: whole basis points from 0 to 10000, or a percentage with up to two decimals, like
// 5% or 0.25%.
func ParsePoints(text string) (int, error) {
	whole, isPercent := strings.CutSuffix(text, "%")
	decimals := ""
	if isPercent {
		whole, decimals, _ = strings.Cut(whole, ".")
		if len(decimals) > 2 || strings.HasSuffix(text, ".%") {
			whole, decimals = "", ""
		}
		decimals += "00"[:2-len(decimals)]
	}
	n, err := strconv.Atoi(whole + decimals)
	if err != nil || whole == "" || n < 0 || n > all || strings.ContainsAny(text, "+-") {
		return 0, fault.Newf(fault.Invalid, "deploy.ParsePoints", "%.40q is not 0 to 10000 basis points, nor a percentage like 5%%", text)
	}
	return n, nil
}

// Percent renders basis points as a percentage: 100%, 5%, 0.01%.
func Percent(points int) string {
	return strconv.FormatFloat(float64(points)/100, 'f', -1, 64) + "%"
}

package deploy

import (
	"cmp"
	"context"
	"slices"

	"edged/internal/fault"
)

// Shift gives versions other parts of the traffic. set has basis points by UID, name or the beginning of a digest; 0 takes a
// version out. What is left is shared by the versions that have traffic now and are not in set, in proportion to what they
// have; a part of less than a basis point is none.
func (w *Worker) Shift(ctx context.Context, set map[string]int) (*Change, error) {
	if w.deployment == nil {
		return nil, fault.Newf(fault.Conflict, "deploy.Shift", "nothing of %s is deployed", w.Name)
	}
	wanted := map[string]int{}
	for text, n := range set {
		v, err := w.version(text)
		if err != nil {
			return nil, err
		}
		if _, twice := wanted[v.UID]; twice {
			return nil, fault.Newf(fault.Invalid, "deploy.Shift", "version %s is named twice", v.Name)
		}
		wanted[v.UID] = n
	}
	shares, err := shifted(active(w.deployment.Observed), wanted)
	if err != nil {
		return nil, err
	}
	return w.move(ctx, shares)
}

// shifted is the distribution with some parts set, in basis points by version.
func shifted(current []Share, set map[string]int) ([]Share, error) {
	const op = "deploy.Shift"
	rest := all
	var out, others []Share
	for version, n := range set {
		if rest -= n; n > 0 {
			out = append(out, Share{version, n})
		}
	}
	had := 0
	for _, s := range current {
		if _, named := set[s.Version]; !named {
			others = append(others, s)
			had += s.Weight
		}
	}
	switch {
	case rest < 0:
		return nil, fault.Newf(fault.Invalid, op, "together that is %s", Percent(all-rest))
	case rest > 0 && had == 0:
		return nil, fault.Newf(fault.Invalid, op, "together that is %s, and no other version has traffic that could keep the rest", Percent(all-rest))
	}
	for _, s := range proportional(others, rest, had) {
		if s.Weight > 0 {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Share) int { return cmp.Or(b.Weight-a.Weight, cmp.Compare(a.Version, b.Version)) })
	return out, nil
}

// proportional shares rest out as had was: what whole numbers leave goes to the largest fractions.
func proportional(shares []Share, rest, had int) []Share {
	out := slices.Clone(shares)
	left := rest
	for i, s := range shares {
		out[i].Weight = s.Weight * rest / had
		left -= out[i].Weight
	}
	order := make([]int, len(shares))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return shares[b].Weight*rest%had - shares[a].Weight*rest%had })
	for _, i := range order[:left] {
		out[i].Weight++
	}
	return out
}

package rules

// EnvName is one name that a version puts into env, and the place in its spec that declares it.
type EnvName struct {
	Name, Pointer string
}

// Environment is rule 6: all names of a version share one namespace. names are in spec order.
func Environment(names []EnvName) *Verdict {
	seen := make(map[string]string, len(names))
	for _, n := range names {
		if first, taken := seen[n.Name]; taken {
			return Refuse(InvalidArgument, "WA-6.1", n.Pointer, nil, "name %s is declared at %s and at %s", n.Name, first, n.Pointer)
		}
		seen[n.Name] = n.Pointer
	}
	return nil
}

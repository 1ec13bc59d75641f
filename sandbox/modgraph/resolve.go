package modgraph

import "strings"

// maxSpecifier bounds a specifier: the longest manifest path (worker-bundle §2), and room for as many "../".
const maxSpecifier = 4096

// Resolve returns the path of the module that the importing module's specifier names, by the rules of module-worker §2.2.
// The error is ErrNotFound when no entry has that path or the specifier is of a refused shape, ErrUnsupported when the
// entry cannot be imported.
func (g *Graph) Resolve(importer, specifier string) (string, error) {
	path, why := join(importer, specifier)
	if why != "" {
		return "", ErrNotFound.Newf("modgraph.Resolve", "cannot import %s from %q: %s", quote(specifier), importer, why)
	}
	m := g.byPath[path]
	if m == nil {
		return "", ErrNotFound.Newf("modgraph.Resolve", "cannot import %s from %q: the bundle has no such module", quote(specifier), importer)
	}
	if m.MediaType == TypeSourceMap {
		return "", ErrUnsupported.Newf("modgraph.Resolve", "cannot import %s from %q: a source map is not importable", quote(specifier), importer)
	}
	return path, nil
}

// join resolves specifier against the directory of importer. why says what is wrong with its shape, "" if nothing.
func join(importer, specifier string) (path, why string) {
	if len(specifier) > maxSpecifier {
		return "", "the specifier is too long"
	}
	if strings.ContainsAny(specifier, `\?#`) {
		return "", `a specifier holds no backslash, "?" or "#"`
	}
	var segments []string
	rest := specifier
	switch {
	case strings.HasPrefix(specifier, "/"):
		rest = specifier[1:]
	case strings.HasPrefix(specifier, "./"), strings.HasPrefix(specifier, "../"):
		if i := strings.LastIndexByte(importer, '/'); i >= 0 {
			segments = strings.Split(importer[:i], "/")
		}
	default:
		return "", `a specifier begins with "./", "../" or "/"`
	}
	for s := range strings.SplitSeq(rest, "/") {
		switch s {
		case "":
			return "", "a path has no empty segments"
		case ".":
		case "..":
			if len(segments) == 0 {
				return "", "the path leaves the bundle"
			}
			segments = segments[:len(segments)-1]
		default:
			segments = append(segments, s)
		}
	}
	return strings.Join(segments, "/"), ""
}

// quote shows a specifier in a message, shortened: it comes from outside.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return `"` + strings.ToValidUTF8(s, "\ufffd") + `"`
}

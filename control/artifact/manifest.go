package artifact

import (
	"strings"

	"edged/internal/fault"

	"edged/control/jsonraw"
)

// Kind is what a bundle is for: it decides which manifest is right.
type Kind uint8

// The kinds. Numbers are stored; append only.
const (
	Worker     Kind = 1 // WorkerBundle 0.2.0
	Assets     Kind = 2 // StaticAssetBundle 0.2.0
	Migrations Kind = 3 // SQLiteMigrationSet 0.2.0
)

// Media types that the contract names (module-worker §2.1, worker-bundle §2).
const (
	typeModule = "application/javascript+module"
	typeSQL    = "application/sql"
)

var moduleTypes = map[string]bool{
	typeModule:                    true,
	"text/plain":                  true,
	"application/octet-stream":    true,
	"application/wasm":            true,
	"application/source-map+json": true,
}

// Manifest is the list of files of a bundle, in its author's order.
type Manifest struct {
	Entrypoint string // a path of Files; empty unless the kind is Worker
	Files      []ManifestFile
}

// ManifestFile is one file that a manifest names.
type ManifestFile struct {
	Path, URL, MediaType string
	Digest               Digest
}

func invalid(format string, args ...any) error {
	return ErrInvalid.Newf("artifact.ParseManifest", format, args...)
}

// ParseManifest reads a manifest by worker-bundle §2. Every failure is ErrInvalid with a sentence that names the file
// at fault. The result does not refer to b.
func ParseManifest(b []byte, kind Kind) (*Manifest, error) {
	if len(b) > MaxManifestBytes {
		return nil, invalid("the manifest is over %d bytes", MaxManifestBytes)
	}
	if err := jsonraw.Check(b); err != nil {
		return nil, invalid("the manifest is not valid JSON: %s", fault.Detail(err))
	}
	if jsonraw.KindOf(b) != jsonraw.Object {
		return nil, invalid("the manifest is not a JSON object")
	}
	var m Manifest
	var files []byte
	hasEntry := false
	for name, raw := range jsonraw.Members(b) {
		switch {
		case name == "files":
			files = raw
		case name == "entrypoint" && kind == Worker:
			if m.Entrypoint, hasEntry = jsonraw.Text(raw); !hasEntry {
				return nil, invalid("the manifest's entrypoint is not a string")
			}
		default:
			return nil, invalid("the manifest has the unknown member %.64q", name)
		}
	}
	if kind == Worker && !hasEntry {
		return nil, invalid("the manifest has no entrypoint")
	}
	if jsonraw.KindOf(files) != jsonraw.Array {
		return nil, invalid("the manifest has no files array")
	}
	if err := m.readFiles(files, kind); err != nil {
		return nil, err
	}
	if kind == Worker {
		if err := m.checkEntrypoint(); err != nil {
			return nil, err
		}
	}
	return &m, nil
}

func (m *Manifest) readFiles(raw []byte, kind Kind) error {
	paths := map[string]bool{}
	for item := range jsonraw.Items(raw) {
		if len(m.Files) == MaxFiles {
			return invalid("the manifest has more than %d files", MaxFiles)
		}
		f, what := parseFile(item, kind)
		if what == "" && paths[f.Path] {
			what = "path appears twice"
		}
		if what != "" {
			return invalid("files[%d] (path %.64q): %s", len(m.Files), f.Path, what)
		}
		paths[f.Path] = true
		m.Files = append(m.Files, f)
	}
	if len(m.Files) == 0 {
		return invalid("the manifest has no files")
	}
	return nil
}

func (m *Manifest) checkEntrypoint() error {
	for _, f := range m.Files {
		if f.Path != m.Entrypoint {
			continue
		}
		if f.MediaType != typeModule {
			return invalid("the entrypoint %.64q has the media type %.64q, not %s", f.Path, f.MediaType, typeModule)
		}
		return nil
	}
	return invalid("the entrypoint %.64q is not the path of a file", m.Entrypoint)
}

// parseFile reads one element of files; what says what is wrong with it, empty if nothing is.
func parseFile(raw []byte, kind Kind) (f ManifestFile, what string) {
	if jsonraw.KindOf(raw) != jsonraw.Object {
		return f, "is not an object"
	}
	seen := 0
	digest := ""
	for name, value := range jsonraw.Members(raw) {
		var field *string
		switch name {
		case "path":
			field = &f.Path
		case "url":
			field = &f.URL
		case "mediaType":
			field = &f.MediaType
		case "sha256":
			field = &digest
		default:
			return f, "has an unknown member"
		}
		text, ok := jsonraw.Text(value)
		if !ok {
			return f, name + " is not a string"
		}
		*field = text
		seen++
	}
	if seen != 4 {
		return f, "path, url, sha256 and mediaType are all required"
	}
	if what := checkPath(f.Path); what != "" {
		return f, what
	}
	if err := CheckURL(f.URL); err != nil {
		return f, "url " + fault.Detail(err)
	}
	var ok bool
	if f.Digest, ok = ParseDigest(digest); !ok {
		return f, "sha256 is not 64 lower-case hexadecimal digits"
	}
	if !mediaTypeFits(f.MediaType, kind) {
		return f, "mediaType is not one that this bundle may hold"
	}
	return f, ""
}

// checkPath judges a path by worker-bundle §2. Paths are exact strings: nothing is decoded or folded.
func checkPath(path string) string {
	if path == "" || len(path) > 1024 {
		return "path must have 1 to 1024 bytes"
	}
	for i := range len(path) {
		if c := path[i]; c < 0x20 || c == 0x7f || c == '\\' || c == '?' || c == '#' {
			return "path holds a backslash, question mark, number sign or control character"
		}
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return "path has an empty, . or .. segment, or a slash at an end"
		}
	}
	return ""
}

func mediaTypeFits(t string, kind Kind) bool {
	switch kind {
	case Worker:
		return moduleTypes[t]
	case Migrations:
		return t == typeSQL
	case Assets:
		main, sub, ok := strings.Cut(t, "/")
		return ok && isToken(main) && isToken(sub)
	}
	return false
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			continue
		}
		if strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

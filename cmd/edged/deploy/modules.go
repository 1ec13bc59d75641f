package deploy

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"
)

// kept are the files that stay modules of their own, by ending.
var kept = map[string]string{".txt": typeText, ".html": typeText, ".bin": typeBytes, ".wasm": typeWasm}

// refused are imports that a worker cannot have, with the reason.
var refused = map[string]string{
	".css":  "style sheets cannot be imported by a worker: serve them as assets",
	".node": "native modules cannot run in a sandbox",
}

// modules collects the text, byte and WebAssembly modules that the sources import. Safe for concurrent use: the bundler resolves in
// parallel.
type modules struct {
	mu     sync.Mutex
	byPath map[string]File // by path in the bundle
}

func newModules() *modules { return &modules{byPath: map[string]File{}} }

// ours marks a question that this plugin asks itself.
type ours struct{}

func (m *modules) plugin() api.Plugin {
	return api.Plugin{Name: "modules", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `\.(css|node)$`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			return problem(refused[filepath.Ext(args.Path)]), nil
		})
		build.OnResolve(api.OnResolveOptions{Filter: `\.(txt|html|bin|wasm)(\?module)?$`}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
			if _, again := args.PluginData.(ours); again {
				return api.OnResolveResult{}, nil
			}
			if args.Kind == api.ResolveJSRequireCall || args.Kind == api.ResolveJSRequireResolve {
				return problem("text, bytes and WebAssembly can be imported, not required"), nil
			}
			if len(args.With) > 0 {
				return problem("text, bytes and WebAssembly are imported without attributes: the file's ending tells"), nil
			}
			found := build.Resolve(strings.TrimSuffix(args.Path, "?module"), api.ResolveOptions{ // as some bundlers write it
				Importer: args.Importer, Namespace: args.Namespace, ResolveDir: args.ResolveDir, Kind: args.Kind, PluginData: ours{},
			})
			if len(found.Errors) > 0 {
				return api.OnResolveResult{Errors: found.Errors}, nil
			}
			path, why := m.take(found.Path)
			if why != "" {
				return problem(why), nil
			}
			return api.OnResolveResult{Path: "./" + path, External: true}, nil
		})
	}}
}

func problem(text string) api.OnResolveResult {
	return api.OnResolveResult{Errors: []api.Message{{Text: text}}}
}

// take reads a module and returns its path in the bundle, which only its name and bytes decide.
func (m *modules) take(file string) (path, why string) {
	content, why := readModule(file)
	if why != "" {
		return "", why
	}
	mediaType := kept[filepath.Ext(file)]
	if mediaType == typeText && !utf8.Valid(content) {
		return "", file + " is not UTF-8"
	}
	f := newFile("", mediaType, content)
	f.Path = "modules/" + f.SHA256[:digestDigits] + "-" + strings.Map(plain, filepath.Base(file))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byPath[f.Path] = f
	return f.Path, ""
}

// plain keeps what is harmless in paths and specifiers.
func plain(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
		return r
	}
	return '_'
}

func readModule(path string) (content []byte, why string) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err.Error()
	}
	defer f.Close()
	content, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, err.Error()
	}
	if len(content) > maxFileBytes {
		return nil, path + " is over 16 MiB"
	}
	return content, ""
}

func (m *modules) files() []File {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.byPath))
}

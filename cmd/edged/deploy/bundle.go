package deploy

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"edged/cmd/edged/manifest"
	"edged/internal/fault"
)

// Media types of the files that a bundle carries (module-worker §2.1).
const (
	typeModule    = "application/javascript+module"
	typeText      = "text/plain"
	typeBytes     = "application/octet-stream"
	typeWasm      = "application/wasm"
	typeSourceMap = "application/source-map+json"
)

// entrypoint is the path of the bundled module in the bundle.
const entrypoint = "main.js"

// The limits of a bundle (worker-bundle §2).
const (
	maxFileBytes  = 16 << 20
	maxTotalBytes = 128 << 20
	maxFiles      = 512
)

// Bundle makes one ES module of everything that the entry module main imports, with its source map and the text, byte
// and WebAssembly modules beside it. It returns the code's files and the bundler's warnings. dir is the manifest's directory: places are
// told relative to it, and nothing in the files depends on where it lies. An error in the sources is manifest.Faults.
func Bundle(ctx context.Context, dir, main string, handlers []string) (*FileSet, manifest.Faults, error) {
	const op = "deploy.Bundle"
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, op, err)
	}
	entry, err := filepath.Abs(main)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Invalid, op, err)
	}
	modules := newModules()
	options := buildOptions(root, entry, handlers)
	options.Plugins = []api.Plugin{modules.plugin()}
	build, cerr := api.Context(options)
	if cerr != nil {
		return nil, nil, places(dir, main, cerr.Errors)
	}
	defer build.Dispose()
	stop := context.AfterFunc(ctx, build.Cancel)
	defer stop()
	result := build.Rebuild()
	if ctx.Err() != nil {
		return nil, nil, fault.Wrap(fault.CodeOf(ctx.Err()), op, context.Cause(ctx))
	}
	if len(result.Errors) > 0 {
		return nil, nil, places(dir, main, result.Errors)
	}
	set := &FileSet{Entrypoint: entrypoint}
	for _, out := range result.OutputFiles {
		f := newFile(filepath.Base(out.Path), typeModule, out.Contents)
		if strings.HasSuffix(f.Path, ".map") {
			f.MediaType = typeSourceMap
		}
		set.Files = append(set.Files, f)
	}
	set.Files = append(set.Files, modules.files()...)
	set.sort()
	return set, places(dir, main, result.Warnings), set.check()
}

func buildOptions(root, entry string, handlers []string) api.BuildOptions {
	return api.BuildOptions{
		AbsWorkingDir: root,
		Stdin: &api.StdinOptions{
			Contents:   entrySource("./"+filepath.Base(entry), handlers),
			ResolveDir: filepath.Dir(entry),
			Sourcefile: entryName,
		},
		Outfile:        filepath.Join(root, entrypoint), // names the output; nothing is written
		AllowOverwrite: true,
		Bundle:         true,
		Format:         api.FormatESModule,
		Target:         api.ES2023,
		Platform:       api.PlatformNeutral,
		MainFields:     []string{"browser", "module", "main"},
		Conditions:     []string{"worker", "browser", "module"},
		Define:         map[string]string{"process.env.NODE_ENV": `"production"`},
		Charset:        api.CharsetUTF8,
		// Stack traces need positions; the sources themselves stay where they are.
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		LogLevel:       api.LogLevelSilent,
	}
}

// places turns the bundler's messages into faults with file and line. nil if there are none.
func places(dir, main string, messages []api.Message) manifest.Faults {
	var faults manifest.Faults
	for _, m := range messages {
		f := manifest.Fault{File: main, Text: m.Text}
		if l := m.Location; l != nil && path.Base(l.File) != entryName {
			f.File, f.Line = filepath.Join(dir, filepath.FromSlash(l.File)), l.Line
		} else if strings.HasPrefix(m.Text, "No matching export") {
			f.Text = "the module has no default export: export default { fetch(request, env, ctx) { … } }"
		}
		for _, note := range m.Notes {
			if note.Text != "" {
				f.Text += " (" + note.Text + ")"
			}
		}
		faults = append(faults, f)
	}
	return faults
}

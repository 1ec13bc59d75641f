package manifest

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"edged/internal/fault"
)

// FileName is what a manifest is called where only its directory is named.
const FileName = "worker.toml"

// maxManifestBytes bounds the file: 64 vars of 8192 characters fit, however they are escaped.
const maxManifestBytes = 4 << 20

// Manifest is one worker as its author describes it. Every value in it has passed the node's own checks.
type Manifest struct {
	File string // the manifest's own path, as it was named

	Name     string
	Main     string          // path of the entry module, "" for a static site
	Handlers []string        // in the order fetch, scheduled, queue
	Endpoint bool            // an address assigned by the node is wanted
	Domains  []string        // canonical host names, in the manifest's order
	Vars     json.RawMessage // a JSON object with sorted members, nil if there are none
	Assets   *Assets         // nil without

	Secrets   []Secret   // sorted by name
	Bindings  []Binding  // sorted by name
	Crons     []Cron     // in the manifest's order
	Consumers []Consumer // in the manifest's order

	NameLine int // where the name stands: the place of what no other line asks for
}

// Fault returns a fault at a line of this manifest, for what shows only later that it is wrong.
func (m *Manifest) Fault(line int, format string, args ...any) Fault {
	return Fault{File: m.File, Line: line, Text: fmt.Sprintf(format, args...)}
}

// Assets is the static part of a worker.
type Assets struct {
	Directory      string
	RunWorkerFirst bool
	NotFound       string  // none or single_page_application
	Files          []Asset // in ascending order of Path
}

// Asset is one static file.
type Asset struct {
	Path      string // relative POSIX path below the directory
	File      string // where its bytes are
	MediaType string // type/subtype without parameters
	Size      int64
}

// Load reads the manifest at path, which may also be the directory that holds a worker.toml, and looks at the files that
// it names. The error is Faults if the manifest is wrong, else it says why it cannot be read.
func Load(path string) (*Manifest, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, FileName)
	}
	b, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	r := parse(path, b)
	if r.tree != nil {
		r.files()
	}
	if err := r.faults.orNil(); err != nil {
		return nil, err
	}
	return &r.m, nil
}

func readBounded(path string) ([]byte, error) {
	const op = "manifest.Load"
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, err)
	}
	if len(b) > maxManifestBytes {
		return nil, fault.Newf(fault.TooLarge, op, "%s is over %d bytes", path, maxManifestBytes)
	}
	return b, nil
}

// files checks what the manifest points to, relative to its own directory.
func (r *reader) files() {
	dir := filepath.Dir(r.m.File)
	if r.m.Main != "" {
		r.m.Main = below(dir, r.m.Main)
		info, err := os.Stat(r.m.Main)
		switch {
		case err != nil:
			r.fault("/main", "main %s cannot be read: %s", r.m.Main, reason(err))
		case !info.Mode().IsRegular():
			r.fault("/main", "main %s is not a file", r.m.Main)
		}
	}
	if r.m.Assets != nil && r.m.Assets.Directory != "" {
		r.m.Assets.Directory = below(dir, r.m.Assets.Directory)
		r.assetFiles()
	}
	for i := range r.m.Bindings {
		if b := &r.m.Bindings[i]; b.MigrationsDir != "" {
			b.MigrationsDir = below(dir, b.MigrationsDir)
			r.migrationFiles(b)
		}
	}
}

func below(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// reason takes the path out of an error that is told beside its path.
func reason(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

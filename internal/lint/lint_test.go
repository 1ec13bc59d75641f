package lint

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

type pkg struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestImports  []string
	XTestImports []string
	GoFiles      []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,GoFiles", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestImportsFollowThePicture(t *testing.T) {
	for _, p := range packages(t) {
		for _, to := range p.Imports {
			if why := checkImport(p.ImportPath, to); why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, to, why)
			}
		}
	}
}

// The rules must be able to say no.
func TestCheckImport(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"edged/router", "edged/sandbox/event", true},
		{"edged/router", "edged/sandbox", false},
		{"edged/control", "edged/sandbox/event", false},
		{"edged/kv", "edged/queue", false},
		{"edged/sandbox", "edged/kv", false},
		{"edged/internal/disk", "edged/internal/fault", true},
		{"edged/internal/disk", "edged/kv", false},
		{"edged/control/rules", "edged/control", false},
		{"edged/control", "edged/control/rules", true},
		{"edged/node", "edged/control", true},
		{"edged/node", "edged/cmd/edged", false},
		{"edged/sandbox/engine", "github.com/tetratelabs/wazero/api", true},
		{"edged/sandbox", "github.com/tetratelabs/wazero", false},
		{"edged/kv", "edged/internal/testkit", false},
		{"edged/newroom", "edged/kv", false},
		{"edged/control/form", "edged/internal/cronexpr", true},
		{"edged/cron", "github.com/robfig/cron/v3", false},
	} {
		if why := checkImport(tt.from, tt.to); (why == "") != tt.ok {
			t.Errorf("%s -> %s: %q, want allowed %t", tt.from, tt.to, why, tt.ok)
		}
	}
}

func TestEveryPackageAndExportedNameIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		documented := false
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			documented = documented || f.Doc != nil
			for _, bare := range undocumented(f) {
				t.Errorf("%s/%s: %s has no doc comment", p.ImportPath, name, bare)
			}
		}
		if !documented && len(p.GoFiles) > 0 {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

func undocumented(f *ast.File) (bare []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				bare = append(bare, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
						bare = append(bare, s.Name.Name)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						bare = append(bare, s.Names[0].Name)
					}
				}
			}
		}
	}
	return bare
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if ix, ok := typ.(*ast.IndexExpr); ok {
		typ = ix.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// Style: no sleeps in tests, but inside a synctest bubble, where waiting is free.
func TestNoSleepsInTests(t *testing.T) {
	for _, p := range packages(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if src := string(b); strings.Contains(src, "time."+"Sleep(") && !strings.Contains(src, "synctest.Test(") {
				t.Errorf("%s sleeps outside a bubble", name)
			}
		}
	}
}

// Nothing committed names a registry's host or an absolute path of the machine it was written on.
func TestNoRegistryHostsOrMachinePaths(t *testing.T) {
	bad := regexp.MustCompile(`registry\.npm` + `js|proxy\.golang` + `\.org|sum\.golang` + `\.org|deb\.debian` + `\.org|/work/` + `(main|shared)`)
	cmd := exec.Command("git", "ls-files", "-co", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	for _, name := range strings.Fields(string(out)) {
		b, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if m := bad.Find(b); m != nil {
			t.Errorf("%s contains %q", name, m)
		}
	}
}

// Wire numbers of faults are unique in the program, names in a room: a word of the contract may be that of several stores.
func TestFaultNamesAreUnique(t *testing.T) {
	decl := regexp.MustCompile(`fault\.Name\(fault\.\w+, "(\w+)", (\d+)\)`)
	seen := map[string]string{}
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range decl.FindAllStringSubmatch(string(b), -1) {
				for _, key := range []string{"name " + m[1] + " in " + room(p.ImportPath), "number " + m[2]} {
					if other, dup := seen[key]; dup {
						t.Errorf("%s and %s both declare fault %s", other, path, key)
					}
					seen[key] = path
				}
			}
		}
	}
	if len(seen) == 0 {
		t.Error("no fault declarations found: the pattern is stale")
	}
}

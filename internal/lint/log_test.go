package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Style §6 for every log line of the program: a constant message without a capital or a full stop, facts as attributes with
// stable keys, none of them a name for what must not be logged; and where a human must act (Error), what to do.
func TestLogLines(t *testing.T) {
	lines := 0
	for _, p := range packages(t) {
		if room(p.ImportPath) == "internal" && strings.HasSuffix(p.ImportPath, "/lint") {
			continue
		}
		for _, name := range p.GoFiles {
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && isLogCall(call) {
					lines++
					for _, why := range logFaults(call) {
						t.Errorf("%s:%d: %s", filepath.Join(p.ImportPath, name), set.Position(call.Pos()).Line, why)
					}
				}
				return true
			})
		}
	}
	if lines < 50 {
		t.Errorf("%d log lines found: the pattern is stale", lines)
	}
}

var levels = []string{"Debug", "Info", "Warn", "Error"}

// isLogCall: a method of a level on something that is called log or Log.
func isLogCall(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(levels, method.Sel.Name) {
		return false
	}
	switch on := method.X.(type) {
	case *ast.Ident:
		return on.Name == "log"
	case *ast.SelectorExpr:
		return strings.EqualFold(on.Sel.Name, "log")
	}
	return false
}

var (
	logKey    = regexp.MustCompile(`^[a-z]+([A-Z][a-z]+)*$`)
	unlogged  = []string{"key", "token", "secret", "password", "header", "body", "value", "query", "url"}
	messageIs = regexp.MustCompile(`^[a-z][^\n]*[^.\s]$`)
)

func logFaults(call *ast.CallExpr) (faults []string) {
	message, ok := literal(call.Args[0])
	if !ok || !messageIs.MatchString(message) {
		faults = append(faults, "the message is no constant that begins with a small letter and ends without a full stop")
	}
	told := false
	for i := 1; i < len(call.Args); i++ {
		key, ok := literal(call.Args[i])
		if !ok {
			if _, attr := call.Args[i].(*ast.CallExpr); !attr {
				faults = append(faults, "an attribute has no constant key")
			}
			continue
		}
		if !logKey.MatchString(key) {
			faults = append(faults, "the key "+key+" is not written like scheduledTime")
		}
		if slices.Contains(unlogged, key) {
			faults = append(faults, "the key "+key+" names what is never logged")
		}
		if i++; key == "do" && i < len(call.Args) {
			_, told = literal(call.Args[i])
		}
	}
	if call.Fun.(*ast.SelectorExpr).Sel.Name == "Error" && !told {
		faults = append(faults, "an error asks a human to act: say what to do in a constant attribute \"do\"")
	}
	return faults
}

func literal(e ast.Expr) (string, bool) {
	if name, ok := e.(*ast.SelectorExpr); ok && (name.Sel.Name == "ReportBug" || name.Sel.Name == "CheckDisk") {
		return name.Sel.Name, true // constants of fault
	}
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// The rule must be able to say no.
func TestLogFaults(t *testing.T) {
	for text, want := range map[string]int{
		`n.log.Warn("a peer is away", "err", err, "peer", p)`:               0,
		`n.log.Error("a store is damaged", "err", err, "do", "restore it")`: 0,
		`n.log.Error("a bug", "err", err, s.Attr(), "do", fault.ReportBug)`: 0,
		`n.log.Error("a store is damaged", "err", err)`:                     1,
		`n.log.Error("a store is damaged", "err", err, "do", text)`:         1,
		`n.log.Info("A capital")`:                                           1,
		`n.log.Info("a full stop.")`:                                        1,
		`n.log.Info("about " + name)`:                                       1,
		`n.log.Info("a key", "snake_case", 1)`:                              1,
		`n.log.Info("a secret", "token", t)`:                                1,
		`n.log.Info("an attribute", name, 1)`:                               2,
		`s.opt.Log.Warn(fmt.Sprint("x"))`:                                   1,
	} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		call := e.(*ast.CallExpr)
		if got := logFaults(call); !isLogCall(call) || len(got) != want {
			t.Errorf("%s: %v, want %d faults", text, got, want)
		}
	}
}

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// upgradeFrom names the commit whose program an upgrade begins with; the one before HEAD by default.
const upgradeFrom = "UPGRADE_FROM"

// errNoHistory says why there is no program of before.
type errNoHistory struct{ why string }

func (e errNoHistory) Error() string { return e.why }

// programBefore builds the program of the commit before, once. It calls itself "before".
var programBefore = sync.OnceValues(func() (string, error) {
	rev := os.Getenv(upgradeFrom)
	named := rev != ""
	if !named {
		rev = "HEAD~1"
	}
	root, err := output("", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", err
	}
	commit, err := output(root, "git", "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if err != nil {
		if why := "the history here has no commit " + rev; !named {
			return "", errNoHistory{why + ": a shallow clone, or no clone at all"}
		}
		return "", fmt.Errorf("%s=%s: the history here has no such commit", upgradeFrom, rev)
	}
	if _, err := output(root, "git", "diff", "--quiet", commit, "--", "sandbox/prelude/*.js"); err != nil {
		return "", errNoHistory{"commit " + commit[:12] + " has another prelude: what was sealed with it does not run here and has to be deployed anew (docs/operating.md)"}
	}
	kept := filepath.Join(root, "bin", "edged-"+commit[:12]) // make clean removes it
	if _, err := os.Stat(kept); err == nil {
		return kept, nil
	}
	dir := filepath.Join(filepath.Dir(binary), "before")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := extract(root, commit, dir); err != nil {
		return "", err
	}
	if err := engineOf(root, commit, dir); err != nil {
		return "", err
	}
	// Not with -trimpath, which would build every dependency anew.
	made := filepath.Join(dir, "edged")
	if _, err = output(dir, "go", "build", "-buildvcs=false", "-ldflags", "-s -w -X main.version=before", "-o", made, "./cmd/edged"); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(made, kept+".new"); err != nil { // of another file system, then
		if err := copyFile(made, kept+".new"); err != nil {
			return "", err
		}
	}
	return kept, os.Rename(kept+".new", kept)
})

// extract puts the files of a commit into dir.
func extract(root, commit, dir string) error {
	files, write := io.Pipe()
	pack := exec.Command("git", "archive", commit)
	pack.Dir, pack.Stdout = root, write
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = files
	if err := unpack.Start(); err != nil {
		return err
	}
	err := pack.Run()
	write.CloseWithError(err)
	if werr := unpack.Wait(); err == nil {
		err = werr
	}
	return err
}

// engineOf gives the sources of a commit their engine: this tree's where the commit makes the same, else one built from the package that
// this tree has installed.
func engineOf(root, commit, dir string) error {
	const dist = "sandbox/engine/wasm/dist"
	if _, err := output(root, "git", "diff", "--quiet", commit, "--", "sandbox/engine/npm"); err != nil {
		return errNoHistory{"the commit pins another engine, which is not fetched here"}
	}
	if _, err := output(root, "git", "diff", "--quiet", commit, "--", "cmd/mkengine", "sandbox/wasmpass", "sandbox/engine/abi"); err != nil {
		_, err = output(dir, "go", "run", "./cmd/mkengine", "-package", filepath.Join(root, "sandbox/engine/npm/node_modules/quickjs-wasi"))
		return err
	}
	for _, name := range []string{"engine.json", "engine.wasm"} {
		b, err := os.ReadFile(filepath.Join(root, dist, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, dist, name), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o700)
}

// output runs a program and returns what it printed, without white space around it.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(told.String(), 2000))
	}
	return strings.TrimSpace(string(out)), nil
}

// before returns the program of the commit before, or skips the test and says why there is none.
func before(t *testing.T) string {
	t.Helper()
	if testing.Short() || len(raceFlag) > 0 {
		t.Skip("an upgrade is tested without the race detector, and not in short runs")
	}
	path, err := programBefore()
	if none, ok := err.(errNoHistory); ok {
		t.Skip("no program to upgrade from: " + none.why)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

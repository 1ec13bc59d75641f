package deploy

import (
	"os"
	"path/filepath"
	"testing"

	"edged/cmd/edged/manifest"
)

// worker-aggregate rule 6: every example we publish has a sound manifest, and what can be bundled here is.
func TestExamples(t *testing.T) {
	const root = "../../../examples"
	list, err := filepath.Glob(filepath.Join(root, "*", manifest.FileName))
	if err != nil || len(list) < 4 {
		t.Fatalf("examples %q, %v", list, err)
	}
	for _, file := range list {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
				if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
					t.Skip("its npm packages are not installed")
				}
			}
			m, err := manifest.Load(dir)
			if err != nil {
				if _, gone := os.Stat(filepath.Join(dir, "dist")); gone != nil && hasBuild(dir) {
					t.Skip("its site is not built")
				}
				t.Fatal(err)
			}
			if m.Main == "" {
				return
			}
			set, warnings, err := Bundle(t.Context(), dir, m.Main, m.Handlers)
			if err != nil || len(warnings) > 0 || set.Files[0].Path != entrypoint {
				t.Errorf("bundle: %v, warnings %v", err, warnings)
			}
		})
	}
}

// hasBuild reports whether an example is a site that a bundler makes.
func hasBuild(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "index.html"))
	return err == nil
}

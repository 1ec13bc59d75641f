package manifest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// The limits of an asset bundle (worker-bundle §2).
const (
	maxAssetFiles = 512
	maxAssetBytes = 16 << 20
	maxAssetsAll  = 128 << 20
	maxAssetPath  = 1024
)

// assetFiles lists the directory. Names that begin with a dot stay at home, but for .well-known: they are the tools' own
// files, and publishing one by accident can publish a secret.
func (r *reader) assetFiles() {
	const at = "/assets/directory"
	a := r.m.Assets
	info, err := os.Stat(a.Directory)
	if err != nil {
		r.fault(at, "directory %s cannot be read: %s (is the site built?)", a.Directory, reason(err))
		return
	}
	if !info.IsDir() {
		r.fault(at, "%s is not a directory", a.Directory)
		return
	}
	err = filepath.WalkDir(a.Directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") && d.Name() != ".well-known" && path != a.Directory {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.IsDir() {
			return nil
		}
		if !r.asset(path, d) {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		r.fault(at, "directory %s cannot be read: %v", a.Directory, err)
		return
	}
	r.assetTotals()
}

// asset takes in one file; false ends the walk.
func (r *reader) asset(file string, d fs.DirEntry) bool {
	const at = "/assets/directory"
	a := r.m.Assets
	if len(a.Files) == maxAssetFiles {
		r.fault(at, "directory %s has more than %d files", a.Directory, maxAssetFiles)
		return false
	}
	rel, err := filepath.Rel(a.Directory, file)
	if err != nil {
		r.fault(at, "asset %s: %v", file, err)
		return true
	}
	path := filepath.ToSlash(rel)
	info, err := d.Info()
	switch {
	case err != nil:
		r.fault(at, "asset %s cannot be read: %s", file, reason(err))
	case !info.Mode().IsRegular():
		r.fault(at, "asset %s is no regular file (links are not followed)", file)
	case info.Size() > maxAssetBytes:
		r.fault(at, "asset %s has %d bytes, allowed are %d", file, info.Size(), maxAssetBytes)
	default:
		if why := unfitPath(path); why != "" {
			r.fault(at, "asset %.200q: the path %s", path, why)
			return true
		}
		a.Files = append(a.Files, Asset{Path: path, File: file, MediaType: mediaType(path), Size: info.Size()})
	}
	return true
}

func (r *reader) assetTotals() {
	const at = "/assets/directory"
	a := r.m.Assets
	slices.SortFunc(a.Files, func(x, y Asset) int { return strings.Compare(x.Path, y.Path) })
	var total int64
	index := false
	for _, f := range a.Files {
		total += f.Size
		index = index || f.Path == "index.html"
	}
	if total > maxAssetsAll {
		r.fault(at, "directory %s has %d bytes, allowed are %d", a.Directory, total, maxAssetsAll)
	}
	if len(a.Files) == 0 {
		r.fault(at, "directory %s has no files (is the site built?)", a.Directory)
	} else if a.NotFound == "single_page_application" && !index {
		r.fault("/assets/not_found", "single_page_application needs index.html in the root of %s", a.Directory)
	}
}

// unfitPath says why a file's name cannot be a path of a bundle (worker-bundle §2), "" if it can.
func unfitPath(path string) string {
	if !utf8.ValidString(path) {
		return "is not UTF-8"
	}
	if len(path) > maxAssetPath {
		return "is longer than 1024 bytes"
	}
	for i := range len(path) {
		switch c := path[i]; {
		case c < 0x20 || c == 0x7f:
			return "holds a control character"
		case c == '\\' || c == '?' || c == '#':
			return "holds " + string(rune(c))
		}
	}
	return ""
}

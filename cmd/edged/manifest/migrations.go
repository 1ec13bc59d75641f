package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Migration is one SQL file of a database, applied once and in its place.
type Migration struct {
	Path string // its name in the directory
	File string // where its bytes are
	Size int64
}

// migrationFiles lists the .sql files of a directory in the order of their names; other files are not looked at. The limits
// are those of sql §7.
func (r *reader) migrationFiles(b *Binding) {
	at := "/bindings/" + escape(b.Name) + "/migrations"
	entries, err := os.ReadDir(b.MigrationsDir)
	if err != nil {
		r.fault(at, "directory %s cannot be read: %s", b.MigrationsDir, reason(err))
		return
	}
	var total int64
	for _, e := range entries { // in the order of their names
		if !strings.HasSuffix(e.Name(), ".sql") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		m := Migration{Path: e.Name(), File: filepath.Join(b.MigrationsDir, e.Name())}
		info, err := e.Info()
		switch {
		case err != nil:
			r.fault(at, "migration %s cannot be read: %s", m.File, reason(err))
			continue
		case !info.Mode().IsRegular():
			r.fault(at, "migration %s is no regular file (links are not followed)", m.File)
			continue
		case info.Size() > maxAssetBytes:
			r.fault(at, "migration %s has %d bytes, allowed are %d", m.File, info.Size(), maxAssetBytes)
			continue
		}
		m.Size = info.Size()
		total += m.Size
		r.migrationText(at, &m)
		b.Migrations = append(b.Migrations, m)
	}
	slices.SortFunc(b.Migrations, func(x, y Migration) int { return strings.Compare(x.Path, y.Path) })
	switch n := len(b.Migrations); {
	case n == 0:
		r.fault(at, "directory %s has no .sql files", b.MigrationsDir)
	case n > maxAssetFiles:
		r.fault(at, "directory %s has %d .sql files, allowed are %d", b.MigrationsDir, n, maxAssetFiles)
	case total > maxAssetsAll:
		r.fault(at, "directory %s has %d bytes of .sql files, allowed are %d", b.MigrationsDir, total, maxAssetsAll)
	}
}

func (r *reader) migrationText(at string, m *Migration) {
	text, err := os.ReadFile(m.File) // its size was looked at
	switch {
	case err != nil:
		r.fault(at, "migration %s cannot be read: %s", m.File, reason(err))
	case !utf8.Valid(text):
		r.fault(at, "migration %s is not UTF-8", m.File)
	case bytes.HasPrefix(text, []byte("\ufeff")):
		r.fault(at, "migration %s begins with a byte order mark", m.File)
	}
	if why := unfitPath(m.Path); why != "" {
		r.fault(at, "migration %.200q: the path %s", m.Path, why)
	}
}

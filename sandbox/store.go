package sandbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"edged/internal/fault"
	"edged/sandbox/engine"
	"edged/sandbox/engine/userwasm"
	"edged/sandbox/modgraph"
	"edged/sandbox/prelude"
)

// The image store is a cache: every file in it can be made again, so a damaged or foreign one is dropped and made anew.
const (
	imageSuffix = ".image"
	imageLayout = "3" // changes with everything that an image depends on and that its key does not cover yet
)

// openStore makes the folder. Images are memory that this process will run: nobody else may write there.
func (s *Sandbox) openStore() error {
	if s.opt.ImageDir == "" {
		return nil
	}
	if err := os.MkdirAll(s.opt.ImageDir, 0o700); err != nil {
		return fault.Wrap(fault.Unavailable, "sandbox.New", err)
	}
	st, err := os.Stat(s.opt.ImageDir)
	if err != nil {
		return fault.Wrap(fault.Unavailable, "sandbox.New", err)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fault.Newf(fault.Invalid, "sandbox.New", "the image folder %s must be usable by its owner alone, mode 0700", s.opt.ImageDir)
	}
	return nil
}

// imagePath names the file of a version's image after all that the image depends on.
func (s *Sandbox) imagePath(spec *Spec, graph *modgraph.Graph) string {
	source := spec.SourceDigest
	if source == "" {
		sum := graph.Digest()
		source = hex.EncodeToString(sum[:])
	}
	handlers := slices.Sorted(slices.Values(spec.Handlers))
	h := sha256.New()
	for _, part := range []string{imageLayout, s.engine.Digest(), prelude.Digest(), spec.Tenant, spec.UID, source, graph.Entrypoint(),
		strings.Join(handlers, ","), fmt.Sprint(s.opt.MaxMemoryBytes), fmt.Sprint(s.opt.Isolation), fmt.Sprint(roomBytes)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return filepath.Join(s.opt.ImageDir, hex.EncodeToString(h.Sum(nil))+imageSuffix)
}

// image returns the image of a version: the stored one, or a new one, which it stores.
func (s *Sandbox) image(ctx context.Context, spec *Spec, graph *modgraph.Graph, library *userwasm.Library) (*engine.Image, error) {
	m := s.opt.Metrics
	path := ""
	if s.opt.ImageDir != "" {
		path = s.imagePath(spec, graph)
		img, err := s.engine.LoadImage(path)
		if err == nil {
			m.builds[buildStored].Inc()
			now := time.Now()
			_ = os.Chtimes(path, now, now) // only trimStore's choice depends on it
			return img, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			s.opt.Log.Warn("stored image not usable, building it anew", "err", err, "version", spec.UID)
			_ = os.Remove(path) // if it stays it is overwritten
		}
	}
	start := time.Now()
	img, err := s.build(ctx, *spec, graph, library)
	if err != nil {
		m.builds[buildFailed].Inc()
		return nil, err
	}
	m.builds[buildMade].Inc()
	m.buildTime.Observe(time.Since(start).Seconds())
	if path == "" {
		return img, nil
	}
	stored, err := s.save(img, path)
	if err != nil {
		s.opt.Log.Warn("image not stored", "err", err, "version", spec.UID) // the next start builds it again
		return img, nil
	}
	img.Close()
	return stored, nil
}

// save stores an image and returns it as it is there: of a stored image only what is in use takes memory.
func (s *Sandbox) save(img *engine.Image, path string) (*engine.Image, error) {
	if err := img.Save(path); err != nil {
		return nil, err
	}
	return s.engine.LoadImage(path)
}

// trimStore deletes the images that were not opened for longest until the rest fits.
func (s *Sandbox) trimStore() {
	if s.opt.ImageDir == "" {
		return
	}
	type file struct {
		path string
		used time.Time
		size int64
	}
	list, err := os.ReadDir(s.opt.ImageDir)
	if err != nil {
		s.opt.Log.Warn("image store not readable", "err", err)
		return
	}
	var files []file
	var total int64
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !strings.HasSuffix(e.Name(), imageSuffix) {
			continue // gone meanwhile, or not ours
		}
		files = append(files, file{filepath.Join(s.opt.ImageDir, e.Name()), info.ModTime(), info.Size()})
		total += info.Size()
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.path, b.path)) })
	for _, f := range files {
		if total <= s.opt.MaxImageStoreBytes {
			return
		}
		if err := os.Remove(f.path); err == nil {
			total -= f.size
		}
	}
}

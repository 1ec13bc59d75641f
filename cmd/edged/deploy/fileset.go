package deploy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"edged/cmd/edged/manifest"
	"edged/control/client"
	"edged/internal/fault"
)

// digestDigits is how much of a digest names have in them.
const digestDigits = 12

// File is one file of a bundle.
type File struct {
	Path      string
	MediaType string
	SHA256    string // lower-case hex of its bytes
	Size      int64

	content []byte // nil if the bytes are in source
	source  string
}

func newFile(path, mediaType string, content []byte) File {
	sum := sha256.Sum256(content)
	return File{Path: path, MediaType: mediaType, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content)), content: content}
}

// read returns the bytes, at most 16 MiB; an error if they are no longer those that were hashed.
func (f *File) read() ([]byte, error) {
	if f.source == "" {
		return f.content, nil
	}
	content, why := readModule(f.source)
	if why != "" {
		return nil, fault.New(fault.Invalid, "deploy.read", why)
	}
	if again := newFile("", "", content); again.SHA256 != f.SHA256 {
		return nil, fault.Newf(fault.Conflict, "deploy.read", "%s changed while it was being deployed", f.source)
	}
	return content, nil
}

// FileSet is what a WorkerBundle or a StaticAssetBundle holds.
type FileSet struct {
	Entrypoint string // "" for assets
	Files      []File // in ascending order of Path
}

// assetSet hashes the files of a static site, one at a time.
func assetSet(a *manifest.Assets) (*FileSet, error) {
	set := &FileSet{}
	for _, asset := range a.Files {
		f := File{Path: asset.Path, MediaType: asset.MediaType, source: asset.File}
		h := sha256.New()
		src, err := os.Open(asset.File)
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, "deploy.assets", err)
		}
		f.Size, err = io.Copy(h, src)
		src.Close()
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, "deploy.assets", err)
		}
		f.SHA256 = hex.EncodeToString(h.Sum(nil))
		set.Files = append(set.Files, f)
	}
	set.sort()
	return set, set.check()
}

func (s *FileSet) sort() {
	slices.SortFunc(s.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}

// check holds the set to the limits of worker-bundle §2.
func (s *FileSet) check() error {
	const op = "deploy.bundle"
	if len(s.Files) > maxFiles {
		return fault.Newf(fault.TooLarge, op, "the bundle has %d files, allowed are %d", len(s.Files), maxFiles)
	}
	for _, f := range s.Files {
		if f.Size > maxFileBytes {
			return fault.Newf(fault.TooLarge, op, "%s has %d bytes, allowed are %d", f.Path, f.Size, maxFileBytes)
		}
	}
	if total := s.Bytes(); total > maxTotalBytes {
		return fault.Newf(fault.TooLarge, op, "the bundle has %d bytes, allowed are %d", total, maxTotalBytes)
	}
	return nil
}

// Bytes returns the size of all files together.
func (s *FileSet) Bytes() (n int64) {
	for _, f := range s.Files {
		n += f.Size
	}
	return n
}

// Digest identifies the content wherever it is uploaded to: paths, media types and bytes, and the entrypoint.
func (s *FileSet) Digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", s.Entrypoint)
	for _, f := range s.Files {
		fmt.Fprintf(h, "%q %q %s\n", f.Path, f.MediaType, f.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil))
}

type manifestFile struct {
	Path      string `json:"path"`
	URL       string `json:"url"`
	SHA256    string `json:"sha256"`
	MediaType string `json:"mediaType"`
}

// manifest renders the document that lists the files (worker-bundle §2), with where this node would hold them.
func (s *FileSet) manifest(c *client.Client) ([]byte, error) {
	doc := struct {
		Entrypoint string         `json:"entrypoint,omitempty"`
		Files      []manifestFile `json:"files"`
	}{Entrypoint: s.Entrypoint}
	for _, f := range s.Files {
		doc.Files = append(doc.Files, manifestFile{f.Path, c.ArtifactAt(f.SHA256).URL, f.SHA256, f.MediaType})
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "deploy.manifest", err)
	}
	if len(b) > 1<<20 {
		return nil, fault.Newf(fault.TooLarge, "deploy.manifest", "the list of files has %d bytes, allowed are %d", len(b), 1<<20)
	}
	return b, nil
}

// same reports whether a Resource's observed content is this set.
func (s *FileSet) same(observed json.RawMessage) bool {
	var o struct {
		Entrypoint string
		Files      []struct{ Path, SHA256, MediaType string }
	}
	if json.Unmarshal(observed, &o) != nil || o.Entrypoint != s.Entrypoint || len(o.Files) != len(s.Files) {
		return false
	}
	for i, f := range s.Files {
		if g := o.Files[i]; g.Path != f.Path || g.SHA256 != f.SHA256 || g.MediaType != f.MediaType {
			return false
		}
	}
	return true
}

package table

import "io"

// Asset is one file of a version's bundle.
type Asset struct {
	MediaType string // exactly the manifest's, sent as Content-Type
	Size      int64
	// Open returns the bytes from the start; the caller closes it. An *os.File is sent without a copy through this
	// process. It is called by any goroutine, for every response.
	Open func() (io.ReadCloser, error)
}

// Assets maps manifest paths to files. Immutable.
type Assets map[string]*Asset

// AssetName returns the path in the manifest of the file that Asset has found under this key.
func (v *Version) AssetName(key []byte) string {
	if v.Assets[string(key)] == nil {
		return root
	}
	return string(key)
}

// root is what a single-page application answers with where nothing else matches.
const root = "index.html"

// Asset runs the asset stage for a path (query excluded): the file of exactly this key, else the application's root if
// the path was searchable, else nil (static-assets §§1-3). scratch is overwritten; it is returned for reuse.
func (v *Version) Asset(path, scratch []byte) (_ *Asset, _ []byte) {
	if v.Assets == nil {
		return nil, scratch
	}
	key, searchable := AppendAssetKey(scratch[:0], path)
	if !searchable {
		return nil, key
	}
	a := v.Assets[string(key)]
	if a == nil && v.SPA {
		a = v.Assets[root]
	}
	return a, key
}

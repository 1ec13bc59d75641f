package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"edged/sandbox/engine/abi"
)

// maxEngineBytes is far above the pinned file; it bounds what a wrong file can make us read.
const maxEngineBytes = 16 << 20

// readPackage returns the engine out of the package at path, a folder or a .tgz, if it is the pinned one.
func readPackage(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no package at %s: run `make engine`, or set %s to a copy of %s %s (a folder or its .tgz)",
			path, packageVariable, abi.PackageName, abi.PackageVersion)
	}
	if err != nil {
		return nil, err
	}
	read := fromArchive
	if info.IsDir() {
		read = fromFolder
	}
	code, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if sum := sha256.Sum256(code); hex.EncodeToString(sum[:]) != abi.PackageSHA256 {
		return nil, fmt.Errorf("%s: %s has sha256 %x, but %s %s is pinned as %s: this is another version or a changed file",
			path, abi.PackageFile, sum, abi.PackageName, abi.PackageVersion, abi.PackageSHA256)
	}
	return code, nil
}

func fromFolder(path string) ([]byte, error) {
	f, err := os.Open(filepath.Join(path, abi.PackageFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f)
}

func fromArchive(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("neither a folder nor a .tgz: %w", err)
	}
	// The other files of the package are a few times smaller than the engine.
	archive := tar.NewReader(io.LimitReader(z, 4*maxEngineBytes))
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the archive has no package/%s", abi.PackageFile)
		}
		if err != nil {
			return nil, err
		}
		if h.Name == "package/"+abi.PackageFile {
			return readBounded(archive)
		}
	}
}

func readBounded(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxEngineBytes+1))
	if err == nil && len(b) > maxEngineBytes {
		err = fmt.Errorf("%s is over %d bytes", abi.PackageFile, maxEngineBytes)
	}
	return b, err
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"edged/sandbox/engine/wasm"
)

// write puts engine and manifest into dir, unless they are there already. The manifest goes last: a crash in between
// leaves a pair that does not match, which the program refuses.
func write(dir string, res result) (wrote bool, err error) {
	manifest, err := json.MarshalIndent(res.manifest, "", "  ")
	if err != nil {
		return false, err
	}
	manifest = append(manifest, '\n')
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false, err
	}
	code, err := replace(filepath.Join(dir, wasm.EngineFile), res.code)
	if err != nil {
		return false, err
	}
	man, err := replace(filepath.Join(dir, wasm.ManifestFile), manifest)
	return code || man, err
}

// replace gives a file its content in one step; it reports false if the file had it already.
func replace(path string, content []byte) (bool, error) {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, content) {
		return false, nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".mkengine-*") // the dot keeps it out of the embedded folder
	if err != nil {
		return false, err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return false, err
	}
	return true, os.Rename(tmp.Name(), path)
}

// Package wasm carries the built JavaScript engine inside the program. Its bytes are made by `make engine` in the
// folder dist, which is not committed but for a placeholder: without it the package still compiles, and says at run
// time what is missing.
package wasm

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"

	"edged/internal/fault"
	"edged/sandbox/engine/abi"
)

// Names of the files in dist.
const (
	EngineFile   = "engine.wasm"
	ManifestFile = "engine.json"
)

// Without "all:", so that a temporary file, whose name starts with a dot, is never embedded.
//
//go:embed dist
var dist embed.FS

// A Manifest says what a built engine was made of.
type Manifest struct {
	Package       string `json:"package"`
	Version       string `json:"version"`
	PackageSHA256 string `json:"packageSha256"` // of the engine as the package ships it
	EngineSHA256  string `json:"engineSha256"`  // of the engine as built; images are keyed by it
	ABI           string `json:"abi"`           // abi.Digest at build time
	HostEntry     uint32 `json:"hostEntry"`     // table index of the host function entry
	Countdown     int32  `json:"countdown"`     // what the loop counter is refilled to
}

// Engine returns the engine's bytes, which the caller owns, and its manifest. The error carries fault.Unavailable and
// says which command builds the engine, or builds it anew after a change. Safe for concurrent use.
func Engine() ([]byte, Manifest, error) { return load(dist) }

func load(files fs.FS) ([]byte, Manifest, error) {
	const op = "wasm.Engine"
	text, err := fs.ReadFile(files, "dist/"+ManifestFile)
	if err != nil {
		return nil, Manifest{}, fault.New(fault.Unavailable, op, "the JavaScript engine is not built: run `make engine`, then build this program again")
	}
	code, codeErr := fs.ReadFile(files, "dist/"+EngineFile)
	var man Manifest
	err = json.Unmarshal(text, &man)
	sum := sha256.Sum256(code)
	if codeErr != nil || err != nil || man.ABI != abi.Digest() || man.EngineSHA256 != hex.EncodeToString(sum[:]) {
		return nil, Manifest{}, fault.New(fault.Unavailable, op, "the JavaScript engine was built for another version of this program: run `make engine`, then build this program again")
	}
	return code, man, nil
}

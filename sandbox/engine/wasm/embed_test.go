package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"edged/internal/fault"
	"edged/sandbox/engine/abi"
)

func built(t *testing.T, code string, change func(*Manifest)) fstest.MapFS {
	t.Helper()
	sum := sha256.Sum256([]byte("engine"))
	man := Manifest{ABI: abi.Digest(), EngineSHA256: hex.EncodeToString(sum[:]), HostEntry: 7}
	if change != nil {
		change(&man)
	}
	text, err := json.Marshal(man)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		"dist/" + ManifestFile: {Data: text},
		"dist/" + EngineFile:   {Data: []byte(code)},
	}
}

// A clone without the engine compiles; what it lacks, or what does not fit, is told with the command that mends it.
func TestLoadTellsWhatToRun(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"not built":         {"dist/placeholder.txt": {}},
		"another abi":       built(t, "engine", func(m *Manifest) { m.ABI = "other" }),
		"half written":      built(t, "engine of before", nil),
		"without its bytes": {"dist/" + ManifestFile: {Data: []byte("{}")}},
		"broken manifest":   {"dist/" + ManifestFile: {Data: []byte("{")}, "dist/" + EngineFile: {}},
	} {
		_, _, err := load(files)
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "make engine") {
			t.Errorf("%s: %v", name, err)
		}
	}
	code, man, err := load(built(t, "engine", nil))
	if err != nil || string(code) != "engine" || man.HostEntry != 7 {
		t.Errorf("load = %q, %v, %v", code, man, err)
	}
}

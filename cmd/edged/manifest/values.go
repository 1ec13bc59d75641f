package manifest

import (
	"errors"
	"fmt"
	"os"

	"github.com/pelletier/go-toml/v2"

	"edged/internal/fault"
)

// maxValuesBytes bounds a file of secret values.
const maxValuesBytes = 1 << 20

// ReadValues reads a file of secret values: TOML with nothing but strings at the top, NAME = "value". What it says is wrong
// names the line and never shows any of the file. Names that nobody asks for are no fault: one file may serve several workers.
func ReadValues(path string) (map[string]string, error) {
	const op = "manifest.ReadValues"
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, err)
	}
	if info.Size() > maxValuesBytes {
		return nil, fault.Newf(fault.TooLarge, op, "%s is over %d bytes", path, maxValuesBytes)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, op, err)
	}
	var tree map[string]any
	if err := toml.Unmarshal(b, &tree); err != nil {
		line := 0
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ = at.Position()
		}
		return nil, Faults{{File: path, Line: line, Text: "is no TOML: one NAME = \"value\" a line is expected"}}
	}
	values, x := map[string]string{}, readLines(b)
	var faults Faults
	for name, val := range tree {
		text, ok := val.(string)
		switch {
		case !ok:
			faults = append(faults, Fault{File: path, Line: x.of("/" + escape(name)), Text: fmt.Sprintf("%.80s must be a string", name)})
		case text == "":
			faults = append(faults, Fault{File: path, Line: x.of("/" + escape(name)), Text: fmt.Sprintf("%.80s is empty", name)})
		default:
			values[name] = text
		}
	}
	return values, faults.orNil()
}

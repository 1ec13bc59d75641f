package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"edged/internal/disk"
	"edged/internal/fault"
)

// Encode renders a plan. content is the part of encoded that says what to serve, everything but the index: plans that
// serve the same have equal content.
func (p *Plan) Encode() (encoded, content []byte, err error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, nil, fault.Wrap(fault.Internal, "plan.Encode", err)
	}
	encoded = b.Bytes()
	return encoded, encoded[bytes.Index(encoded, []byte(`"hosts":`)):], nil
}

// SaveEncoded replaces the plan file at path, whole or not at all, and returns when it is durable.
func SaveEncoded(path string, encoded []byte) error {
	return fault.Wrap(fault.Unavailable, "plan.Save", disk.WriteFile(path, encoded, 0o600))
}

// Load reads the last plan that was saved; nil without an error if there is none. A newer format is a Conflict.
func Load(path string) (*Plan, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, "plan.Load", err)
	}
	p := new(Plan)
	if err := json.Unmarshal(raw, p); err != nil {
		return nil, fault.Wrap(fault.Invalid, "plan.Load", fmt.Errorf("%s: %w", path, err))
	}
	if p.Format > FormatVersion {
		return nil, fault.Newf(fault.Conflict, "plan.Load", "%s has format %d, this program knows %d", path, p.Format, FormatVersion)
	}
	return p, nil
}

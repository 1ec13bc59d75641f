package artifact

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"edged/internal/fault"
)

// Credential is a header that one operator-configured origin is asked with (worker-bundle §3). It prints without its value.
type Credential struct {
	Origin string // exact https origin, one of Options.Origins
	Header string // like Authorization
	Value  string
}

// String hides the value.
func (c Credential) String() string { return c.Origin + " " + c.Header }

// GoString hides the value.
func (c Credential) GoString() string { return c.String() }

// LogValue hides the value.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// forbidden are headers that say something else than who asks.
var forbidden = []string{"host", "accept-encoding", "content-length", "transfer-encoding", "connection", "range", "cookie", "user-agent"}

// check returns the origin in canonical form.
func (c Credential) check(origins []string) (string, error) {
	text, ok := originOf(c.Origin + "/")
	switch {
	case !ok:
		return "", fmt.Errorf("credential of %s: that is not an https origin without a path", c.Origin)
	case !slices.Contains(origins, text):
		return "", fmt.Errorf("credential of %s: that is not one of the artifact origins", c.Origin)
	case !httpguts.ValidHeaderFieldName(c.Header) || slices.Contains(forbidden, strings.ToLower(c.Header)):
		return "", fmt.Errorf("credential of %s: %q cannot be sent", c.Origin, c.Header)
	case c.Value == "" || !httpguts.ValidHeaderFieldValue(c.Value):
		return "", fmt.Errorf("credential of %s: its value cannot be sent", c.Origin)
	}
	return text, nil
}

// maxCredentials bounds a file of them, in bytes.
const maxCredentials = 1 << 20

// ReadCredentials reads a file of credentials, one a line: origin, a space, the header's name, a colon, its value. Empty
// lines and lines that start with # mean nothing. The file must be readable for its owner alone. No error shows a value.
func ReadCredentials(path string) ([]Credential, error) {
	const op = "artifact.ReadCredentials"
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, op, "credentials: %v", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fault.Newf(fault.Invalid, op, "%s has mode %v: make it readable for its owner alone (0600)", path, info.Mode().Perm())
	}
	if info.Size() > maxCredentials {
		return nil, fault.Newf(fault.Invalid, op, "%s has more than %d bytes", path, maxCredentials)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, op, "credentials: %v", err)
	}
	var out []Credential
	var faults []error
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		origin, rest, ok := strings.Cut(line, " ")
		header, value, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 {
			faults = append(faults, fmt.Errorf("%s:%d: want ORIGIN HEADER: VALUE", path, number))
			continue
		}
		out = append(out, Credential{origin, strings.TrimSpace(header), strings.TrimSpace(value)})
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fault.New(fault.Invalid, op, err.Error())
	}
	return out, nil
}

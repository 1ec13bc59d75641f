package gossip

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"edged/internal/fault"
)

// maxKeys is how many keys a file may hold: the one in use and those before or after it while they are changed.
const maxKeys = 4

// readKeys reads a key file: one key a line, base64 of 32 random bytes. The first encrypts, all decrypt. Empty lines and lines
// that begin with # are skipped. No key is ever part of an error.
func readKeys(name string) ([][]byte, error) {
	const op = "gossip.Open"
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fault.Newf(fault.Invalid, op, "cannot read gossip key file %s", name)
	}
	var keys [][]byte
	for i, line := range strings.Split(string(b), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != 32 || len(keys) == maxKeys {
			return nil, fault.New(fault.Invalid, op, fmt.Sprintf("gossip key file %s, line %d: want up to %d lines of base64 of 32 bytes", name, i+1, maxKeys))
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fault.Newf(fault.Invalid, op, "gossip key file %s holds no key", name)
	}
	return keys, nil
}

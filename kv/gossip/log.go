package gossip

import (
	"strings"
)

// Refusal says why something that arrived was refused.
type Refusal uint8

// The refusals.
const (
	Key      Refusal = iota + 1 // the fleet's keys do not open it: a wrong key, or garbage
	Form                        // the keys open it, but it cannot be read
	Stranger                    // its node is not a member under the epoch that it tells
)

// logWriter takes memberlist's lines. memberlist tells in its log alone what it could not open: neither its delegates, its events
// nor its metrics do. TestBell holds that its words for both, packets and streams, are known here.
type logWriter struct{ opt Options }

// Write implements io.Writer.
func (w logWriter) Write(p []byte) (int, error) {
	line := strings.TrimSpace(string(p))
	if unopened(line) {
		w.opt.Refused(Key, "a packet or stream that the fleet's keys do not open")
	}
	w.opt.Log.Debug("gossip", "message", line)
	return len(p), nil
}

// unopened reports whether memberlist says that it could not open something that it received.
func unopened(line string) bool {
	if strings.Contains(line, "Decrypt packet failed") || strings.Contains(line, "label") && strings.Contains(line, "[ERR]") {
		return true
	}
	_, why, ok := strings.Cut(line, "failed to receive: ")
	return ok && (strings.HasPrefix(why, "no installed keys") || strings.HasPrefix(why, "encryption is configured but") ||
		strings.HasPrefix(why, "unsupported encryption version") || strings.HasPrefix(why, "payload is too small") ||
		strings.HasPrefix(why, "remote node state is larger"))
}

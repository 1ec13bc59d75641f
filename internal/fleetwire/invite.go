package fleetwire

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"edged/internal/fault"
)

const (
	invitePrefix = "edged_invite_"
	maxInvite    = 1 << 10 // bytes of the text
	maxWord      = 128     // bytes of an ID or a secret
)

// Invite lets one node join one fleet once. Printing one shows its ID alone; Text shows all.
type Invite struct {
	CA     string // pki.Fingerprint of the fleet's root: whom the new node may trust
	ID     string // letters, digits, "-" and "_", at most 128
	Secret string // as ID
}

type inviteJSON struct {
	CA     string `json:"ca"`
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

// Text returns the form that an operator hands to the new node. It holds the secret.
func (i Invite) Text() string {
	b, _ := json.Marshal(inviteJSON(i)) // three strings
	return invitePrefix + base64.RawURLEncoding.EncodeToString(b)
}

// Format prints the ID whatever the verb, so that no log or error shows the secret.
func (i Invite) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "invite %.128q", i.ID) }

// MarshalJSON is Format for JSON: an invite is passed on by Text alone.
func (i Invite) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(i)) }

// ParseInvite reads what Text wrote, and white space around it. Anything else is Invalid; the error holds nothing of the text,
// which may be another secret.
func ParseInvite(text string) (Invite, error) {
	invalid := func(why string) (Invite, error) {
		return Invite{}, fault.New(fault.Invalid, "fleetwire.ParseInvite", "the invite is not one that \"edged fleet invite\" printed: "+why)
	}
	if len(text) > maxInvite {
		return invalid("it is too long")
	}
	coded, ok := strings.CutPrefix(strings.TrimSpace(text), invitePrefix)
	if !ok {
		return invalid("it does not begin with " + invitePrefix)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	var w inviteJSON
	if err != nil || json.Unmarshal(b, &w) != nil {
		return invalid("it is damaged")
	}
	sum, err := hex.DecodeString(w.CA)
	switch {
	case err != nil || len(sum) != 32 || strings.ToLower(w.CA) != w.CA:
		return invalid("it names no authority")
	case !word(w.ID) || !word(w.Secret):
		return invalid("its ID or secret is damaged")
	}
	return Invite(w), nil
}

func word(s string) bool {
	if s == "" || len(s) > maxWord {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

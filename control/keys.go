package control

import (
	"path/filepath"
	"slices"
	"sync"

	"edged/control/plan"
	"edged/control/seal"
	"edged/internal/disk"
	"edged/internal/fault"
)

// Keys open the secrets of a plan on a member that has no control room. Safe for concurrent use.
type Keys struct {
	secrets *secrets

	mu   sync.Mutex
	used map[string][]string // ids of the keys that a version's secrets are sealed with
}

// OpenKeys reads the node key file of a data directory, which KeepRing wrote.
func OpenKeys(dataDir string) (*Keys, error) {
	s, err := openSecrets(dataDir)
	return &Keys{secrets: s, used: map[string][]string{}}, err
}

// Secrets is Control's.
func (k *Keys) Secrets(v *plan.Version) (map[string]string, error) { return k.secrets.ofVersion(v) }

// Note takes over what a delta changes in the plan.
func (k *Keys) Note(d *plan.Delta) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, v := range d.Versions.Put {
		var ids []string
		for _, box := range v.Secrets {
			ids = append(ids, seal.Box(box).KeyID())
		}
		k.used[v.UID] = ids
	}
	for _, uid := range d.Versions.Gone {
		delete(k.used, uid)
	}
}

// Lacks reports whether a secret of the plan is sealed with a key that is not here.
func (k *Keys) Lacks() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	have := k.secrets.ring.IDs()
	for _, ids := range k.used {
		if slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(have, id) }) {
			return true
		}
	}
	return false
}

// Take makes the keys that another member sent those of this node, durably. Keys that are not among them, and that no secret of the plan is
// sealed with, are forgotten.
func (k *Keys) Take(raw []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.secrets.ring.Take(raw, func(id string) bool {
		for _, ids := range k.used {
			if slices.Contains(ids, id) {
				return true
			}
		}
		return false
	})
}

// KeepRing writes the node key file that the fleet gave to a new member, whose data directory holds nothing that was sealed.
func KeepRing(dataDir string, raw []byte) error {
	if err := seal.Check(raw); err != nil {
		return fault.Newf(fault.Unavailable, "control.KeepRing", "the fleet did not send the keys of secrets: %v", err)
	}
	return disk.WriteFile(filepath.Join(dataDir, keyFile), raw, 0o600)
}

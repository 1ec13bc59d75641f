package rules

import (
	"fmt"
	"strings"
)

// Reason is the closed list of causes that a condition may give.
type Reason string

// The reasons.
const (
	Provisioning     Reason = "Provisioning"
	LacksCapability  Reason = "UnsupportedCapability"
	DependencyAbsent Reason = "DependencyMissing"
	ExternalChange   Reason = "ExternalChange"
)

// Cause says why something is not ready.
type Cause struct {
	Reason  Reason `json:"reason"`
	Text    string `json:"text"`
	Unknown bool   `json:"unknown,omitempty"` // the truth is not known, rather than false
}

func cause(r Reason, format string, args ...any) *Cause {
	return &Cause{Reason: r, Text: fmt.Sprintf(format, args...)}
}

// WorkerReady is rule 7: a worker is ready when its active deployment weights only versions that are ready and
// HTTP-capable. The cause is nil when it is.
func WorkerReady(a *Aggregate) (bool, *Cause) {
	active := a.Active()
	if active == nil {
		return false, cause(Provisioning, "worker %s has no active deployment", a.Worker.UID)
	}
	var lacking []string
	for _, w := range active.Active {
		if v := a.Version(w.Version); !v.Ready || !v.HTTP() {
			lacking = append(lacking, w.Version)
		}
	}
	if len(lacking) > 0 {
		return false, cause(LacksCapability, "worker %s weights versions that do not serve fetch or assets: %s",
			a.Worker.UID, strings.Join(lacking, ", "))
	}
	return true, nil
}

// DeploymentReady says whether a deployment is realised: it is active, all its versions are ready, and every
// dependent and class finds what it needs.
func DeploymentReady(a *Aggregate, self *Facts) (bool, *Cause) {
	if len(self.Active) == 0 || self.Deleting {
		return false, cause(Provisioning, "deployment %s is not active", self.UID)
	}
	for _, w := range self.Active {
		if v := a.Version(w.Version); !v.Ready {
			return false, cause(LacksCapability, "version %s is not ready", w.Version)
		}
	}
	if v := Dependents(a, self.Active); v != nil {
		return false, cause(LacksCapability, "%s", v.Sentence)
	}
	return true, nil
}

// PinState is what became of the target of one pin.
type PinState struct {
	Pointer string
	Missing bool // the target is gone
	Changed bool // the target is there but is not what was pinned
}

// Pins is REL-10: a source whose pinned target is missing or replaced is not ready.
func Pins(pins []PinState) *Cause {
	for _, p := range pins {
		switch {
		case p.Missing:
			return cause(DependencyAbsent, "the target of %s is missing", p.Pointer)
		case p.Changed:
			return cause(ExternalChange, "the target of %s is not the one that was pinned", p.Pointer)
		}
	}
	return nil
}

// RouteReady says whether requests that enter through an attachment reach ready versions.
func RouteReady(a *Aggregate, need Need) (bool, *Cause) {
	active := a.Active()
	if active == nil {
		return false, cause(Provisioning, "worker %s has no active deployment", a.Worker.UID)
	}
	for _, w := range active.Active {
		if v := a.Version(w.Version); !v.Ready || !v.Meets(need) {
			return false, cause(LacksCapability, "version %s cannot serve %s", w.Version, need.Handler())
		}
	}
	return true, nil
}

// Migrated says why a database is not in the state of a migration set, nil if it is: applied files are in its ledger, target in
// the set, and the first common ones are the same (sql §8.3).
func Migrated(database, set string, applied, target, common int) *Cause {
	switch {
	case common == applied && common == target:
		return nil
	case common == applied:
		return cause(Provisioning, "%d of the %d migrations of %s are applied to %s", applied, target, set, database)
	case common == target:
		return cause(ExternalChange, "%d migrations are applied to %s after the %d of %s", applied-target, database, target, set)
	}
	return cause(ExternalChange, "migration %d that was applied to %s is not that of %s", common+1, database, set)
}

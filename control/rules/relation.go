package rules

import "strings"

// Reference judges one reference by REL-1, REL-3, REL-4 and REL-5 in this order. target is the zero Facts where nothing
// of that UID may be seen by the caller in this Space, so that unknown, deleted, foreign and elsewhere look the same.
// Lenient references leave REL-4 and REL-5 to rule 2.
func Reference(target *Facts, pointer string, accepted []string, lenient bool) *Verdict {
	if !target.Exists {
		return Refuse(ResourceNotFound, "REL-1", pointer, nil, "%s names no Resource of this Space", pointer)
	}
	ok := false
	for _, id := range accepted {
		ok = ok || id == target.FormID
	}
	if !ok {
		return Refuse(InvalidArgument, "REL-3", pointer, []string{target.UID}, "%s must name a Resource of the Form %s, %s is a %s",
			pointer, strings.Join(accepted, " or "), target.UID, target.FormID)
	}
	switch {
	case lenient:
		return nil
	case target.Deleting:
		return Refuse(InvalidArgument, "REL-4", pointer, []string{target.UID}, "%s names %s, which is being deleted", pointer, target.UID)
	case target.Settling || target.Failed && target.Busy:
		return Refuse(ResourceBusy, "REL-5", pointer, []string{target.UID}, "%s names %s, which has not settled yet", pointer, target.UID)
	case target.Failed:
		return Refuse(InvalidArgument, "REL-5", pointer, []string{target.UID}, "%s names %s, whose creation failed", pointer, target.UID)
	}
	return nil
}

// Holder is one live Resource that pins another.
type Holder struct {
	UID, Name, Kind, Pointer string
}

// Held is REL-8: what a live Resource pins cannot be deleted. holders are in ascending order of UID and leave the
// Resource itself out.
func Held(uid string, holders []Holder) *Verdict {
	if len(holders) == 0 {
		return nil
	}
	h := holders[0]
	return Refuse(DependencyInUse, "REL-8", "", []string{uid, h.UID}, "%s is referenced by %s %s (%s) at %s", uid, h.Kind, h.UID, h.Name, h.Pointer)
}

// Unretired refuses the deletion of a version that invocations still use.
func Unretired(uid string, inUse bool) *Verdict {
	if !inUse {
		return nil
	}
	return Refuse(DependencyInUse, "worker-version §7", "", []string{uid}, "version %s is still used by running invocations", uid)
}

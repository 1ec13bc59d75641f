package state

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"edged/control/form"
	"edged/internal/fault"
)

// What a newer program wrote is told from what is damaged, and every kind of this program is known to it.
func TestNewerCommandsAreRefused(t *testing.T) {
	for raw, newer := range map[string]bool{
		`{"kind":"novel","at":1}`: true, `{"kind":"","at":1}`: true, fmt.Sprintf(`{"kind":"sweep","level":%d}`, Level+1): true,
		`{"kind":"sweep","novel":1}`: true, `{"kind":"create","actor":{"novel":1}}`: true,
		`{"kind":"sweep","level":1}`: false, `{"kind":"sweep"}`: false,
	} {
		c, err := DecodeCommand([]byte(raw))
		if newer != errors.Is(err, ErrNewer) || newer != (c == nil) || newer && fault.CodeOf(err) != fault.Conflict {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{`{"kind`, ``, `{"kind":"sweep"} {}`, `{"kind":7}`} {
		if _, err := DecodeCommand([]byte(raw)); err == nil || errors.Is(err, ErrNewer) {
			t.Errorf("damage is taken for a newer program: %q, %v", raw, err)
		}
	}
	for _, k := range []Kind{CreateResource, UpdateResource, DeleteResource, StartOperation, DoubtOperation, EndOperation, Sweep, AddToken,
		RemoveToken, UseTokens, Found, AwaitInput, Replenish, Requeue, SetMarker, Reseal, SecretsAre, Carry, RecordRuns, EndRuns, FoundFleet,
		InviteMember, JoinFleet, ReportMember, DrainMember, RemoveMember, Disband, Vanish} {
		if !k.known() {
			t.Errorf("%s is not known", k)
		}
	}
}

// A snapshot of a newer format, or with a line that is not known, is refused; the first leaves the state as it was.
func TestNewerSnapshotsAreRefused(t *testing.T) {
	s := New(form.Builtin())
	s.Apply(&Command{Kind: AddToken, At: 1, Token: &Token{ID: "t-1"}})
	var was bytes.Buffer
	if err := s.Freeze().Write(&was); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		raw   string
		newer bool
		whole bool // the state is as it was
	}{
		{fmt.Sprintf(`{"head":{"format":%d,"last":9}}`+"\n"+`{"end":1}`+"\n", snapshotFormat+1), true, true},
		{`{"end":0}` + "\n", false, true},
		{"", false, true},
		{`{"head":{"format":1,"last":9}}` + "\n" + `{"novel":{}}` + "\n" + `{"end":2}` + "\n", true, false},
	} {
		err := s.Restore(strings.NewReader(tt.raw))
		if err == nil || errors.Is(err, ErrNewer) != tt.newer {
			t.Errorf("%q: %v", tt.raw, err)
		}
		var is bytes.Buffer
		if err := s.Freeze().Write(&is); err != nil || tt.whole && is.String() != was.String() {
			t.Errorf("%q: the state is\n%s, %v\nwas\n%s", tt.raw, is.String(), err, was.String())
		}
	}
}

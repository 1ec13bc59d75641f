package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edged/internal/fleetwire"
	"edged/internal/pki"
)

// The commands about the fleet, against the real control room: an invite is printed once and works, nodes are listed without it,
// drained and removed; a node alone and wrong words are told.
func TestFleetCommands(t *testing.T) {
	dir, room := startRoom(t)
	fleet := func(args ...string) []string { return append([]string{"fleet"}, append(args, "--data-dir", dir)...) }
	if got := mustEdged(t, fleet("nodes")...); !strings.Contains(got, "in no fleet") {
		t.Errorf("a node alone says %q", got)
	}
	if _, err := edged(t, fleet("invite")...); err == nil || !strings.Contains(err.Error(), "FL-1") {
		t.Errorf("an invite of a node alone: %v", err)
	}
	request := func(name string) fleetwire.JoinRequest {
		_, csr, err := pki.NewRequest("n-" + name)
		if err != nil {
			t.Fatal(err)
		}
		return fleetwire.JoinRequest{ID: "n-" + name, Name: name, Peer: name + ".test:7000", CSR: csr}
	}
	if _, err := room.FoundFleet(t.Context(), request("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := edged(t, fleet("invite", "--role", "boss")...); !errors.As(err, &usageError{}) {
		t.Errorf("an unknown role: %v", err)
	}
	text := mustEdged(t, fleet("invite", "--role", "control", "--role", "edge", "--label", "region=eu", "--for", "10m")...)
	invite, err := fleetwire.ParseInvite(text)
	if err != nil {
		t.Fatal(err)
	}
	list := mustEdged(t, fleet("nodes")...)
	if !strings.Contains(list, invite.ID) || !strings.Contains(list, "invited until") || strings.Contains(list, strings.TrimSpace(text)) || strings.Contains(list, invite.Secret) {
		t.Errorf("the list is %s", list)
	}
	in := request("two")
	in.InviteID, in.Secret = invite.ID, invite.Secret
	if _, err := room.Join(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if got := mustEdged(t, fleet("drain", "two")...); got != "n-two (two) drains\n" {
		t.Errorf("drain says %q", got)
	}
	for line := range strings.Lines(mustEdged(t, fleet("nodes")...)) {
		words := strings.Fields(line)
		if words[0] == "n-two" && (words[1] != "two" || words[2] != "control,edge" || words[3] != "two.test:7000" || words[5] != "region=eu" || !strings.HasSuffix(line, "member, draining\n")) || words[0] == invite.ID {
			t.Errorf("the list has %s", line)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "node.id"), []byte("n-two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := mustEdged(t, "status", "--data-dir", dir); !strings.Contains(got, "fleet    2 members, ") || !strings.Contains(got, "two: control,edge, member, draining, plan not heard of\n") {
		t.Errorf("status says %s", got)
	}
	var doc struct {
		Items []struct {
			ID       string
			Draining bool
		}
		Warnings []string
	}
	if err := json.Unmarshal([]byte(mustEdged(t, fleet("nodes", "--json")...)), &doc); err != nil || len(doc.Items) != 2 || !doc.Items[1].Draining || len(doc.Warnings) != 2 {
		t.Errorf("as JSON it is %+v, %v", doc, err)
	}
	if got := mustEdged(t, fleet("drain", "n-two", "--off")...); got != "n-two (two) is in service\n" {
		t.Errorf("drain --off says %q", got)
	}
	if got := mustEdged(t, fleet("nodes")...); strings.Contains(got, "draining") {
		t.Errorf("after drain --off the list is %s", got)
	}
	if got := mustEdged(t, fleet("remove", "two", "--lose-data")...); got != "removed n-two (two)\n" {
		t.Errorf("remove says %q", got)
	}
	if _, err := edged(t, fleet("remove", "one")...); err == nil || !strings.Contains(err.Error(), "FL-5.2") {
		t.Errorf("removing the last: %v", err)
	}
}

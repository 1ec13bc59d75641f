package fleetwire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"edged/internal/fault"
)

var invite = Invite{CA: strings.Repeat("0a", 32), ID: "i-1", Secret: "s3cr3t_-"}

func TestInviteIsReadBack(t *testing.T) {
	got, err := ParseInvite("\n " + invite.Text() + "\n")
	if err != nil || got != invite {
		t.Errorf("got %+v, %v", got, err)
	}
	if !strings.HasPrefix(invite.Text(), "edged_invite_") {
		t.Error("the prefix by which scanners find leaked invites is missing")
	}
}

// What is no invite is refused in words that repeat nothing of it.
func TestUnfitInvitesAreRefused(t *testing.T) {
	coded := func(doc string) string { return invitePrefix + base64.RawURLEncoding.EncodeToString([]byte(doc)) }
	ca := `"ca":"` + invite.CA + `"`
	for name, text := range map[string]string{
		"empty": "", "no prefix": "s3cr3t", "cut": invite.Text()[:40], "padded": invite.Text() + "==", "not JSON": coded("s3cr3t"),
		"short root":  coded(`{"ca":"0a","id":"i","secret":"s3cr3t"}`),
		"upper root":  coded(`{"ca":"` + strings.Repeat("0A", 32) + `","id":"i","secret":"s3cr3t"}`),
		"no ID":       coded(`{` + ca + `,"secret":"s3cr3t"}`),
		"no secret":   coded(`{` + ca + `,"id":"i"}`),
		"odd secret":  coded(`{` + ca + `,"id":"i","secret":"s3cr3t\n"}`),
		"long secret": coded(`{` + ca + `,"id":"i","secret":"` + strings.Repeat("x", 129) + `"}`),
		"too long":    invite.Text() + strings.Repeat(" ", maxInvite),
	} {
		_, err := ParseInvite(text)
		if fault.CodeOf(err) != fault.Invalid || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A secret is in no log, whatever prints the invite.
func TestInvitePrintsWithoutItsSecret(t *testing.T) {
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb, invite)
		fmt.Fprintf(&out, verb, &invite)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "invite", invite)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "invite", invite)
	json.NewEncoder(&out).Encode(invite)
	fmt.Fprint(&out, fmt.Errorf("wrapped: %v", invite))
	if strings.Contains(out.String(), invite.Secret) || !strings.Contains(out.String(), "i-1") {
		t.Error(out.String())
	}
}

// Any text is read to an invite that is written and read to the same one, or refused.
func FuzzParseInvite(f *testing.F) {
	f.Add(invite.Text())
	f.Add(invitePrefix)
	f.Fuzz(func(t *testing.T, text string) {
		i, err := ParseInvite(text)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		if again, err := ParseInvite(i.Text()); err != nil || again != i {
			t.Fatalf("%q was read as %q, then as %q, %v", text, i.Text(), again.Text(), err)
		}
	})
}

func TestErrorsCrossTheWire(t *testing.T) {
	send := func(err error) error {
		w := httptest.NewRecorder()
		WriteError(w, err)
		if want := fault.CodeOf(err).HTTPStatus(); w.Code != want {
			t.Errorf("status %d, want %d", w.Code, want)
		}
		return ReadError("test", w.Code, w.Body)
	}
	for _, c := range fault.Codes() {
		if got := send(fault.New(c, "op", "say \x1b[1mthis")); fault.CodeOf(got) != c {
			t.Errorf("%s arrives as %v", c, got)
		} else if c != fault.Internal && fault.Detail(got) != "say  [1mthis" {
			t.Errorf("%s: %q", c, fault.Detail(got))
		}
	}
	if got := send(errors.New("hidden")); fault.CodeOf(got) != fault.Internal || strings.Contains(got.Error(), "hidden") {
		t.Errorf("a cause crossed: %v", got)
	}
	for _, body := range []string{"", "<html>", `{"code":"nonsense"}`, `{"code":"denied","detail":"` + strings.Repeat("x", maxError) + `"}`} {
		if got := ReadError("test", 502, strings.NewReader(body)); fault.CodeOf(got) != fault.Unavailable || !strings.Contains(got.Error(), "502") {
			t.Errorf("%.20q: %v", body, got)
		}
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	var v map[string]string
	for body, want := range map[string]fault.Code{
		`{"a":"b"}`: 0, `{"a":"b"}` + "\n": 0, `{"a":"bc"}` + "\n": fault.TooLarge, `{"a":"b"`: fault.Invalid, `{} {}`: fault.Invalid, ``: fault.Invalid,
	} {
		if got := fault.CodeOf(ReadJSON(strings.NewReader(body), 10, &v)); got != want {
			t.Errorf("%q: %v, want %v", body, got, want)
		}
	}
}

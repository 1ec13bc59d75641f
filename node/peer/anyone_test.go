package peer

import (
	"net/http"
	"strings"
	"testing"

	"edged/internal/fault"
	"edged/internal/pki"
)

// Who knows a place and not who is there reaches any member there, known by its certificate; a stranger there, and one that was removed, get
// no call.
func TestClientAt(t *testing.T) {
	f := newFleet(t, loopback{})
	a, b := f.founded("n-a", nil, nil), f.founded("n-b", nil, nil)
	f.move("n-b", "127.0.0.1:1") // where it was
	call := func(at string) error {
		c, err := a.ClientAt(at)
		if err != nil {
			return err
		}
		resp, err := c.Post("https://"+pki.Host("any")+"/echo", "", strings.NewReader("x"))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Caller") != "n-a" {
			t.Errorf("answered %s to %q", resp.Status, resp.Header.Get("Caller"))
		}
		return nil
	}
	if err := call("https://" + b.addr); err != nil {
		t.Error(err)
	}
	stranger := newFleet(t, loopback{}).founded("n-b", nil, nil)
	if err := call(stranger.addr); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a stranger: %v", err)
	}
	if err := call("nowhere"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no address: %v", err)
	}
	f.remove("n-b")
	if err := call(b.addr); fault.CodeOf(err) != fault.Denied {
		t.Errorf("a removed member: %v", err)
	}
}

package control

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"edged/control/state"
	"edged/internal/disk"
	"edged/internal/fault"
)

// tokenFile holds the secret of the bootstrap principal (node-surface §3).
const tokenFile = "control.token"

// bootstrap makes what a new control state needs, and makes good what a crash left out of it.
func (c *Control) bootstrap() error {
	if c.state.Secret() == nil {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // never fails: it ends the program instead
		if _, err := c.submit(&state.Command{Kind: state.Found, Secret: secret}); err != nil {
			return err
		}
	}
	if sets := c.opt.facades(); !slices.Equal(sets, c.state.Facades()) {
		if _, err := c.submit(&state.Command{Kind: state.Carry, Facades: sets}); err != nil {
			return err
		}
	}
	secret, err := c.bootstrapSecret()
	if err != nil || secret == "" {
		return err
	}
	if _, known := c.state.Authenticate(secret); known {
		return nil
	}
	_, err = c.submit(&state.Command{Kind: state.AddToken, Token: &state.Token{
		ID: "t-" + randomID(), Hash: state.TokenHash(secret), Tenant: homeTenant, Principal: "bootstrap",
		Role: state.Operator, CreatedAt: time.Now().UnixMilli(),
	}})
	return err
}

// bootstrapSecret reads the token file or makes it. The file comes before the record, so that no token is ever known to
// the state alone. A node that joined a fleet has none unless somebody put it there: "".
func (c *Control) bootstrapSecret() (string, error) {
	const op = "control.bootstrap"
	path := filepath.Join(c.opt.Dir, tokenFile)
	raw, err := os.ReadFile(path)
	switch {
	case err == nil:
		secret := strings.TrimSpace(string(raw))
		if len(secret) < 16 || len(secret) > 512 || strings.ContainsAny(secret, " \t\r\n") {
			return "", fault.Newf(fault.Invalid, op, "%s does not hold a token; remove it to get a new one", path)
		}
		return secret, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fault.Wrap(fault.Unavailable, op, fmt.Errorf("read token: %w", err))
	}
	if c.opt.Fleet != nil && c.opt.Fleet.Joined {
		return "", nil
	}
	secret := newSecret()
	return secret, fault.Wrap(fault.Unavailable, op, disk.WriteFile(path, []byte(secret+"\n"), 0o600))
}

// facades returns every facade set that this program carries, ascending; nil if versions are not judged by their set.
func (o *Options) facades() []string {
	if o.FacadeSet == "" {
		return nil
	}
	sets := append(slices.Clone(o.FacadeSets), o.FacadeSet)
	slices.Sort(sets)
	return slices.Compact(sets)
}

func newSecret() string { return "edged_" + rand.Text() + rand.Text() }

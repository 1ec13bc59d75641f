package deploy

import (
	"context"

	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

// chooseVersion finds which version the manifest means, and the values that a new one needs. Values cannot be seen from
// outside, so one content may have several versions, each with values of its own; the newest is meant, and --rotate-secrets
// makes the next (node-surface §6).
func (d *deployer) chooseVersion(ctx context.Context) error {
	secrets := d.manifest.Secrets
	if len(secrets) == 0 {
		if d.opt.RotateSecrets {
			return fault.New(fault.Invalid, "deploy.secrets", "there is nothing to rotate: the manifest requires no secrets")
		}
		return nil
	}
	newest, err := d.newestRotation(ctx)
	if err != nil {
		return err
	}
	due := newest < 0 || d.opt.RotateSecrets
	if due {
		newest++
	}
	d.names.version = d.names.rotation(newest)
	if !due {
		return nil
	}
	d.values = map[string]string{}
	for _, s := range secrets {
		value := ""
		if d.opt.Secret != nil {
			value = d.opt.Secret(s.Name)
		}
		if value == "" {
			d.refuse(s.Line, "secret %s has no value, and a new version is due: set it in the environment or in --secrets-file", s.Name)
		}
		d.values[s.Name] = value
	}
	return nil
}

// maxRotations bounds how many versions of one content are told apart; who rotates every day gets there in eleven years.
const maxRotations = 4096

// newestRotation returns the number of the newest version of this content, -1 if there is none.
func (d *deployer) newestRotation(ctx context.Context) (int, error) {
	if d.have[d.names.worker] == nil {
		return -1, nil
	}
	there := map[string]bool{}
	for r, err := range d.opt.Client.List(ctx, client.Filter{Space: d.opt.Space, Form: form.WorkerVersionURL}) {
		if err != nil {
			return 0, failed("read", d.names.version, err)
		}
		there[r.Name] = true
	}
	for i := maxRotations; i >= 0; i-- {
		if there[d.names.rotation(i)] {
			if i == maxRotations {
				return 0, fault.New(fault.Limited, "deploy.secrets", "there are too many versions of this content: change something else, or delete old ones")
			}
			return i, nil
		}
	}
	return -1, nil
}

package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"edged/control/client"
	"edged/internal/fault"
)

// Refusal is why a deploy would fail, found before anything is changed. Refusals stand in the order in which to mend them:
// what comes first may be the reason for what comes later.
type Refusal struct {
	Kind string `json:"kind,omitempty"` // short name of the Form; empty for what the client refuses by itself
	Name string `json:"name,omitempty"`
	Code string `json:"code,omitempty"` // the node's
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Error renders the refusal as file:line: text.
func (r Refusal) Error() string {
	if r.Name == "" {
		return fmt.Sprintf("%s:%d: %s", r.File, r.Line, r.Text)
	}
	return fmt.Sprintf("%s:%d: %s %s would be refused: %s: %s", r.File, r.Line, r.Kind, r.Name, r.Code, r.Text)
}

func refusedAll(list []Refusal) error {
	lines := make([]string, len(list))
	for i, r := range list {
		lines[i] = r.Error()
	}
	return fault.New(fault.Conflict, "deploy.foresee", strings.Join(lines, "\n"))
}

// foresee goes through the steps without changing anything: what would be done, and what the node would refuse now. A step is
// put to the node only if nothing that it depends on is going to change before its turn: an answer about a state that will not
// be is none.
func (d *deployer) foresee(ctx context.Context) error {
	disc, err := d.opt.Client.Discover(ctx)
	if err != nil {
		return err
	}
	for _, f := range d.faults {
		d.report.Refusals = append(d.report.Refusals, Refusal{File: f.File, Line: f.Line, Text: f.Text})
	}
	changes := map[string]bool{}
	for _, s := range d.steps {
		known := true
		for _, name := range s.uses {
			known = known && d.have[name] != nil && !changes[name]
		}
		for _, name := range s.after {
			known = known && !changes[name]
		}
		w, action := d.foreseen(s)
		if action == "" {
			continue
		}
		changes[s.name] = action != "unchanged"
		if d.opt.DryRun {
			d.done(w, action, d.have[s.name])
		}
		if !known || d.unfit[s.name] || action == "unchanged" || !disc.Capabilities.Previews {
			continue
		}
		if err := d.preview(ctx, s, w, action); err != nil {
			return err
		}
	}
	for i, share := range d.report.Weights {
		if strings.HasPrefix(share.Version, unknownUID) {
			d.report.Weights[i].Version = ""
		}
	}
	return nil
}

// unknownUID stands for a UID that is not given yet.
const unknownUID = "the UID of "

// foreseen says what a step would do; "" if it was refused already.
func (d *deployer) foreseen(s *step) (*want, string) {
	if s.remove != nil {
		return &want{form: s.form, name: s.name, note: d.noteOf(s.remove)}, "delete"
	}
	w := s.want(func(name string) string {
		if uid := d.uid(name); uid != "" {
			return uid
		}
		return unknownUID + name
	})
	if w == nil {
		return nil, ""
	}
	w.form, w.name = s.form, s.name
	action := w.action(d.have[s.name])
	if action == "" {
		d.conflict(s)
	}
	return w, action
}

// conflict refuses a name that stands for something else of the same Form.
func (d *deployer) conflict(s *step) {
	d.report.Refusals = append(d.report.Refusals, Refusal{File: d.manifest.File, Line: s.line, Text: fmt.Sprintf(
		"a %s named %s exists (uid %s) and is not what this manifest makes: delete or rename one of them", Kind(s.form), s.name, d.uid(s.name))})
}

// preview asks the node about one step.
func (d *deployer) preview(ctx context.Context, s *step, w *want, action string) error {
	p := client.Preview{Action: "create"}
	if have := d.have[s.name]; have != nil {
		p.UID, p.Generation = have.UID, have.Generation
	}
	switch action {
	case "create":
		p.Input = client.Create{Form: w.form, Space: d.opt.Space, Name: w.name, Spec: w.spec, PrivateInputs: w.private}
	case "update", "repair":
		p.Action, p.Input = "update", client.Update{Spec: w.spec}
	case "delete":
		p.Action, p.UID, p.Generation = "delete", s.remove.UID, s.remove.Generation
	default:
		return nil
	}
	if len(w.private) > 0 && len(d.faults) > 0 {
		return nil // a value may be missing, which is told already
	}
	objections, err := d.opt.Client.Preview(ctx, p)
	if err != nil {
		return failed("preview", s.name, err)
	}
	for _, o := range objections {
		d.report.Refusals = append(d.report.Refusals, Refusal{Kind(s.form), s.name, o.Code, d.manifest.File, s.line, o.Message})
	}
	return nil
}

// noteOf says of an attachment what it is for.
func (d *deployer) noteOf(r *client.Resource) string {
	var spec cronSpec
	if json.Unmarshal(r.Spec, &spec) == nil && spec.Cron != "" {
		return spec.Cron
	}
	return "of " + d.whatOf(r)
}

package control

import (
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"edged/control/audit"
	"edged/control/form"
	"edged/control/operator"
	"edged/control/state"
	"edged/internal/fault"
)

// recorder writes the audit. What was accepted is recorded when the command is applied: after a crash the log applies it
// again, and what is recorded already is passed over by its index, so that no accepted mutation is missed or told twice.
// What was refused has a log of its own, so that nobody can push accepted ones out by being refused.
type recorder struct {
	accepted, refused *audit.Log
	until             uint64 // index of the last command that was recorded before this start
	log               *slog.Logger
}

func openRecorder(dir string, log *slog.Logger) (*recorder, error) {
	accepted, err := audit.Open(audit.Options{Dir: filepath.Join(dir, "accepted"), MaxBytes: 256 << 20, SegmentBytes: 4 << 20})
	if err != nil {
		return nil, err
	}
	refused, err := audit.Open(audit.Options{Dir: filepath.Join(dir, "refused"), MaxBytes: 64 << 20, SegmentBytes: 4 << 20})
	if err != nil {
		return nil, errors.Join(err, accepted.Close())
	}
	until, err := accepted.Index()
	if err != nil {
		return nil, errors.Join(err, accepted.Close(), refused.Close())
	}
	return &recorder{accepted: accepted, refused: refused, until: until, log: log}, nil
}

func (r *recorder) close() error { return errors.Join(r.accepted.Close(), r.refused.Close()) }

// sync makes the audit durable; it is called now and then.
func (r *recorder) sync() {
	if err := errors.Join(r.accepted.Sync(), r.refused.Sync()); err != nil {
		r.log.Error("audit is not durable", "err", err, "do", fault.CheckDisk)
	}
}

func (r *recorder) write(l *audit.Log, rec audit.Record) {
	if err := l.Append(rec); err != nil {
		r.log.Error("audit record was not written", "err", err, "action", rec.Action, "do", fault.CheckDisk)
	}
}

// about says what a command is going to change, as it is before; the action is "" for one that nobody asked for.
func (r *recorder) about(s *state.State, c *state.Command) (rec audit.Record) {
	rec = audit.Record{
		ByTenant: c.Actor.Tenant, ByPrincipal: c.Actor.Principal, ByToken: c.Actor.Token,
		Tenant: c.Actor.Tenant, Action: string(c.Kind), UID: c.UID, Space: c.Space, Name: c.Name, Form: c.Form,
	}
	switch c.Kind {
	case state.CreateResource:
	case state.UpdateResource, state.DeleteResource:
		named(&rec, s.Resource(c.UID))
	case state.Replenish:
		rec.Operation = c.Operation
		if op := s.Operation(c.Operation); op != nil && op.Tenant == c.Actor.Tenant {
			rec.UID = op.Resource
			named(&rec, s.Resource(op.Resource))
		}
	case state.AddToken, state.RemoveToken:
		rec.Action, rec.UID = "control.tokens.create", c.Token.ID
		t := c.Token
		if c.Kind == state.RemoveToken {
			rec.Action = "control.tokens.revoke"
			if t = s.Token(c.Token.ID); t == nil {
				return audit.Record{}
			}
		}
		rec.Tenant, rec.Name = t.Tenant, t.Principal
	default:
		return aboutFleet(rec, s, c)
	}
	return rec
}

// named fills in what a Resource of the actor's own tenant is called.
func named(rec *audit.Record, r *state.Resource) {
	if r != nil && r.Tenant == rec.Tenant {
		rec.Space, rec.Name, rec.Form = r.Space, r.Name, r.Form
	}
}

// applied records a command that was carried out.
func (r *recorder) applied(index uint64, rec audit.Record, c *state.Command, out state.Outcome) {
	if rec.Action == "" || index <= r.until || out.Refusal != nil || out.Replayed {
		return
	}
	if out.Operation != nil {
		rec.Operation, rec.UID = out.Operation.ID, out.Operation.Resource
	}
	rec.At, rec.Index, rec.Outcome = state.Time(c.At), index, audit.Accepted
	if rec.Form == form.WorkerDeploymentURL && (c.Kind == state.CreateResource || c.Kind == state.UpdateResource) {
		rec.Versions = distribution(c.Spec)
	}
	r.write(r.accepted, rec)
}

// distribution is what the accepted spec of a deployment says.
func distribution(spec json.RawMessage) (shares []audit.Share) {
	var in struct {
		Versions []struct {
			Version struct {
				UID string `json:"resourceUid"`
			} `json:"workerVersion"`
			Weight int `json:"weight"`
		} `json:"versions"`
	}
	if json.Unmarshal(spec, &in) != nil {
		return nil // an accepted one can be read
	}
	for _, v := range in.Versions {
		shares = append(shares, audit.Share{Version: v.Version.UID, Weight: v.Weight})
	}
	return shares
}

// refusal records a mutation of a Resource that was not accepted, as far as it could be read.
func (r *recorder) refusal(c *state.Command, code string, certain bool) {
	rec := audit.Record{
		ByTenant: c.Actor.Tenant, ByPrincipal: c.Actor.Principal, ByToken: c.Actor.Token, Tenant: c.Actor.Tenant, Action: string(c.Kind),
		Space: c.Space, Name: c.Name, Form: c.Form, At: state.Time(time.Now().UnixMilli()), Outcome: audit.Refused, Code: code,
	}
	if form.IsName(c.UID) && c.Kind != state.CreateResource {
		rec.UID = c.UID
	}
	if form.IsName(c.Operation) && c.Kind == state.Replenish {
		rec.Operation = c.Operation
	}
	if !certain {
		rec.Outcome = audit.Unknown
	}
	r.write(r.refused, rec)
}

// operated records an operator's call. What a command carries out is recorded when that is applied.
func (r *recorder) operated(e operator.Event) {
	rec := audit.Record{
		ByTenant: e.Caller.Tenant, ByPrincipal: e.Caller.Principal, ByToken: e.Caller.Token, Action: e.Action, Tenant: e.Tenant,
		UID: e.UID, Space: e.Space, Name: e.Name, At: state.Time(time.Now().UnixMilli()), Outcome: audit.Accepted,
	}
	if e.Err == nil {
		if !recordedAsCommand[e.Action] {
			r.write(r.accepted, rec)
		}
		return
	}
	rec.Outcome = audit.Refused
	status, code := operator.Code(e.Err)
	if rec.Code = code; status >= 500 {
		rec.Outcome = audit.Unknown
	}
	r.write(r.refused, rec)
}

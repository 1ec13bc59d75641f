package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"edged/control/client"
	"edged/control/form"
)

// Bytes and metadata come back as they were put; a key that nobody wrote is null; a key that is too long is refused by name.
func keyValues(ctx context.Context, r *run) error {
	if err := r.says(ctx, r.probe, "/kv", `[null,[],true,"invalid_key"]`); err != nil {
		return err
	}
	return r.comes(ctx, r.probe, "/kv/read", func(a answer) error {
		return a.want("/kv/read", 200, "", `[[0,255,128,65],{"kind":"probe"}]`)
	})
}

// Values keep their storage class and all their digits; a transaction that fails leaves nothing; a query does not write; the
// schema that a migration made is not changed by a worker.
func sqlValues(ctx context.Context, r *run) error {
	return r.says(ctx, r.probe, "/sql", `[1,"sql_error","sql_error","sql_error",[{"n":{"type":"integer","value":"9007199254740993"},"s":{"type":"text","value":"é"},`+
		`"b":{"type":"blob","base64":"AP8="},"r":{"type":"real","value":1},"x":{"type":"null"}}]]`)
}

// The traces of the contract: sizes, ranges, conditions, pages, and nothing once it is deleted.
func objects(ctx context.Context, r *run) error {
	return r.says(ctx, r.probe, "/objects", `[1024,true,1024,[0,1,2,3],true,"precondition_failed","range_not_satisfiable",["dir/a"],true,null]`)
}

// A message reaches the consumer with the bytes that were sent.
func queueRoundTrip(ctx context.Context, r *run) error {
	sent, err := r.front.get(ctx, r.probe, "/send")
	if err == nil {
		err = sent.want("/send", 200, "", "")
	}
	if err != nil {
		return err
	}
	if sent.body == "" || len(sent.body) > 256 {
		return fmt.Errorf("/send: %v is no message id", sent)
	}
	want := jsonText([]any{"tasks", []any{[]any{sent.body, []int{0, 255, 128}, 1}}})
	return r.comes(ctx, r.probe, "/seen", func(a answer) error { return a.want("the consumer", 200, "", want) })
}

// Expressions that are none are refused, and one that is good says when it matches next.
func cronRules(ctx context.Context, r *run) error {
	worker, ok, err := r.opt.Client.Lookup(ctx, r.space, "probe")
	if err != nil || !ok {
		return fmt.Errorf("the probe's worker is not there: %w", err)
	}
	var faults []error
	for i, bad := range []string{"* * * *", "60 * * * *", "@daily", "* * * * * *", "*  * * * *", "0 0 L * *"} {
		spec := map[string]any{"worker": map[string]string{"resourceUid": worker.UID}, "cron": bad}
		_, err := r.opt.Client.Create(ctx, client.Create{Form: form.CronTriggerURL, Space: r.space, Name: fmt.Sprintf("bad-cron-%d", i), Spec: spec}, client.NewKey())
		var problem *client.Problem
		if !errors.As(err, &problem) || problem.Status < 400 || problem.Status >= 500 {
			faults = append(faults, fmt.Errorf("%q was not refused: %v", bad, err))
		}
	}
	for t, err := range r.opt.Client.List(ctx, client.Filter{Space: r.space, Form: form.CronTriggerURL}) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(t.Name, "bad-cron-") {
			continue
		}
		var o struct {
			Timezone    string
			NextMatchAt time.Time
		}
		next := time.Date(time.Now().UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := json.Unmarshal(t.Observed, &o); err != nil || o.Timezone != "UTC" || !o.NextMatchAt.Equal(next) {
			faults = append(faults, fmt.Errorf("0 0 1 1 * is observed as %s, want nextMatchAt %s", t.Observed, next.Format(time.RFC3339)))
		}
		return errors.Join(faults...)
	}
	return errors.Join(append(faults, errors.New("the schedule of the probe is not there"))...)
}

// A service call passes the request on and the answer back; the callee's error is its 500, and its env is its own.
func serviceCall(ctx context.Context, r *run) error {
	a, err := r.front.ask(ctx, r.probe, "POST /peer/echo HTTP/1.1\r\nHost: "+r.probe+"\r\nX-Probe: passed\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody")
	if err == nil {
		err = a.want("/peer/echo", 200, "", `["peer","POST","passed","body",["VERSION"]]`)
	}
	if err != nil {
		return err
	}
	return r.says(ctx, r.probe, "/peer/throw", `["caller",500]`)
}

// An asset is served with its bytes and type, HEAD without bytes, other methods and paths that cannot be looked up go to the worker.
func assets(ctx context.Context, r *run) error {
	text, err := probes.ReadFile("probes/probe/public/asset.txt")
	if err != nil {
		return err
	}
	a, err := r.front.get(ctx, r.probe, "/asset.txt?query")
	if err == nil {
		err = a.want("/asset.txt", 200, "", string(text))
	}
	if err == nil && a.header.Get("Content-Type") != "text/plain" {
		err = fmt.Errorf("/asset.txt has type %q, want text/plain", a.header.Get("Content-Type"))
	}
	if err != nil {
		return err
	}
	for _, x := range []struct {
		line, body string
		status     int
	}{
		{"HEAD /asset.txt", "", 200},
		{"POST /asset.txt", "probe: no such probe", 404},
		{"GET /a%2Fasset.txt", "probe: no such probe", 404},
		{"GET /ASSET.txt", "probe: no such probe", 404},
	} {
		a, err := r.front.ask(ctx, r.probe, x.line+" HTTP/1.1\r\nHost: "+r.probe+"\r\nConnection: close\r\n\r\n")
		if err != nil {
			return err
		}
		if a.status != x.status || a.body != x.body {
			return fmt.Errorf("%s: got %v, want %d %q", x.line, a, x.status, x.body)
		}
	}
	return nil
}

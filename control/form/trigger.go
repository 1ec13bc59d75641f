package form

import (
	"time"

	"edged/control/rules"
	"edged/internal/cronexpr"
	"edged/internal/fault"
)

// cronTrigger is WorkerCronTrigger 0.3.0 (attachments §4): the expression may change, the worker may not.
func cronTrigger() *Driver {
	return &Driver{
		URL: CronTriggerURL, Kind: "WorkerCronTrigger", Role: rules.Attachment, Need: rules.NeedScheduled, Gate: "WA-3.3",
		Fields: []Field{
			reference("worker", UseOwner, []string{ModuleWorkerURL}, func(s *Spec, uid string) { s.Worker = uid }),
			{Name: "cron", Required: true, Read: readCron},
		},
		Frozen:  frozenField("worker"),
		Outside: inside,
		Observe: observeCron,
	}
}

// readCron compares expressions by their canonical form and keeps them as written (attachments §4.2).
func readCron(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	expr, v := text(pointer, val)
	if v != nil {
		return nil, v
	}
	parsed, err := cronexpr.Parse(expr)
	if err != nil {
		return nil, rules.Refuse(rules.InvalidArgument, "attachments §4", pointer, nil, "%s: %s", pointer, fault.Detail(err))
	}
	s.Cron = parsed
	return parsed.Canonical(), nil
}

// observeCron shows the first match after the last create or update of the trigger settled. That instant is stored, so
// nextMatchAt is a function of stored facts and no rendering moves because time passes: it tells what the expression means, an
// update verifies it anew, and the firing itself looks at the clock.
func observeCron(o *Observation) (any, *rules.Cause) {
	ready, cause := attached(o, rules.NeedScheduled)
	out := struct {
		Cron     string `json:"cron"`
		Timezone string `json:"timezone"`
		Ready    bool   `json:"scheduleReady"`
		Next     string `json:"nextMatchAt,omitempty"`
	}{Cron: o.Spec.Cron.String(), Timezone: "UTC", Ready: ready}
	if next, ok := o.Spec.Cron.Next(time.UnixMilli(o.SettledAt)); ok {
		out.Next = next.Format(time.RFC3339)
	}
	return out, cause
}

// queueConsumer is QueueConsumer 0.3.0 (attachments §5): queue and worker are fixed, everything else may change.
func queueConsumer() *Driver {
	return &Driver{
		URL: QueueConsumerURL, Kind: "QueueConsumer", Role: rules.Attachment, Need: rules.NeedQueue, Gate: "WA-3.4",
		Fields: []Field{
			reference("queue", UseQueue, []string{QueueURL}, func(s *Spec, uid string) { s.Consumer.Queue = uid }),
			reference("worker", UseOwner, []string{ModuleWorkerURL}, func(s *Spec, uid string) { s.Worker = uid }),
			integerField("maxBatchSize", 1, 100, func(s *Spec, n int) { s.Consumer.MaxBatchSize = n }),
			integerField("maxBatchTimeoutSeconds", 0, 60, func(s *Spec, n int) { s.Consumer.MaxBatchTimeoutSeconds = n }),
			integerField("maxConcurrency", 1, 250, func(s *Spec, n int) { s.Consumer.MaxConcurrency = n }),
			integerField("maxRetries", 0, 100, func(s *Spec, n int) { s.Consumer.MaxRetries = n }),
			integerField("retryDelaySeconds", 0, 43200, func(s *Spec, n int) { s.Consumer.RetryDelaySeconds = n }),
			optional(reference("deadLetterQueue", UseDeadLetter, []string{QueueURL}, func(s *Spec, uid string) { s.Consumer.DeadLetterQueue = uid })),
		},
		Frozen: func(old, new *Spec) string {
			if at := frozenField("queue")(old, new); at != "" {
				return at
			}
			return frozenField("worker")(old, new)
		},
		Outside: inside,
		Claims: func(s *Spec) []rules.Claim {
			return []rules.Claim{{Class: rules.ClaimConsumer, Value: s.Consumer.Queue}}
		},
		Observe: observeConsumer,
	}
}

func observeConsumer(o *Observation) (any, *rules.Cause) {
	attachedNow, cause := attached(o, rules.NeedQueue)
	return struct {
		Queue    bool `json:"queueExists"`
		Worker   bool `json:"workerExists"`
		Attached bool `json:"consumerAttached"`
	}{intact(o.Pins, "/queue"), intact(o.Pins, "/worker"), attachedNow}, cause
}

// intact reports whether the target of a pin is there as it was pinned.
func intact(pins []rules.PinState, pointer string) bool {
	for _, p := range pins {
		if p.Pointer == pointer && (p.Missing || p.Changed) {
			return false
		}
	}
	return true
}

// attached says whether what an attachment brings in reaches ready versions, and that nothing it points at was lost.
func attached(o *Observation, need rules.Need) (bool, *rules.Cause) {
	if cause := rules.Pins(o.Pins); cause != nil {
		return false, cause
	}
	return rules.RouteReady(o.Aggregate, need)
}

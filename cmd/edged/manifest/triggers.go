package manifest

import (
	"encoding/json"
	"fmt"
	"strings"

	"edged/control/form"
	"edged/internal/cronexpr"
	"edged/internal/fault"
)

// Cron is one schedule of the worker.
type Cron struct {
	Expr      string // as written
	Canonical string // equal for expressions that fire at the same times
	Line      int
}

// crons reads the schedules with the node's own parser (D-51).
func (r *reader) crons() {
	list, pointers := r.texts("crons")
	seen := map[string]int{}
	for i, text := range list {
		expr, err := cronexpr.Parse(text)
		if err != nil {
			r.fault(pointers[i], "cron %.80q: %s", text, fault.Detail(err))
			continue
		}
		c := Cron{Expr: text, Canonical: expr.Canonical(), Line: r.lines.of(pointers[i])}
		if before, twice := seen[c.Canonical]; twice {
			r.fault(pointers[i], "cron %q fires when %q of line %d does", text, r.m.Crons[before].Expr, r.m.Crons[before].Line)
			continue
		}
		seen[c.Canonical] = len(r.m.Crons)
		r.m.Crons = append(r.m.Crons, c)
	}
}

// Consumer is a queue whose messages the worker handles.
type Consumer struct {
	Queue                  string // name of the queue in the worker's Space
	MaxBatchSize           int
	MaxBatchTimeoutSeconds int
	MaxConcurrency         int
	MaxRetries             int
	RetryDelaySeconds      int
	DeadLetterQueue        string // name of a queue, "" drops what was retried in vain
	Line                   int
}

// consumerNumber is one key of a consumer with the member of the spec that it becomes.
type consumerNumber struct {
	key, member string
	into        func(*Consumer) *int
}

var consumerNumbers = []consumerNumber{
	{"max_batch_size", "maxBatchSize", func(c *Consumer) *int { return &c.MaxBatchSize }},
	{"max_batch_timeout_seconds", "maxBatchTimeoutSeconds", func(c *Consumer) *int { return &c.MaxBatchTimeoutSeconds }},
	{"max_concurrency", "maxConcurrency", func(c *Consumer) *int { return &c.MaxConcurrency }},
	{"max_retries", "maxRetries", func(c *Consumer) *int { return &c.MaxRetries }},
	{"retry_delay_seconds", "retryDelaySeconds", func(c *Consumer) *int { return &c.RetryDelaySeconds }},
}

// consumers reads [[consumers]]. Like the Form it knows no defaults.
func (r *reader) consumers() {
	items, _ := read[[]any](r, r.tree, "", "consumers")
	seen := map[string]int{}
	for i, item := range items {
		pointer := fmt.Sprintf("/consumers/%d", i)
		table, ok := item.(map[string]any)
		if !ok {
			r.fault(pointer, "consumers must be tables: [[consumers]]")
			continue
		}
		c := r.consumer(pointer, table)
		if before, twice := seen[c.Queue]; twice && c.Queue != "" {
			r.fault(pointer, "queue %s has a consumer in line %d already", c.Queue, before)
			continue
		}
		seen[c.Queue] = c.Line
		r.m.Consumers = append(r.m.Consumers, c)
	}
	r.queueNames()
	r.cycles()
}

func (r *reader) consumer(pointer string, table map[string]any) Consumer {
	known := []string{"queue", "dead_letter_queue"}
	for _, n := range consumerNumbers {
		known = append(known, n.key)
	}
	r.keys(pointer, table, known...)
	c := Consumer{Line: r.lines.of(pointer)}
	for _, name := range []struct {
		key  string
		into *string
	}{{"queue", &c.Queue}, {"dead_letter_queue", &c.DeadLetterQueue}} {
		text, ok := read[string](r, table, pointer, name.key)
		if ok && !form.IsName(text) {
			r.fault(pointer+"/"+name.key, "%.140q is no name: 1 to 128 letters, digits, . _ and -, a letter or digit first", text)
		}
		*name.into = text
	}
	if _, present := table["queue"]; !present {
		r.fault(pointer, "queue is missing in [[consumers]]")
	}
	for _, n := range consumerNumbers {
		val, ok := read[int64](r, table, pointer, n.key)
		if _, present := table[n.key]; !present {
			r.fault(pointer, "%s is missing in [[consumers]]", n.key)
		}
		if !ok {
			continue
		}
		if why := judgeConsumer(n.member, val); why != "" {
			r.fault(pointer+"/"+n.key, "%s %s", n.key, why)
		}
		*n.into(&c) = int(val)
	}
	return c
}

// judgeConsumer asks the Form what it thinks of one number.
func judgeConsumer(member string, val int64) string {
	spec := map[string]any{"queue": map[string]string{"resourceUid": "q"}, "worker": map[string]string{"resourceUid": "w"}}
	for _, n := range consumerNumbers {
		spec[n.member] = 1
	}
	spec[member] = val
	raw, err := json.Marshal(spec)
	if err != nil {
		return err.Error()
	}
	if _, verdict := form.Builtin()[form.QueueConsumerURL].Parse(raw); verdict != nil {
		return sentence(verdict.Pointer, verdict.Sentence)
	}
	return ""
}

// queueNames refuses queues whose names something else in this manifest has.
func (r *reader) queueNames() {
	kinds := map[string]string{}
	for _, b := range r.m.Bindings {
		kinds[b.Target] = b.Kind
	}
	for i, c := range r.m.Consumers {
		for key, name := range map[string]string{"queue": c.Queue, "dead_letter_queue": c.DeadLetterQueue} {
			pointer := fmt.Sprintf("/consumers/%d/%s", i, key)
			if kind, ok := kinds[name]; ok && kind != Queue {
				r.fault(pointer, "%s is a %s in [bindings], and names are unique in a Space", name, kind)
			}
			if name != "" && name == r.m.Name {
				r.fault(pointer, "%s is the worker's own name, and names are unique in a Space", name)
			}
		}
	}
}

// cycles refuses dead letters that come back to where they were given up (CL-9), as far as this manifest tells.
func (r *reader) cycles() {
	next := map[string]string{}
	for _, c := range r.m.Consumers {
		next[c.Queue] = c.DeadLetterQueue
	}
	for i, c := range r.m.Consumers {
		path := []string{c.Queue}
		for at := c.DeadLetterQueue; at != "" && len(path) <= len(r.m.Consumers); at = next[at] {
			path = append(path, at)
			if at == c.Queue {
				r.fault(fmt.Sprintf("/consumers/%d/dead_letter_queue", i), "dead letters go round: %s", strings.Join(path, " to "))
				break
			}
		}
	}
}

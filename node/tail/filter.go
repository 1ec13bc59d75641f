package tail

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"edged/internal/fault"
	"edged/sandbox"
	"edged/sandbox/event"
)

// Parameters are the names that ParseFilter knows.
var Parameters = []string{"outcome", "status", "version", "sample", "console"}

// Filter says which of what a worker does is shown. The zero value of a field but Sample lets everything through.
type Filter struct {
	Outcome string  // one word of the outcomes, or "error": every one but ok and client_left
	Status  int     // 404, or 5 for every 5xx
	Version string  // how a version's UID begins
	Sample  float64 // the share that is shown, more than 0 to 1
	Console string  // all, errors or none of what the worker logs
}

// What of the console is shown.
const (
	consoleAll    = "all"
	consoleErrors = "errors"
	consoleNone   = "none"
)

// ParseFilter reads a filter from the parameters of a call. Without the parameter console everything that the worker logs is shown, or
// only its errors where invocations are chosen by their end: an entry does not know how its invocation will end. The error is Invalid.
func ParseFilter(q url.Values) (Filter, error) {
	bad := func(format string, args ...any) (Filter, error) {
		return Filter{}, fault.New(fault.Invalid, "tail.Filter", fmt.Sprintf(format, args...))
	}
	f := Filter{Outcome: q.Get("outcome"), Version: q.Get("version"), Sample: 1, Console: q.Get("console")}
	if f.Outcome != "" && f.Outcome != "error" && !knownOutcome(f.Outcome) {
		return bad("outcome must be error, or one of %s", strings.Join(Outcomes, ", "))
	}
	if s := q.Get("status"); s != "" {
		class, whole := strings.CutSuffix(strings.ToLower(s), "xx")
		n, err := strconv.Atoi(class)
		if err != nil || whole && (n < 1 || n > 5) || !whole && (n < 100 || n > 599) {
			return bad("status must be a number like 404, or a class like 5xx")
		}
		f.Status = n
	}
	if q.Has("sample") {
		n, err := strconv.ParseFloat(q.Get("sample"), 64)
		if err != nil || !(n > 0 && n <= 1) {
			return bad("sample must be more than 0 and at most 1")
		}
		f.Sample = n
	}
	switch f.Console {
	case "":
		if f.Console = consoleAll; f.Outcome != "" || f.Status != 0 {
			f.Console = consoleErrors
		}
	case consoleAll, consoleErrors, consoleNone:
	default:
		return bad("console must be all, errors or none")
	}
	return f, nil
}

// Outcomes are the ends that an invocation can have.
var Outcomes = []string{"ok", "client_left", "worker_error", "cpu_exceeded", "wall_exceeded", "memory_exceeded", "not_serving", "overloaded",
	"draining", "not_found", "body_too_large", "bad_request", "misdirected", "internal"}

func knownOutcome(s string) bool {
	for _, o := range Outcomes {
		if s == o {
			return true
		}
	}
	return false
}

func (f *Filter) takes(i *event.Invocation) bool {
	switch {
	case f.Outcome == "error" && (i.Outcome == "ok" || i.Outcome == "client_left"),
		f.Outcome != "" && f.Outcome != "error" && f.Outcome != i.Outcome,
		f.Status != 0 && f.Status != i.Status && f.Status != i.Status/100:
		return false
	}
	return strings.HasPrefix(i.Version, f.Version)
}

func (f *Filter) takesEntry(e *sandbox.Entry) bool {
	return strings.HasPrefix(e.Version, f.Version) &&
		(f.Console == consoleAll || f.Console == consoleErrors && e.Level >= sandbox.LevelError)
}

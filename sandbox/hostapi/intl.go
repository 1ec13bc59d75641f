package hostapi

import (
	"encoding/json"

	"edged/sandbox/engine"
	"edged/sandbox/hostapi/intl"
)

// intlNumber(text, options): the parts of a formatted number, kind and value in turn; undefined if text is no number. The
// options are resolved ones, as JSON.
func hostIntlNumber(in *engine.Instance, args []engine.Value) engine.Value {
	text, ok := in.String(args[0])
	var opt intl.NumberOptions
	if !ok || !intlOptions(in, args[1], &opt) {
		return badArgument(in, "intlNumber")
	}
	parts, ok := intl.Number(text, opt)
	return intlParts(in, parts, ok)
}

// intlDate(milliseconds, options): likewise, of a date; undefined if there is no such time or zone.
func hostIntlDate(in *engine.Instance, args []engine.Value) engine.Value {
	ms, ok := args[0].Float()
	var opt intl.DateOptions
	if !ok || !intlOptions(in, args[1], &opt) {
		return badArgument(in, "intlDate")
	}
	parts, ok := intl.Date(ms, opt)
	return intlParts(in, parts, ok)
}

// intlZone(name): the canonical name of a time zone, undefined if it is not supported.
func hostIntlZone(in *engine.Instance, args []engine.Value) engine.Value {
	name, ok := in.String(args[0])
	if !ok {
		return badArgument(in, "intlZone")
	}
	canonical, _, ok := intl.Zone(name)
	if !ok {
		return engine.Undefined
	}
	return in.NewLatin1([]byte(canonical))
}

// intlCurrency(code): how many digits behind the point a currency has.
func hostIntlCurrency(in *engine.Instance, args []engine.Value) engine.Value {
	code, ok := in.String(args[0])
	if !ok {
		return badArgument(in, "intlCurrency")
	}
	return engine.Int(int32(intl.CurrencyDigits(code)))
}

func intlOptions(in *engine.Instance, v engine.Value, to any) bool {
	var buf [512]byte
	text, ok := in.AppendString(buf[:0], v)
	return ok && len(text) < 4096 && json.Unmarshal(text, to) == nil
}

func intlParts(in *engine.Instance, parts []intl.Part, ok bool) engine.Value {
	if !ok {
		return engine.Undefined
	}
	list := make([]engine.Value, 0, 2*len(parts))
	for _, p := range parts {
		list = append(list, in.NewLatin1([]byte(p.Kind)), in.NewString([]byte(p.Value)))
	}
	return in.NewArray(list...)
}

package hostapi

import "edged/sandbox/engine"

// Levels of a console message, as the prelude numbers them.
const (
	LevelDebug = iota
	LevelLog
	LevelInfo
	LevelWarn
	LevelError
)

// Console takes what a worker logs. Whoever owns an instance puts an implementation into its User; what is logged by an
// instance without one is dropped. level is one of the above; text is valid UTF-8 of the guest's making, about 16 KiB at
// most, and the callee's own.
type Console interface {
	Console(level int, text string)
}

// maxLogBytes bounds a message; the prelude has cut it to as many characters.
const maxLogBytes = 3 * (16<<10 + 64)

// log(level, text)
func hostLog(in *engine.Instance, args []engine.Value) engine.Value {
	level, ok := args[0].Int()
	text, isString := in.String(args[1])
	if !ok || !isString || level < LevelDebug || level > LevelError {
		return badArgument(in, "log")
	}
	if c, ok := in.User.(Console); ok && len(text) <= maxLogBytes {
		c.Console(int(level), text)
	}
	return engine.Undefined
}

package hostapi

import "edged/sandbox/engine"

// classID(object): the engine's number for the object's class, which no script can forge; 0 for what is no object.
func hostClassID(in *engine.Instance, args []engine.Value) engine.Value {
	return engine.Int(in.ClassID(args[0]))
}

// hideSymbol(symbol): makes it a name that no script sees on an object. True if it is one now.
func hostHideSymbol(in *engine.Instance, args []engine.Value) engine.Value {
	if !args[0].IsSymbol() {
		return badArgument(in, "hideSymbol")
	}
	return engine.Bool(in.HideSymbol(args[0]))
}

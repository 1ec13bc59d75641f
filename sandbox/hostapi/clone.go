package hostapi

import "edged/sandbox/engine"

// classID(object): the engine's number for the object's class, which no script can forge; 0 for what is no object.
func hostClassID(in *engine.Instance, args []engine.Value) engine.Value {
	return engine.Int(in.ClassID(args[0]))
}

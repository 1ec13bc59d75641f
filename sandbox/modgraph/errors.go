package modgraph

import "edged/internal/fault"

// The load failures of module-worker §2.
var (
	ErrNotFound    = fault.Name(fault.Invalid, "module_not_found", 48)       // no importable entry of that path
	ErrUnsupported = fault.Name(fault.Invalid, "unsupported_media_type", 49) // the entry cannot be loaded as a module
	ErrSyntax      = fault.Name(fault.Invalid, "module_syntax_error", 50)    // the entry's bytes are no module of its type
	ErrHandler     = fault.Name(fault.Invalid, "handler_not_exported", 51)   // default export and declaration disagree
	// ErrEvaluation is our own word for what the contract calls an explicit failure: a module threw, or never settles.
	ErrEvaluation = fault.Name(fault.Invalid, "module_evaluation_error", 52)
)

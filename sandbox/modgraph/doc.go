// Package modgraph is the pure part of module loading: which module a specifier names, and what its bytes mean.
//
//	graph.go     Graph: the checked set of a bundle's modules
//	resolve.go   specifier + importing module -> path (fuzzed)
//	source.go    text and byte modules as JavaScript source
//	sourcemap.go which source map is a module's
//	errors.go    the load failures of module-worker §2
//
// Invariants: lookup is by exact path only; nothing here guesses, decodes or touches a network. A Graph is immutable.
//
// Not here: evaluating anything. Package sandbox gives a Graph's answers to the engine.
package modgraph

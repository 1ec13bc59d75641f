// Package urlpattern compiles the patterns of the URL Pattern standard into regular expressions of JavaScript. It is a
// pure core: no input and no output but strings; matching is left to the caller's engine.
//
//	pattern.go      Compile: from a pattern to its eight components
//	constructor.go  a pattern written as one string, split into components
//	init.go         Init: patterns and URLs given by component, and what they take from a base URL
//	canonical.go    what the URL parser makes of the text of a component
//	parser.go       a component's pattern into parts
//	regexp.go       parts into a regular expression, and back into a pattern
//	token.go        tokens
//
// Invariants: bad input is an error and costs time and memory linear in its length, which MaxBytes bounds.
//
// Not here: the URLPattern class (the prelude has it), regular expressions that a pattern holds: the engine judges them.
package urlpattern

// Package sourcemap finds the place in a source that a place in generated code came from (ECMA-426, source maps).
//
//	map.go     Map: parsed from JSON; where a position came from
//	vlq.go     the mappings, read forward from the nearest mark
//	rewrite.go the positions in the stacks of a text
//
// Invariants: bad input is an error or an unknown position; a Map costs about the length of its mappings, a look-up the
// reading of a few thousand bytes, whatever is in it.
//
// Not here: which map belongs to which module (sandbox/modgraph), index maps with sections: they are refused.
package sourcemap

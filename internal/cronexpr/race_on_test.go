//go:build race

package cronexpr

// comparisons is how many random expressions are compared with another implementation.
const comparisons = 10_000

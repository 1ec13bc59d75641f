//go:build !race

package engine

const slowness = 1

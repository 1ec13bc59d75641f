//go:build !linux

package sandbox

// Threads are scheduled as the system likes.
func longSlice()  {}
func shortSlice() {}

//go:build !linux

package main

import (
	"os"
	"os/exec"
)

func selfPath() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// dieWithParent has nothing to do: a child whose orders end ends itself.
func dieWithParent(*exec.Cmd) {}

func insistOnParent(func()) {}

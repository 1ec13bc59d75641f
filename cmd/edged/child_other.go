//go:build !linux

package main

import (
	"errors"
	"os"
	"os/exec"
)

// linkPair: a successor without a gap is Linux's alone.
func linkPair() (ours, theirs *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func aside(file *os.File) *os.File { return file }

func pathOf(program *os.File) string { return program.Name() }

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

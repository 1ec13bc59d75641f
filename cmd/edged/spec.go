package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// maxSpecBytes is what a node takes by default.
const maxSpecBytes = 8 << 20

// readSpec returns the JSON that an argument is or names. The node judges it.
func readSpec(cmd *cobra.Command, arg string) (json.RawMessage, error) {
	b := []byte(arg)
	if !strings.HasPrefix(strings.TrimSpace(arg), "{") {
		var err error
		if b, err = readInput(cmd, arg); err != nil {
			return nil, usagef("SPEC: %w", err)
		}
	}
	if b = bytes.TrimSpace(b); len(b) > maxSpecBytes {
		return nil, usagef("SPEC is over %d bytes", maxSpecBytes)
	}
	if !json.Valid(b) {
		return nil, usagef("SPEC is no JSON document")
	}
	return b, nil
}

func privateFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "private-inputs-file", "", "file with a JSON object of private inputs, name to value, or - for standard input")
}

// readPrivate reads private inputs, nil if there is no file. What it says is wrong shows no value.
func readPrivate(cmd *cobra.Command, file, spec string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	if file == "-" && spec == "-" {
		return nil, usagef("SPEC and --private-inputs-file cannot both be standard input")
	}
	b, err := readInput(cmd, file)
	if err != nil {
		return nil, usagef("--private-inputs-file: %w", err)
	}
	var values map[string]string
	if len(b) > maxSpecBytes || json.Unmarshal(b, &values) != nil || values == nil {
		return nil, usagef("--private-inputs-file: %s is not a JSON object of strings", file)
	}
	return values, nil
}

// readInput reads a file, or standard input for -, as far as a node would take it.
func readInput(cmd *cobra.Command, file string) ([]byte, error) {
	src := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		src = f
	}
	return io.ReadAll(io.LimitReader(src, maxSpecBytes+1))
}

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	enginewasm "edged/sandbox/engine/wasm"
)

// version and commit are set by the Makefile's linker flags.
var (
	version = "dev"
	commit  = ""
)

type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	Engine  string `json:"engine"`
}

func readVersion() versionInfo {
	v := versionInfo{Version: version, Commit: commit, Go: runtime.Version()}
	if v.Commit == "" {
		v.Commit = "unknown"
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					v.Commit = s.Value
				}
			}
		}
	}
	if _, m, err := enginewasm.Engine(); err != nil {
		v.Engine = "not built: run make engine"
	} else {
		v.Engine = fmt.Sprintf("%s %s, sha256 %.12s", m.Package, m.Version, m.EngineSHA256)
	}
	return v
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print version, commit, Go version and engine version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := readVersion()
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "edged %s\ncommit %s\n%s\nengine %s\n", v.Version, v.Commit, v.Go, v.Engine)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "machine output")
	return cmd
}

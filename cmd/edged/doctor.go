package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"edged/cmd/edged/doctor"
	enginewasm "edged/sandbox/engine/wasm"

	"edged/node"
)

func newDoctorCommand(stop *stopper) *cobra.Command {
	var opt node.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "look at the machine, the data directory and the configuration for what stops or endangers the node",
		Long: "Look at kernel, disk, clock, limits, addresses, certificates and formats for what stops or endangers a node, and say what follows and\n" +
			"what to do. It takes the flags, the file and the environment of edged run, works with the node stopped and running, and changes\n" +
			"nothing: durable writes are measured for two seconds at most, with a file that has no name. Exit code 1: something stops or\n" +
			"endangers the node.",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	runFlags(f, &opt)
	newRunCommand(stop).Flags().VisitAll(func(other *pflag.Flag) { // what else a configuration may say
		if f.Lookup(other.Name) == nil {
			f.AddFlag(other)
		}
	})
	f.BoolVar(&asJSON, "json", false, "machine output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config := f.Lookup("config").Value.String()
		if path, ok := os.LookupEnv(envName("config")); ok && config == "" {
			config = path
		}
		if err := applyConfig(f, config, os.LookupEnv); err != nil {
			return usageError{err}
		}
		if err := opt.Check(); err != nil {
			return usageError{explain(err)}
		}
		report := doctor.Judge(doctor.Gather(cmd.Context(), doctorOptions(opt)))
		if err := printDoctor(cmd, report, asJSON); err != nil {
			return err
		}
		if !report.Healthy {
			return exitCode(exitFailed)
		}
		return nil
	}
	return cmd
}

func doctorOptions(opt node.Options) doctor.Options {
	out := doctor.Options{DataDir: opt.DataDir, TLSDir: opt.TLSDir, MaxMemory: opt.MaxMemory, Inflight: opt.MaxInflight, Version: version}
	for _, l := range []doctor.Listener{{Flag: "control", Addr: opt.Control}, {Flag: "admin", Addr: opt.Admin}, {Flag: "https", Addr: opt.HTTPS}, {Flag: "http", Addr: opt.HTTP},
		{Flag: "peer", Addr: opt.Peer}, {Flag: "gossip", Addr: opt.Gossip}} {
		if l.Addr != "" {
			out.Listeners = append(out.Listeners, l)
		}
	}
	if _, m, err := enginewasm.Engine(); err == nil {
		out.Engine = fmt.Sprintf("%s %s", m.Package, m.Version)
	}
	return out
}

func printDoctor(cmd *cobra.Command, r *doctor.Report, asJSON bool) error {
	if asJSON {
		return printJSON(cmd, r)
	}
	return r.WriteText(cmd.OutOrStdout())
}

// Command mkengine builds the JavaScript engine that the node embeds: it takes the engine out of the pinned npm
// package, asserts that it is what sandbox/engine/abi expects, runs our pass over it and writes the result with a
// manifest. Run it through `make engine`, which fetches the package first.
//
//	main.go     flags, where the package is
//	package.go  reading the engine out of a package, the pin
//	build.go    the assertions and the pass
//	write.go    the output folder
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"edged/sandbox/engine/abi"
)

// packageVariable names a local copy of the npm package, for networks that reach no registry.
const packageVariable = "EDGED_ENGINE_PACKAGE"

func main() {
	if err := run(os.Args[1:], os.Getenv(packageVariable), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mkengine:", err)
		os.Exit(1)
	}
}

func run(args []string, local string, stdout io.Writer) error {
	flags := flag.NewFlagSet("mkengine", flag.ContinueOnError)
	pkg := flags.String("package", "sandbox/engine/npm/node_modules/"+abi.PackageName,
		"the npm package: its folder or its .tgz; "+packageVariable+" in the environment overrides the default")
	out := flags.String("out", "sandbox/engine/wasm/dist", "folder for the built engine")
	slow := flags.Bool("slow", false, "leave out the edits that make it faster, to compare results (docs/conformance.md)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == "package" })
	if local != "" && !given {
		*pkg = local
	}
	source, err := readPackage(*pkg)
	if err != nil {
		return err
	}
	built, err := build(source, *slow)
	if err != nil {
		return fmt.Errorf("%s: %w", *pkg, err)
	}
	wrote, err := write(*out, built)
	if err != nil {
		return err
	}
	if !wrote {
		fmt.Fprintf(stdout, "%s is up to date\n", *out)
		return nil
	}
	fmt.Fprintf(stdout, "%s: %s %s, %d loops counted in %d functions, %d bytes\n",
		*out, abi.PackageName, abi.PackageVersion, built.stats.Loops, built.stats.Functions, len(built.code))
	return nil
}

// Command edged-s3 serves the object buckets of one Space of a node to S3 clients.
//
//	main.go   flags, environment, keys, signals
//
// Not here: what is served (front).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"edged/control/client"
	"edged/s3/front"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stderr))
}

// run serves until ctx ends and returns the exit code: 2 for wrong usage or configuration, 1 for a front that failed.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), out io.Writer) int {
	opt, where, err := configure(args, lookup, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(out, "edged-s3:", err)
		return 2
	}
	found, err := client.Find(where)
	if err != nil {
		fmt.Fprintln(out, "edged-s3:", err)
		return 2
	}
	if opt.Node, err = client.New(found); err != nil {
		fmt.Fprintln(out, "edged-s3:", err)
		return 2
	}
	defer opt.Node.Close()
	opt.Log = slog.New(slog.NewTextHandler(out, nil))
	opt.Log.Info("serving object buckets", "listen", opt.Listen, "space", opt.Space, "tls", opt.CertFile != "")
	if err := front.Run(ctx, opt); err != nil {
		fmt.Fprintln(out, "edged-s3:", err)
		return 1
	}
	return 0
}

// envName is the environment variable of a flag, by the rule of edged.
func envName(name string) string {
	return "EDGED_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// configure reads the command line, then the environment for what it left alone, then the keys.
func configure(args []string, lookup func(string) (string, bool), out io.Writer) (opt front.Options, where client.Where, err error) {
	var keys string
	f := flag.NewFlagSet("edged-s3", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&where.DataDir, "data-dir", "./data", "data `directory` of a node that runs on this machine")
	f.StringVar(&where.ControlURL, "control-url", "", "control origin of the node, instead of --data-dir")
	f.StringVar(&where.CAFile, "ca-file", "", "PEM `file` of the CA that vouches for the node (default: the data directory's, or the system's with --control-url)")
	f.StringVar(&where.TokenFile, "token-file", "", "`file` with a bearer token of the role operator (default: the data directory's)")
	f.StringVar(&opt.Space, "space", "default", "Space whose object buckets are served, in the tenant of the token")
	f.StringVar(&opt.Listen, "listen", "127.0.0.1:7070", "`address` to serve at, or the path of a unix socket")
	f.StringVar(&opt.CertFile, "cert-file", "", "PEM `file` of the certificate (default: plain HTTP)")
	f.StringVar(&opt.KeyFile, "key-file", "", "PEM `file` of the certificate's key")
	f.StringVar(&opt.Region, "region", "us-east-1", "region that clients sign for")
	f.IntVar(&opt.MaxConnections, "max-connections", 1024, "how many connections at once")
	f.BoolVar(&opt.DropMetadata, "drop-metadata", false, "drop the metadata that no bucket keeps, where such an upload is refused without")
	f.StringVar(&keys, "keys-file", "", "`file` of two lines, access key and secret key (default: EDGED_S3_ACCESS_KEY and EDGED_S3_SECRET_KEY)")
	if err := f.Parse(args); err != nil {
		return opt, where, err
	}
	if f.NArg() > 0 {
		return opt, where, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	given := map[string]bool{}
	f.Visit(func(set *flag.Flag) { given[set.Name] = true })
	f.VisitAll(func(one *flag.Flag) {
		if value, ok := lookup(envName(one.Name)); ok && !given[one.Name] && f.Set(one.Name, value) != nil {
			err = errors.Join(err, fmt.Errorf("%s: the value %q is not one of --%s", envName(one.Name), value, one.Name))
		}
	})
	if err != nil {
		return opt, where, err
	}
	opt.Access, opt.Secret, err = readKeys(keys, lookup)
	return opt, where, err
}

// maxKeysBytes bounds the file of the keys.
const maxKeysBytes = 4096

// readKeys returns the pair of keys. An error never names them.
func readKeys(path string, lookup func(string) (string, bool)) (access, secret string, err error) {
	if path == "" {
		access, _ = lookup("EDGED_S3_ACCESS_KEY")
		secret, _ = lookup("EDGED_S3_SECRET_KEY")
		if access == "" || secret == "" {
			return "", "", errors.New("name the keys: --keys-file, or EDGED_S3_ACCESS_KEY and EDGED_S3_SECRET_KEY")
		}
		return access, secret, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", "", fmt.Errorf("--keys-file: %w", err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxKeysBytes))
	if err != nil {
		return "", "", fmt.Errorf("--keys-file: %w", err)
	}
	lines := strings.Fields(string(b))
	if len(lines) != 2 {
		return "", "", fmt.Errorf("--keys-file: %s must have two lines, the access key and the secret key", path)
	}
	return lines[0], lines[1], nil
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"edged/control/form"
)

func sqlTarget() storeTarget { return storeTarget{form: form.SQLiteDatabaseURL, path: "sql/databases"} }

func newSQLCommand() *cobra.Command {
	t := sqlTarget()
	var statements []string
	sh := shell{}
	cmd := &cobra.Command{
		Use:   "sql DB",
		Short: "run SQL on a database, interactively or not; export and import it (role operator)",
		Long: "Run SQL on a database while it serves. DB is the name of a SQLiteDatabase in a Space, or a UID with --uid. Without -e it reads\n" +
			"statements from standard input, each ended by a semicolon at the end of a line; on a terminal it is a shell with line editing and a\n" +
			"history for as long as it runs. .help lists what the shell knows besides SQL.\n\n" +
			"Statements only read unless --write is given; then rows may be changed, each statement in a transaction of its own. The schema\n" +
			"changes through migrations alone. The limits of a worker's calls hold: 10,000 rows, 8 MiB an answer.",
		Example: "  edged sql app -e 'select count(*) from notes'\n  edged sql app --write",
		Args:    cobra.ExactArgs(1),
	}
	t.storeFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVarP(&statements, "execute", "e", nil, "run this statement and end; may be given several times")
	f.BoolVar(&sh.write, "write", false, "allow statements that change rows")
	f.BoolVar(&sh.tagged, "tagged", false, "show the storage class of every value")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			sh.store, sh.json, sh.out = s, t.json, cmd.OutOrStdout()
			for _, text := range statements {
				if err := sh.statement(ctx, text); err != nil {
					return err
				}
			}
			if len(statements) > 0 {
				return nil
			}
			in := cmd.InOrStdin()
			if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) && !t.json {
				return sh.interact(ctx, f)
			}
			return sh.script(ctx, in)
		})
	}
	cmd.AddCommand(newSQLExport(), newSQLImport(), newSQLSlow())
	return cmd
}

func newSQLExport() *cobra.Command {
	t := sqlTarget()
	cmd := &cobra.Command{Use: "export DB [FILE]", Short: "write a database as SQL text, online", Args: cobra.RangeArgs(1, 2),
		Long: "Write a database as SQL text to FILE, which must not exist, or to standard output: as it is at one instant, with its ledger of\n" +
			"migrations, exact to the last bit of every value. A FILE is there only once it is whole."}
	t.storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			dump := func(w io.Writer) error { return s.c.Fetch(ctx, s.call("GET", "dump", nil, nil), w) }
			if len(args) == 1 {
				return dump(cmd.OutOrStdout())
			}
			size, err := saveFile(args[1], dump)
			if err != nil {
				return err
			}
			return t.say(cmd, map[string]any{"file": args[1], "bytes": size}, "saved %s, %d bytes", args[1], size)
		})
	}
	return cmd
}

func newSQLImport() *cobra.Command {
	t := sqlTarget()
	var yes bool
	cmd := &cobra.Command{Use: "import DB FILE", Short: "replace all of a database by what SQL text makes", Args: cobra.ExactArgs(2),
		Long: "Run SQL text, such as an export, in a new database and put that in the place of DB: all of it takes effect, or none. What DB held is\n" +
			"gone. Running calls end first, later ones wait. Up to 256 MiB; - is standard input, which needs --yes."}
	t.storeFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in, size := cmd.InOrStdin(), int64(-1)
		if args[1] != "-" {
			f, err := os.Open(args[1])
			if err != nil {
				return usageError{err}
			}
			defer f.Close()
			if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
				size = info.Size()
			}
			in = f
		} else if !yes {
			return usagef("standard input cannot be the text and the answer: give --yes")
		}
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			if !yes {
				if err := confirm(cmd, fmt.Sprintf("Replace all of %s? [y/N] ", args[0])); err != nil {
					return err
				}
			}
			if err := s.c.Send(ctx, s.call("PUT", "dump", nil, nil), bufio.NewReaderSize(in, 1<<20), size); err != nil {
				return err
			}
			return t.say(cmd, map[string]string{"imported": args[0]}, "imported %s", args[0])
		})
	}
	return cmd
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"

	"edged/internal/fault"
)

// shell runs statements on one database and shows what they give.
type shell struct {
	store  *store
	out    io.Writer
	json   bool
	write  bool
	tagged bool
}

// maxStatementText bounds what is collected for one statement; a node takes less.
const maxStatementText = 1 << 20

// statement runs one statement and shows its result.
func (sh *shell) statement(ctx context.Context, text string) error {
	path := "inspect"
	if sh.write {
		path = "operate"
	}
	var raw json.RawMessage
	if err := sh.store.c.Ask(ctx, sh.store.call("POST", path, nil, map[string]any{"sql": text, "params": []any{}}), &raw); err != nil {
		return err
	}
	if sh.json {
		_, err := fmt.Fprintf(sh.out, "%s\n", raw)
		return err
	}
	r, err := readResult(raw)
	if err != nil {
		return fault.Wrap(fault.Internal, "sql", err)
	}
	return r.show(sh.out, sh.tagged, sh.write)
}

// errQuit ends a shell.
var errQuit = errors.New("quit")

// line takes one line; rest is what a statement has so far, and comes back with the line in it until the statement is whole.
func (sh *shell) line(ctx context.Context, rest, line string) (string, error) {
	if trimmed := strings.TrimSpace(line); rest == "" && (trimmed == "" || strings.HasPrefix(trimmed, ".")) {
		return "", sh.command(ctx, strings.Fields(trimmed))
	}
	if rest += line + "\n"; len(rest) > maxStatementText {
		return "", fault.New(fault.TooLarge, "sql", "the statement is too long")
	}
	if !strings.HasSuffix(strings.TrimSpace(line), ";") {
		return rest, nil
	}
	return "", sh.statement(ctx, strings.TrimSpace(rest))
}

// command runs what begins with a dot.
func (sh *shell) command(ctx context.Context, words []string) error {
	if len(words) == 0 {
		return nil
	}
	switch cmd := words[0]; {
	case cmd == ".quit" || cmd == ".exit":
		return errQuit
	case cmd == ".help":
		_, err := io.WriteString(sh.out, shellHelp)
		return err
	case cmd == ".tables":
		return sh.names(ctx, "tables", nil)
	case cmd == ".schema":
		query := url.Values{}
		if len(words) > 1 {
			query.Set("name", words[1])
		}
		return sh.names(ctx, "schema", query)
	case cmd == ".check":
		var report struct{ Bytes, Migrations, Milliseconds int64 }
		if err := sh.store.c.Ask(ctx, sh.store.call("GET", "check", nil, nil), &report); err != nil {
			return err
		}
		_, err := fmt.Fprintf(sh.out, "sound: %d bytes, %d migrations applied, checked in %d ms\n", report.Bytes, report.Migrations, report.Milliseconds)
		return err
	case cmd == ".mode" && len(words) == 2 && (words[1] == "plain" || words[1] == "tagged"):
		sh.tagged = words[1] == "tagged"
		return nil
	}
	return fault.Newf(fault.Invalid, "sql", "%.80q is not known here: .help lists what is", strings.Join(words, " "))
}

const shellHelp = `.tables          names of tables and views
.schema [NAME]   the statements that made the schema, or those of one table, view, index or trigger
.mode plain      values as they are: NULL, x'00' for blobs
.mode tagged     values with their storage classes: integer 1, text "a"
.check           read the whole database and say whether it is sound
.quit            end, as does Ctrl-D
Anything else is SQL and runs at a semicolon that ends a line.
`

// names shows a list of texts, one a line.
func (sh *shell) names(ctx context.Context, path string, query url.Values) error {
	var list struct{ Tables, Statements []string }
	if err := sh.store.c.Ask(ctx, sh.store.call("GET", path, query, nil), &list); err != nil {
		return err
	}
	for _, name := range list.Tables {
		fmt.Fprintln(sh.out, printable(name))
	}
	for _, text := range list.Statements {
		fmt.Fprintln(sh.out, text+";")
	}
	return nil
}

// script runs what a reader has, up to the first failure.
func (sh *shell) script(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxStatementText)
	rest := ""
	for lines.Scan() {
		var err error
		if rest, err = sh.line(ctx, rest, lines.Text()); err == errQuit {
			return nil
		} else if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if strings.TrimSpace(rest) != "" {
		return sh.statement(ctx, strings.TrimSpace(rest)) // the end of the input ends it too
	}
	return nil
}

// interact is the shell on a terminal: a failure is told and the next line is read.
func (sh *shell) interact(ctx context.Context, tty *os.File) error {
	state, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return err
	}
	defer term.Restore(int(tty.Fd()), state)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{tty, os.Stdout}, "")
	if width, height, err := term.GetSize(int(tty.Fd())); err == nil && width > 0 {
		_ = t.SetSize(width, height) // without it lines are cut where they should not be
	}
	sh.out = t // turns line ends into those of a raw terminal
	return sh.converse(ctx, t)
}

// converse reads lines from a terminal until its end.
func (sh *shell) converse(ctx context.Context, t *term.Terminal) error {
	mode := "reading only; --write allows changes"
	if sh.write {
		mode = "changes take effect at once"
	}
	fmt.Fprintf(t, "%s, %s. .help lists commands.\n", sh.store.name, mode)
	for rest := ""; ; {
		t.SetPrompt(sh.store.name + "> ")
		if rest != "" {
			t.SetPrompt(strings.Repeat(" ", len(sh.store.name)) + ".> ")
		}
		line, err := t.ReadLine()
		if err != nil && err != term.ErrPasteIndicator {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if rest, err = sh.line(ctx, rest, line); err == errQuit {
			return nil
		} else if err != nil {
			if ctx.Err() != nil {
				return err
			}
			fmt.Fprintln(t, "error:", words(err))
		}
	}
}

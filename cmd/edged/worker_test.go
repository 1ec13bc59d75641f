package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// program lays out a worker with a schedule.
func program(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "worker.toml"), []byte("name = 'job'\nmain = 'm.js'\nhandlers = ['fetch', 'scheduled']\nendpoint = true\ncrons = ['0 3 * * *']\n[secrets]\nrequired = ['API_KEY']\n"))
	write(t, filepath.Join(dir, "m.js"), []byte("export default { fetch() { return new Response('"+text+"'); }, scheduled() {} };"))
	return dir
}

var digest = regexp.MustCompile(`job\.version\.[0-9a-f]{12}`)

// answered runs a command with an answer on standard input.
func answered(t *testing.T, answer string, args ...string) (string, error) {
	t.Helper()
	root := newRootCommand(newStopper())
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetIn(strings.NewReader(answer))
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// The life of a worker from the command line: a dry run, secrets from a file, weights, rollback, schedules, its end.
func TestWorkerCommands(t *testing.T) {
	t.Setenv("EDGED_DATA_DIR", startControl(t))
	dir := program(t, "one")
	if _, err := edged(t, "deploy", dir, "--dry-run"); err == nil || !strings.Contains(err.Error(), "the dry run found 1 to mend") {
		t.Errorf("a dry run without the secret: %v", err)
	}
	values := filepath.Join(t.TempDir(), "values.toml")
	write(t, values, []byte("API_KEY = 'from the file'\n"))
	if out := mustEdged(t, "deploy", dir, "--dry-run", "--secrets-file", values); !strings.Contains(out, "create  WorkerVersion") || !strings.HasSuffix(out, "\nnothing was changed (dry run)\n") {
		t.Errorf("dry run:\n%s", out)
	}
	if out := mustEdged(t, "resources", "list"); strings.Contains(out, "job") {
		t.Errorf("a dry run made something:\n%s", out)
	}
	mustEdged(t, "deploy", dir, "--secrets-file", values)
	t.Setenv("API_KEY", "from the environment")
	mustEdged(t, "deploy", program(t, "two"), "--weight", "25%")
	const weights = `75%  job.version.DIGEST
25%  job.version.DIGEST
`
	digits := func(text string) string { return digest.ReplaceAllString(text, "job.version.DIGEST") }
	got := mustEdged(t, "weights", "job")
	if digits(got) != weights {
		t.Errorf("weights\n%s", got)
	}
	second := strings.Fields(got)[3]
	const shifted = "95%  job.version.DIGEST  (was 75%)\n5%   job.version.DIGEST  (was 25%)\n"
	if out := digits(mustEdged(t, "weights", "job", second+"=5%")); out != shifted {
		t.Errorf("shifted\n%s", out)
	}
	if out := digits(mustEdged(t, "rollback", "job")); out != "75%  job.version.DIGEST  (was 95%)\n25%  job.version.DIGEST  (was 5%)\n" {
		t.Errorf("rollback\n%s", out)
	}
	golden := `{
  "space": "default",
  "worker": "job",
  "changed": true,
  "before": [
    {
      "version": "UID",
      "name": "` + strings.Fields(got)[1] + `",
      "weight": 7500
    },
    {
      "version": "UID",
      "name": "` + second + `",
      "weight": 2500
    }
  ],
  "after": [
    {
      "version": "UID",
      "name": "` + second + `",
      "weight": 10000
    }
  ]
}
`
	if out := same(mustEdged(t, "weights", "job", second+"=10000", "--json")); out != golden {
		t.Errorf("got\n%s\nwant\n%s", out, golden)
	}
	list := mustEdged(t, "cron", "list")
	if !strings.Contains(list, "default  job     0 3 * * *  yes    ") || !strings.Contains(list, "T03:00:00Z") {
		t.Errorf("schedules\n%s", list)
	}
}

// edged delete shows what goes and asks; no answer is a no; without --with-dependents nothing goes that something depends on.
func TestDeleteCommand(t *testing.T) {
	t.Setenv("EDGED_DATA_DIR", startControl(t))
	t.Setenv("API_KEY", "k")
	mustEdged(t, "deploy", program(t, "one"))
	before := mustEdged(t, "resources", "list", "--json")
	if _, err := edged(t, "delete", "job"); err == nil || !strings.Contains(err.Error(), "if --with-dependents is given:\nWorkerCronTrigger job.cron.") {
		t.Errorf("%v", err)
	}
	for _, answer := range []string{"", "n\n", "\n", "yesno\n"} {
		out, err := answered(t, answer, "delete", "job", "--with-dependents")
		if err == nil || !strings.Contains(out, "Delete these 6, for ever? [y/N] ") || !strings.Contains(err.Error(), "nothing was deleted") {
			t.Errorf("%q: %v\n%s", answer, err, out)
		}
	}
	if after := mustEdged(t, "resources", "list", "--json"); after != before {
		t.Errorf("something is gone:\n%s", after)
	}
	if out, err := answered(t, "y\n", "delete", "job", "--with-dependents"); err != nil || !strings.HasSuffix(out, "deleted ModuleWorker job\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if out := mustEdged(t, "resources", "list", "--json"); out != "[]\n" {
		t.Errorf("left\n%s", out)
	}
	mustEdged(t, "resources", "create", "bare", "{}", "--form", "ModuleWorker")
	if out := same(mustEdged(t, "delete", "bare", "--yes", "--json")); !strings.Contains(out, `"action": "deleted"`) {
		t.Errorf("%s", out)
	}
	if _, err := edged(t, "delete", "bare"); err == nil || !strings.Contains(err.Error(), `no ModuleWorker "bare"`) {
		t.Errorf("%v", err)
	}
}

// host-api §8: private inputs of a Resource come from a file, and are kept by an update without them.
func TestPrivateInputs(t *testing.T) {
	t.Setenv("EDGED_DATA_DIR", startControl(t))
	t.Setenv("API_KEY", "k")
	mustEdged(t, "deploy", program(t, "one"))
	var bundle, worker string
	for line := range strings.Lines(mustEdged(t, "resources", "list")) {
		f := strings.Fields(line)
		switch f[2] {
		case "WorkerBundle":
			bundle = f[len(f)-1]
		case "ModuleWorker":
			worker = f[len(f)-1]
		}
	}
	spec := `{"worker":{"resourceUid":"` + worker + `"},"bundle":{"resourceUid":"` + bundle + `"},"handlers":["fetch","scheduled"],"requiredSensitiveVars":["A"]}`
	file := filepath.Join(t.TempDir(), "private.json")
	create := []string{"resources", "create", "v", spec, "--form", "WorkerVersion"}
	if _, err := edged(t, create...); err == nil || !strings.Contains(err.Error(), "422 invalid_spec") {
		t.Errorf("without: %v", err)
	}
	for _, text := range []string{"null", `{"A":1}`, "x", "[]"} {
		write(t, file, []byte(text))
		if _, err := edged(t, append(create, "--private-inputs-file", file)...); !errors.As(err, &usageError{}) || !strings.Contains(err.Error(), "is not a JSON object of strings") {
			t.Errorf("%s: %v", text, err)
		}
	}
	write(t, file, []byte(`{"A":"s3cret"}`))
	mustEdged(t, append(create, "--private-inputs-file", file)...)
	mustEdged(t, "resources", "update", "v", spec)
	mustEdged(t, "resources", "update", "v", spec, "--private-inputs-file", file)
	write(t, file, []byte(`{"A":"other"}`))
	if _, err := edged(t, "resources", "update", "v", spec, "--private-inputs-file", file); err == nil || !strings.Contains(err.Error(), "422 invalid_spec") || strings.Contains(err.Error(), "other") {
		t.Errorf("another value: %v", err)
	}
}

// Every command explains itself, with examples whose commands, arguments and flags there are.
func TestHelp(t *testing.T) {
	root := newRootCommand(newStopper())
	var walk func(path []string)
	walk = func(path []string) {
		cmd, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short help %q", cmd.CommandPath(), cmd.Short)
		}
		for line := range strings.Lines(cmd.Long) {
			if len([]rune(line)) > 140 {
				t.Errorf("%s: a line of its help has %d characters", cmd.CommandPath(), len(line))
			}
		}
		exampleHolds(t, cmd)
		for _, child := range cmd.Commands() {
			walk(append(path[:len(path):len(path)], child.Name()))
		}
	}
	for _, cmd := range root.Commands() {
		walk([]string{cmd.Name()})
	}
}

func exampleHolds(t *testing.T, cmd *cobra.Command) {
	if strings.TrimSpace(cmd.Example) == "" {
		t.Errorf("%s has no example", cmd.CommandPath())
	}
	for line := range strings.Lines(cmd.Example) {
		line = strings.TrimSpace(line)
		if cmd.HasSubCommands() && !strings.HasPrefix(line, cmd.CommandPath()+" ") || !cmd.HasSubCommands() && line != cmd.CommandPath() && !strings.HasPrefix(line, cmd.CommandPath()+" ") {
			t.Errorf("%s: example of another command: %s", cmd.CommandPath(), line)
		}
		command := regexp.MustCompile(`"\$\([^)]*\)"`).ReplaceAllString(line, "x")
		command, _, _ = strings.Cut(command, " > ")
		command, _, _ = strings.Cut(command, " | ")
		command = regexp.MustCompile(`'[^']*'`).ReplaceAllStringFunc(command, func(q string) string { return strings.ReplaceAll(strings.Trim(q, "'"), " ", "_") })
		found, rest, err := newRootCommand(newStopper()).Find(strings.Fields(command)[1:])
		if err == nil {
			err = found.ParseFlags(rest)
		}
		if err == nil && found.Args != nil {
			err = found.Args(found, found.Flags().Args())
		}
		found.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "(required)") && !f.Changed {
				err = errors.Join(err, errors.New("--"+f.Name+" is missing"))
			}
		})
		if err != nil || found.HasSubCommands() && found.Name() != "sql" {
			t.Errorf("%s: its example %q does not hold: %v", cmd.CommandPath(), line, err)
		}
	}
}

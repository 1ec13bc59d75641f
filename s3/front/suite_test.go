package front

import (
	"bufio"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/versity/versitygw/tests/integration"
)

// line is one line of testdata/suite.txt: "run NAME", "alone NAME" or "skip PATTERN: reason".
type line struct{ verb, pattern, reason string }

func readSuite(t *testing.T) (lines []line) {
	t.Helper()
	file, err := os.Open("testdata/suite.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	scan := bufio.NewScanner(file)
	for scan.Scan() {
		text := scan.Text()
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		verb, rest, _ := strings.Cut(text, " ")
		pattern, reason, reasoned := strings.Cut(rest, ": ")
		if (verb != "run" && verb != "alone" && verb != "skip") || reasoned != (verb == "skip") {
			t.Fatalf("testdata/suite.txt: %q is no line of it", text)
		}
		lines = append(lines, line{verb, pattern, reason})
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// The integration suite of VersityGW: every test of it is run, or left out for a reason. A name that is written out goes before a
// pattern; the tests that look at all buckets there are run alone.
func TestSuite(t *testing.T) {
	lines := readSuite(t)
	all := integration.GetIntTests()
	used := make([]bool, len(lines))
	var parallel []string
	alone, left := 0, 0
	for name := range all {
		found := -1
		for i, l := range lines {
			match, err := path.Match(l.pattern, name)
			if err != nil {
				t.Fatal(err)
			}
			if match && (found < 0 || l.pattern == name) {
				found = i
			}
		}
		if found < 0 {
			t.Errorf("%s is neither run nor left out: testdata/suite.txt must name it", name)
			continue
		}
		used[found] = true
		switch lines[found].verb {
		case "run":
			parallel = append(parallel, name)
		case "skip":
			left++
		}
	}
	for i, l := range lines {
		if !used[i] {
			t.Errorf("testdata/suite.txt: %q explains nothing", l.pattern)
		}
	}
	for _, l := range lines {
		if l.verb == "alone" {
			t.Run(l.pattern, func(t *testing.T) { runOne(t, all[l.pattern]) })
			alone++
		}
	}
	for _, name := range parallel {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runOne(t, all[name])
		})
	}
	t.Logf("%d tests run, %d left out", len(parallel)+alone, left)
}

// runOne runs a test of the suite.
func runOne(t *testing.T, test integration.IntTest) {
	if err := test(world.conf); err != nil {
		t.Error(err)
	}
}

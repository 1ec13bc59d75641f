package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// NOTICE names every module that is linked into the program.
func TestNoticeIsComplete(t *testing.T) {
	notice, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
	if len(modules) < 10 {
		t.Fatalf("only %d modules listed: the listing is broken", len(modules))
	}
	for _, m := range modules {
		if m != "edged" && m != "edged/s3" && !strings.Contains(string(notice), "  "+m+" ") {
			t.Errorf("NOTICE lacks %s", m)
		}
	}
}

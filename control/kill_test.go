package control

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"edged/control/form"
)

// childDir tells a copy of this test binary to be the process that is killed.
const childDir = "EDGED_TEST_CONTROL_DIR"

// TestKilledChild is that process: it makes Resources and says so on standard output until it is killed.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("runs only as the child of TestKilledProcessLosesNothing")
	}
	n := startNode(t, dir, nil)
	keys.Store(int64(os.Getpid()) * 1_000_000) // another process has used the low ones
	for i := 0; ; i++ {
		uid := n.made(form.ModuleWorkerURL, fmt.Sprintf("w%d-%d", os.Getpid(), i), spec{})
		fmt.Println("made", uid)
		if i%4 == 1 {
			fmt.Println("made", n.code(fmt.Sprintf("b%d-%d", os.Getpid(), i), "fetch"))
		}
		if i%3 == 2 {
			n.succeeded(n.put(uid, spec{}))
			fmt.Println("updated", uid)
		}
		if i%5 == 4 {
			n.succeeded(n.del(uid))
			fmt.Println("deleted", uid)
		}
	}
}

// host-api §7.5 with a real process: whatever was answered before SIGKILL holds after it, three times over.
func TestKilledProcessLosesNothing(t *testing.T) {
	dir := t.TempDir()
	told := map[string]string{}
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$", "-test.count=1")
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		said := 0
		for lines.Scan() {
			if word, uid, ok := strings.Cut(lines.Text(), " "); ok && strings.HasPrefix(uid, "r-") {
				told[uid] = word
				said++
			}
			if said == 20+7*round {
				if err := cmd.Process.Kill(); err != nil { // what it still said before its end is read too
					t.Error(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		if said < 20 {
			t.Fatalf("the child said %d things", said)
		}
	}
	n := startNode(t, dir, nil)
	n.poll(func() bool { return len(n.c.state.Unfinished()) == 0 }) // what was under way goes on and ends
	for uid, word := range told {
		a := n.get(uid)
		switch {
		case word == "deleted" && a.status != 410:
			t.Errorf("%s was deleted and reads %d", uid, a.status)
		case word == "made" && a.status != 200 && a.status != 410:
			t.Errorf("%s was made and reads %d", uid, a.status)
		case word == "updated" && a.status == 200 && a.member(t, "generation").(float64) < 2:
			t.Errorf("%s was updated and reads %s", uid, a.body)
		case word == "updated" && a.status != 200 && a.status != 410:
			t.Errorf("%s was updated and reads %d", uid, a.status)
		}
	}
}

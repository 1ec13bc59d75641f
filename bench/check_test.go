package main

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// made is a document of one part.
func made(day int, part string, results ...result) document {
	for i := range results {
		results[i].Part = part
	}
	return document{Format: documentFormat, Suite: "rooms", Date: time.Date(2026, 12, day, 0, 0, 0, 0, time.UTC), Commit: "c" + part,
		Parts: []partRun{{Name: part}}, Results: results}
}

// around is a ratio whose pairs lie within a share of their median.
func around(name string, value, share float64) result {
	return result{Name: name, Ratio: true, Value: value, Low: value * (1 - share), High: value * (1 + share),
		Each: []float64{value * (1 - share), value, value * (1 + share)}}
}

func lower(res result) result { res.Lower = true; return res }

// A ratio regresses if it is worse by more than the spread of both runs, in the direction that is its own.
func TestCompareVerdicts(t *testing.T) {
	for _, tt := range []struct {
		name      string
		then, now result
		want      string
	}{
		{"equal", around("r", 0.5, 0.02), around("r", 0.5, 0.02), same},
		{"worse within the spread of both", around("r", 0.5, 0.1), around("r", 0.42, 0.1), same},
		{"worse beyond the spread of both", around("r", 0.5, 0.1), around("r", 0.4, 0.1), regressed},
		{"the same loss when the runs were steady", around("r", 0.5, 0.02), around("r", 0.42, 0.02), regressed},
		{"two quiet runs differ a little", around("r", 0.5, 0.001), around("r", 0.48, 0.001), same},
		{"better", around("r", 0.5, 0.02), around("r", 0.6, 0.02), better},
		{"lower is better, higher", lower(around("r", 2, 0.02)), lower(around("r", 3, 0.02)), regressed},
		{"lower is better, lower", lower(around("r", 2, 0.02)), lower(around("r", 1, 0.02)), better},
		{"too wide to tell", around("r", 0.5, 0.4), around("r", 0.45, 0.4), unclear},
		{"wide, and far worse", around("r", 0.5, 0.4), around("r", 0.1, 0.4), regressed},
		{"measured once, a quarter worse", result{Name: "r", Ratio: true, Value: 1, Low: 1, High: 1}, result{Name: "r", Ratio: true, Value: 0.8, Low: 0.8, High: 0.8}, same},
		{"measured once, half of it", result{Name: "r", Ratio: true, Value: 1, Low: 1, High: 1}, result{Name: "r", Ratio: true, Value: 0.5, Low: 0.5, High: 0.5}, regressed},
	} {
		c := compare([]document{made(1, "hello", tt.then)}, made(2, "hello", tt.now))
		if len(c.changes) != 1 || c.changes[0].verdict != tt.want || (len(c.bad) > 0) != (tt.want == regressed) {
			t.Errorf("%s: %+v, bad %q, want %q", tt.name, c.changes, c.bad, tt.want)
		}
	}
}

// One pair that something else on the machine has hit must not hide a loss of all the others.
func TestWidthForgivesOnePair(t *testing.T) {
	steady := result{Value: 0.5, Low: 0.49, High: 0.51, Each: []float64{0.49, 0.495, 0.5, 0.505, 0.51}}
	for _, each := range [][]float64{{0.1, 0.495, 0.5, 0.505, 0.51}, {0.49, 0.495, 0.5, 0.505, 2}} {
		hit := result{Value: 0.5, Low: each[0], High: each[4], Each: each}
		if got := hit.width(); got > steady.width() {
			t.Errorf("width of %v = %.3f, of a steady run %.3f", each, got, steady.width())
		}
	}
	two := result{Value: 0.5, Low: 0.1, High: 0.51, Each: []float64{0.1, 0.2, 0.5, 0.505, 0.51}}
	if got := two.width(); got < 0.3 {
		t.Errorf("two of five pairs far away: width %.3f", got)
	}
}

// The last kept run of each part counts; the run itself, other suites and runs in which the part failed do not.
func TestCompareTakesTheLastOfEachPart(t *testing.T) {
	old, failed, peers := made(1, "hello", around("r", 0.3, 0.01)), made(4, "hello", around("r", 9, 0.01)), made(5, "hello", around("r", 9, 0.01))
	failed.Parts[0].Failed, peers.Suite = "no", "peers"
	last, other := made(2, "hello", around("r", 0.5, 0.01)), made(3, "echo", around("e", 0.6, 0.01))
	now := made(6, "hello", around("r", 0.5, 0.01))
	now.Parts = append(now.Parts, partRun{Name: "echo"})
	now.Results = append(now.Results, result{Part: "echo", Name: "e", Ratio: true, Value: 0.1, Low: 0.1, High: 0.1})
	c := compare([]document{old, last, other, failed, peers, now}, now)
	want := []string{"echo: e: -83 %"}
	if !reflect.DeepEqual(c.bad, want) || len(c.changes) != 2 || c.changes[0].then.Value != 0.5 || c.changes[0].verdict != same {
		t.Errorf("bad %q, want %q; changes %+v", c.bad, want, c.changes)
	}
}

// What only one side has is named, and is no regression by itself; a part that was measured before and fails now is one.
func TestCompareNamesWhatIsMissing(t *testing.T) {
	then := made(1, "hello", around("gone", 0.5, 0.01), around("not measured now", 0.5, 0.01))
	then.Parts = append(then.Parts, partRun{Name: "echo"}, partRun{Name: "kv"})
	now := made(2, "hello", around("new", 0.5, 0.01), result{Name: "not measured now", Ratio: true, Missing: true}, result{Name: "absolute", Value: 1, Unit: "ms"})
	now.Parts = append(now.Parts, partRun{Name: "fleet"}, partRun{Name: "kv", Failed: "no wrk"}, partRun{Name: "soak", Failed: "no"})
	c := compare([]document{then}, now)
	want := []string{"hello: new: not in the last run (chello)", "hello: gone: not measured in this run", "hello: not measured now: not measured in this run",
		"fleet: no kept run has measured it", "kv: failed: no wrk", "soak: failed, and no kept run has measured it: no", "echo: not in this run"}
	if !reflect.DeepEqual(c.notes, want) {
		t.Errorf("notes %q\nwant  %q", c.notes, want)
	}
	if want := []string{"kv failed"}; !reflect.DeepEqual(c.bad, want) || len(c.changes) != 0 {
		t.Errorf("bad %q, want %q; changes %+v", c.bad, want, c.changes)
	}
}

// A check that compared nothing has shown nothing: it fails, as one with a regression does, and says what to do.
func TestCheckAnswers(t *testing.T) {
	var out strings.Builder
	r := report{out: &out}
	kept := []document{made(1, "hello", around("isolation request / bare fasthttp", 0.5, 0.02))}
	for _, tt := range []struct {
		now  document
		want string // of the error; "" is none
	}{
		{made(2, "hello", around("isolation request / bare fasthttp", 0.51, 0.02)), ""},
		{made(2, "hello", around("isolation request / bare fasthttp", 0.25, 0.02)), "regressed: hello: isolation request / bare fasthttp: -50 %"},
		{made(2, "echo", around("e", 0.5, 0.02)), "nothing was compared"},
	} {
		err := compare(kept, tt.now).print(&r, tt.now)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("check of %v: %v, want %q", tt.now.Results, err, tt.want)
		}
	}
	if !strings.Contains(out.String(), "0.5 (0.49-0.51)") || !strings.Contains(out.String(), "-50 % (5 % tolerated): REGRESSED") {
		t.Errorf("the table lacks the spread or the verdict:\n%s", out.String())
	}
}

// What is written is read again, each result on a line of its own; what is no document is refused with the name of the file.
func TestDocumentSurvivesItsFile(t *testing.T) {
	r := report{part: "hello", out: new(strings.Builder)}
	r.reach("ours / theirs", pairs([]float64{1, 2, 3}, []float64{2, 2, 2}), 0.4, false, "")
	r.target("measured once / theirs", 0.5, 2, true, "")
	r.target("absolute", 3, 2, true, "ms")
	r.ratio("never measured", spreadOf(nil), false)
	r.target("a count", 0, 0, true, "")
	r.percentiles("worker", []float64{1, 2}, []float64{3, 4})
	doc := made(1, "hello")
	doc.Results = r.results
	path := filepath.Join(t.TempDir(), "sub", "run.json")
	if err := prepare(path); err != nil {
		t.Fatal(err)
	}
	if err := doc.write(path); err != nil {
		t.Fatal(err)
	}
	got, err := readDocument(path)
	if err != nil {
		t.Fatal(err)
	}
	if doc.file = path; !reflect.DeepEqual(got, doc) {
		t.Errorf("read %+v\nwrote %+v", got, doc)
	}
	if first := got.Results[0]; !first.Ratio || first.Value != 1 || first.Low != 0.5 || first.High != 1.5 || *first.Target != 0.4 || !*first.Met {
		t.Errorf("a ratio of pairs became %+v", first)
	}
	if !got.Results[1].Ratio || !got.Results[1].Lower || got.Results[2].Ratio || *got.Results[2].Met || !got.Results[3].Missing || got.Results[4].Ratio || got.Results[6].Percentile != 99 {
		t.Errorf("results %+v", got.Results)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(b), "\n    {\"part\":"); n != len(doc.Results) {
		t.Errorf("%d lines of results, want %d:\n%s", n, len(doc.Results), b)
	}
	for name, text := range map[string]string{"other.json": `{"format":2}`, "cut.json": string(b[:len(b)/2]), "large.json": string(b) + strings.Repeat(" ", documentBytes)} {
		bad := filepath.Join(filepath.Dir(path), name)
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readDocument(bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of a folder in a working tree only committed documents are history, oldest first.
func TestHistoryIsWhatIsCommitted(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=bench", "-c", "user.email=bench@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	for i, name := range []string{"b.json", "a.json", "uncommitted.json"} {
		if err := made(i+1, "hello").write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (all []string) {
		t.Helper()
		docs, err := readHistory(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			all = append(all, filepath.Base(d.file))
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"b.json", "a.json", "uncommitted.json"}) {
		t.Errorf("outside of a working tree: %v", got)
	}
	git("init", "-q")
	git("add", "a.json", "b.json")
	git("commit", "-q", "-m", "kept")
	if got := names(); !slices.Equal(got, []string{"b.json", "a.json"}) {
		t.Errorf("in a working tree: %v", got)
	}
}

// A ratio's spread comes from pairs measured in the same turn: what slows both in one turn leaves it alone.
func TestPairs(t *testing.T) {
	s := pairs([]float64{50, 25, 51}, []float64{100, 50, 100})
	if s.low != 0.5 || s.high != 0.51 || s.median != 0.5 {
		t.Errorf("pairs = %+v", s)
	}
	if s := pairs(nil, []float64{1}); !math.IsNaN(s.median) {
		t.Errorf("pairs of nothing = %+v", s)
	}
	if got := blocks([]float64{1, 2, 9, 4, 5, 6}, 2); !slices.Equal(got, []float64{2, 5}) {
		t.Errorf("blocks = %v", got)
	}
	if got := blocks([]float64{7}, 5); !slices.Equal(got, []float64{7}) {
		t.Errorf("blocks of one value = %v", got)
	}
	if s := spreadOf([]float64{4, 2}); s.median != 3 {
		t.Errorf("the median of two values = %v", s.median)
	}
}

// A misspelt part is an error that lists the others; several are named with commas.
func TestPartsByName(t *testing.T) {
	parts := []part{{name: "hello"}, {name: "echo"}}
	for only, ok := range map[string]bool{"": true, "hello": true, "echo,hello": true, "hello,ehco": false, "hello,": false} {
		if err := (config{only: only}).known(parts); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "hello, echo") {
			t.Errorf("-only %q: %v", only, err)
		}
	}
}

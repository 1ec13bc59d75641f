package main

import (
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func reaches(target float64) *float64 { return &target }

// example is a run with a ratio that has a target, one that has none, a latency, and what cannot be drawn.
func example(day int) document {
	yes := true
	return document{Format: 1, Suite: "rooms", Date: time.Date(2026, 12, day, 0, 0, 0, 0, time.UTC), Commit: "0123456789ab", Machine: "a machine",
		Results: []result{{Part: "hello", Name: "isolation request / bare fasthttp", Value: 0.5, Low: 0.4, High: 0.6, Ratio: true, Target: reaches(0.4), Met: &yes},
			{Part: "echo", Name: "once", Value: 0.06, Low: 0.06, High: 0.06, Ratio: true},
			{Part: "hello", Name: "edged, p99", Unit: "ms", Value: 7, Low: 0, High: 9, Percentile: 99},
			{Part: "hello", Name: "never measured", Ratio: true, Missing: true}, {Part: "hello", Name: "nothing", Ratio: true}}}
}

func keep(t *testing.T, d document, path string) {
	t.Helper()
	b, err := json.Marshal(struct {
		document
		Results []map[string]any `json:"results"`
	}{d, marshalled(t, d.Results)})
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func marshalled(t *testing.T, results []result) (all []map[string]any) {
	t.Helper()
	for _, r := range results {
		all = append(all, map[string]any{"part": r.Part, "name": r.Name, "unit": r.Unit, "value": r.Value, "low": r.Low, "high": r.High, "ratio": r.Ratio,
			"lowerIsBetter": r.Lower, "missing": r.Missing, "percentile": r.Percentile, "target": r.Target, "met": r.Met})
	}
	return all
}

// Every picture is a PNG of a size that can be read, also of one run without history and of values measured once; what cannot be drawn is
// left out.
func TestPictures(t *testing.T) {
	dir := t.TempDir()
	kept, out := filepath.Join(dir, "kept"), filepath.Join(dir, "out")
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	keep(t, example(1), filepath.Join(kept, "1.json"))
	keep(t, example(2), filepath.Join(dir, "now.json"))
	for _, history := range []string{"", kept} {
		if err := run(out, history, []string{filepath.Join(dir, "now.json")}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"rooms-ratios.png", "rooms-latency.png", "rooms-history-hello.png", "rooms-history-echo.png"} {
			f, err := os.Open(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			img, err := png.Decode(f)
			f.Close()
			if err != nil || img.Bounds().Dx() < 800 || img.Bounds().Dy() < 100 {
				t.Errorf("%s: %v, %v", name, img.Bounds(), err)
			}
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
}

// A document that is none, and one whose names would lead out of the folder, are refused.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	far, other := example(1), example(1)
	far.Results[0].Part, other.Format = "../up", 2
	keep(t, far, filepath.Join(dir, "far.json"))
	keep(t, other, filepath.Join(dir, "other.json"))
	for _, name := range []string{"far.json", "other.json", "absent.json"} {
		if err := run(filepath.Join(dir, "out"), "", []string{filepath.Join(dir, name)}); err == nil {
			t.Errorf("%s was drawn", name)
		}
	}
}

package doctor

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"edged/internal/disk"
)

// On any machine: looking ends, leaves nothing behind, and finds under the same names again; the JSON reads back as it was.
func TestThisMachine(t *testing.T) {
	dir := t.TempDir()
	opt := Options{DataDir: dir, TLSDir: t.TempDir(), MaxMemory: 128 << 20, Engine: "engine", Listeners: []Listener{{"http", "127.0.0.1:0"}}}
	var before []string
	for range 2 {
		r := Judge(Gather(t.Context(), opt))
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var again Report
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&again); err != nil || !reflect.DeepEqual(r, &again) {
			t.Errorf("%v: read back\n%+v\nwas\n%+v", err, again, r)
		}
		var names []string
		for _, f := range r.Findings {
			names = append(names, f.Check)
		}
		if before != nil && !reflect.DeepEqual(names, before) {
			t.Errorf("found %v, before %v", names, before)
		}
		before = names
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// The measurement counts rounds of one block, and stays within its bounds.
func TestMeasureFsync(t *testing.T) {
	f := measureFsync(t.Context(), t.TempDir())
	if f.Err != nil || f.Rounds < 1 || f.Rounds > fsyncRounds || f.Median <= 0 || f.P99 < f.Median || f.Type == "" {
		t.Errorf("%+v", f)
	}
	if f := measureFsync(t.Context(), filepath.Join(t.TempDir(), "none")); f.Err == nil {
		t.Error("a directory that is not there was measured")
	}
}

// A directory that a process holds, one that is not there yet, and one that is a file.
func TestLookAtData(t *testing.T) {
	dir := t.TempDir()
	if d := lookAtData(dir); d.Locked || d.Err != nil || !d.Made {
		t.Errorf("free: %+v", d)
	}
	lock, err := disk.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := lookAtData(dir); !d.Locked {
		t.Errorf("held: %+v", d)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if d := lookAtData(dir); d.Locked {
		t.Errorf("given up: %+v", d)
	}
	if d := lookAtData(filepath.Join(dir, "a", "b")); d.Made || d.Existing != dir || d.Err != nil || d.Free == 0 {
		t.Errorf("not there yet: %+v", d)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d := lookAtData(file); d.Err == nil {
		t.Errorf("a file: %+v", d)
	}
}

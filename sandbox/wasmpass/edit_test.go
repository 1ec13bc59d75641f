package wasmpass_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"edged/internal/fault"
	"edged/sandbox/wasmpass"
)

// Whatever referred to a function refers to the same one after an import moved them all.
func TestAddImportRenumbers(t *testing.T) {
	want := map[string]uint64{"a": 11, "b": 21, "c": 50, "d": 11, "e": 11, "g": 52}
	m := decode(t, callModule())
	mod := instantiate(t, m.Encode(), number(50), number(60))
	for name, w := range want {
		if got := callExport(t, mod, name); got != w {
			t.Fatalf("before: %s = %d, want %d", name, got, w)
		}
	}
	at, err := m.AddImport("h", "g", funcType(t, "-> i32"))
	if err != nil || at != 1 {
		t.Fatalf("AddImport = %d, %v; want 1", at, err)
	}
	mod = instantiate(t, m.Encode(), number(50), number(60))
	for name, w := range want {
		if got := callExport(t, mod, name); got != w {
			t.Errorf("after: %s = %d, want %d", name, got, w)
		}
	}
	if _, err := m.AddImport("h", "g", funcType(t, "-> i32")); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("second import of the same name: %v", err)
	}
}

// An imported function can be called through the entry that AppendTable made, also where the table was full.
func TestAppendTable(t *testing.T) {
	m := decode(t, callModule())
	fn, err := m.AddImport("h", "g", funcType(t, "-> i32"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := m.AppendTable(fn)
	if err != nil || at != 2 {
		t.Fatalf("AppendTable = %d, %v; want 2", at, err)
	}
	// Function d calls table 0 with its constant; make that constant 2.
	code := m.Encode()
	i := indexOf(t, code, []byte{0x41, 0, 0x11, 0, 0, end})
	code[i+1] = byte(at)
	if got := callExport(t, instantiate(t, code, number(50), number(60)), "d"); got != 60 {
		t.Errorf("entry %d gives %d, want 60", at, got)
	}
}

func TestAppendTableRefuses(t *testing.T) {
	m := decode(t, loopModule())
	if _, err := m.AppendTable(1); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("without a table: %v", err)
	}
	if _, err := m.AppendTable(3); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a function that does not exist: %v", err)
	}
}

// Each round of a loop costs one step, and every Countdown steps the host is asked once.
func TestMeterCountsLoops(t *testing.T) {
	for _, tc := range []struct {
		name    string
		opt     wasmpass.Meter
		export  string
		rounds  uint64
		polls   int
		counter uint64
	}{
		{"loop", wasmpass.Meter{Countdown: 10}, "run", 1009, 100, 1},
		{"loop of one", wasmpass.Meter{Countdown: 1}, "run", 5, 5, 1},
		{"default", wasmpass.Meter{}, "run", 30_001, 3, 9999},
		{"recursion uncounted", wasmpass.Meter{Countdown: 10}, "deep", 100, 0, 10},
		{"recursion", wasmpass.Meter{Countdown: 10, Entries: true}, "deep", 99, 10, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := decode(t, loopModule())
			stats, err := m.AddMeter(tc.opt)
			if err != nil || stats != (wasmpass.MeterStats{Functions: 2, Loops: 1}) {
				t.Fatalf("AddMeter = %v, %v", stats, err)
			}
			polls := 0
			mod := instantiate(t, m.Encode(), func() uint64 { polls++; return 1 }, number(0))
			callExport(t, mod, tc.export, tc.rounds)
			if got := mod.ExportedGlobal(wasmpass.CounterExport).Get(); polls != tc.polls || got != tc.counter {
				t.Errorf("%d polls, counter %d; want %d and %d", polls, got, tc.polls, tc.counter)
			}
		})
	}
}

// The host learns of each poll whether a loop of the marked function brought it.
func TestMeterMarks(t *testing.T) {
	for function, want := range map[uint32]uint64{1: 1, 2: 0} { // run has the loop, the other has none
		m := decode(t, loopModule())
		if _, err := m.AddMeter(wasmpass.Meter{Countdown: 10, Marked: function}); err != nil {
			t.Fatal(err)
		}
		var mod api.Module
		var seen []uint64
		mod = instantiate(t, m.Encode(), func() uint64 {
			mark := mod.ExportedGlobal(wasmpass.MarkExport).(api.MutableGlobal)
			seen = append(seen, mark.Get())
			mark.Set(0)
			return 1
		}, number(0))
		callExport(t, mod, "run", 35)
		if !slices.Equal(seen, []uint64{want, want, want}) {
			t.Errorf("function %d is marked: the polls of run saw %v", function, seen)
		}
	}
}

func TestMeterRefuses(t *testing.T) {
	for name, opt := range map[string]wasmpass.Meter{
		"negative":          {Countdown: -1},
		"too large":         {Countdown: math.MaxInt32},
		"wrong type":        {Interrupt: 1},
		"no such function":  {Interrupt: 3},
		"marks no function": {Marked: 9},
	} {
		if _, err := decode(t, loopModule()).AddMeter(opt); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := decode(t, loopModule())
	if _, err := m.AddMeter(wasmpass.Meter{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.AddMeter(wasmpass.Meter{}); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("metered twice: %v", err)
	}
}

// The dispatcher converts arguments and results of every number type, drops none and makes up none but zeros.
func TestDispatcher(t *testing.T) {
	code := wasmOf(
		sec(1, 6,
			0x60, 2, tI32, tI64, 1, tI64, // a: zero-extended first + second
			0x60, 1, tF32, 1, tF32, // b, c: the parameter, negated
			0x60, 1, tF64, 1, tF64,
			0x60, 7, tI32, tI32, tI32, tI32, tI32, tI32, tI32, 1, tI32, // d: sixth minus seventh
			0x60, 0, 0, // e
			0x60, 0, 2, tI32, tI32), // p: two results
		sec(3, 6, 0, 1, 2, 3, 4, 5),
		sec(7, 6, 1, 'a', 0, 0, 1, 'b', 0, 1, 1, 'c', 0, 2, 1, 'd', 0, 3, 1, 'e', 0, 4, 1, 'p', 0, 5),
		codeSec(
			[]byte{0x20, 0, 0xad, 0x20, 1, 0x7c, end},
			[]byte{0x20, 0, 0x8c, end},
			[]byte{0x20, 0, 0x9a, end},
			[]byte{0x20, 5, 0x20, 6, 0x6b, end},
			[]byte{end},
			[]byte{0x41, 1, 0x41, 2, end},
		),
	)
	m := decode(t, code)
	if err := m.AddDispatcher("x", []string{"a", "b", "c", "d", "e"}); err != nil {
		t.Fatal(err)
	}
	mod := instantiate(t, m.Encode(), number(0), number(0))
	for _, tc := range []struct{ op, a, b, f, want uint64 }{
		{0, 0xaaaa_ffff_ffff, 5, 0, 0x1_0000_0004}, // only the low half of an i32 counts
		{1, uint64(math.Float32bits(1.5)), 0, 0, uint64(math.Float32bits(-1.5))},
		{2, math.Float64bits(1.5), 0, 0, math.Float64bits(-1.5)},
		{3, 1, 2, 7, 7},
		{4, 1, 2, 7, 0},
	} {
		if got := callExport(t, mod, "x", tc.op, tc.a, tc.b, 3, 4, 5, tc.f); got != tc.want {
			t.Errorf("op %d = %#x, want %#x", tc.op, got, tc.want)
		}
	}
	if _, err := mod.ExportedFunction("x").Call(t.Context(), 5, 0, 0, 0, 0, 0, 0); err == nil {
		t.Error("an operation beyond the list does not trap")
	}
	for name, list := range map[string][]string{"missing": {"nope"}, "two results": {"p"}} {
		if err := decode(t, code).AddDispatcher("x", list); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := decode(t, code).AddDispatcher("a", nil); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a name that is taken: %v", err)
	}
}

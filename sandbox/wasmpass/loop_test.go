package wasmpass_test

import (
	"slices"
	"testing"

	"edged/sandbox/wasmpass"
)

// branchModule exports run(n), whose loops are left and gone round in every way there is: by br, br_if and br_table, to
// the loop itself, to blocks inside and outside of it, from a loop inside a loop, by return, by reaching the end, with
// a result and with a parameter. Local 1 is the sum that is returned.
func branchModule() []byte {
	get, add := func(local byte) []byte { return []byte{0x20, local} }, func(k byte) []byte { return []byte{0x20, 1, 0x41, k, 0x6a, 0x21, 1} }
	inner := slices.Concat( // counts local 2 down from n % 5; at 3 goes on with the outer loop, which is label 2 here
		get(0), []byte{0x41, 5, 0x70, 0x21, 2, 0x03, 0x40},
		add(1),
		[]byte{0x20, 2, 0x41, 3, 0x46, 0x04, 0x40, 0x20, 2, 0x41, 1, 0x6b, 0x21, 2, 0x0c, 2, end},
		[]byte{0x20, 2, 0x41, 1, 0x6b, 0x22, 2, 0x41, 0, 0x4a, 0x0d, 0, end})
	withParam := slices.Concat( // adds up 3, 2, 1; the block's type is a function type
		[]byte{0x41, 3, 0x03, 0}, []byte{0x22, 2, 0x20, 1, 0x6a, 0x21, 1, 0x20, 2, 0x41, 1, 0x6b, 0x22, 2, 0x20, 2, 0x0d, 0, end, 0x1a})
	body := slices.Concat(
		[]byte{1, 2, tI32, 0x02, tI32, 0x03, tI32}, // block -> i32, loop -> i32
		get(0), []byte{0x41, 1, 0x6b, 0x21, 0},
		get(1), []byte{0x20, 0, 0x41, 0, 0x4c, 0x0d, 1, 0x1a}, // out of the block with the sum when n <= 0
		[]byte{0x02, 0x40, 0x02, 0x40, 0x02, 0x40}, get(0), []byte{0x41, 6, 0x70, 0x0e, 4, 0, 1, 2, 3, 2, end},
		add(3), []byte{0x0c, 2, end}, // 0: round again
		add(7), inner, []byte{0x0c, 1, end}, // 1
		withParam, // 2, 4, 5; 3 went round from the table
		[]byte{0x20, 0, 0x41, 11, 0x46, 0x04, 0x40, 0x20, 1, 0x0f, end}, // at 11 returns
		[]byte{0x20, 0, 0x41, 17, 0x4d, 0x0d, 0},                        // up to 17 round again
		get(1), []byte{end, 0x41, 50, 0x6a, end, end})
	return wasmOf(
		sec(1, 2, 0x60, 1, tI32, 1, tI32, 0x60, 0, 1, tI32),
		sec(2, 1, 1, 'h', 1, 'f', 0, 1),
		sec(3, 1, 0),
		sec(7, 1, 3, 'r', 'u', 'n', 0, 1),
		slices.Concat([]byte{10, byte(len(body)+3)&0x7f | 0x80, byte((len(body) + 3) >> 7), 1, byte(len(body))&0x7f | 0x80, byte(len(body) >> 7)}, body),
	)
}

// Counting changes nothing but that the host is asked: every branch leads where it led, whether the counter runs out at
// each step, between steps, or never.
func TestMeterKeepsBranches(t *testing.T) {
	plain := instantiate(t, branchModule(), nil, nil)
	results := map[uint64]bool{}
	for _, opt := range []wasmpass.Meter{{Countdown: 1}, {Countdown: 2, Entries: true}, {Countdown: 3}, {}} {
		m := decode(t, branchModule())
		if stats, err := m.AddMeter(opt); err != nil || stats.Loops != 3 {
			t.Fatalf("AddMeter = %v, %v; want 3 loops", stats, err)
		}
		polls := 0
		counted := instantiate(t, m.Encode(), func() uint64 { polls++; return 0 }, nil)
		for n := range uint64(60) {
			want := callExport(t, plain, "run", n)
			if got := callExport(t, counted, "run", n); got != want {
				t.Errorf("countdown %d: run(%d) = %d, want %d", opt.Countdown, n, got, want)
			}
			results[want] = true
		}
		if asked := polls > 0; asked != (opt.Countdown > 0) {
			t.Errorf("countdown %d: %d polls", opt.Countdown, polls)
		}
	}
	if len(results) < 20 {
		t.Errorf("only %d different results: the module does not go where it should", len(results))
	}
}

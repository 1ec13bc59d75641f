package wasmpass_test

import (
	"testing"

	"edged/sandbox/wasmpass"
)

// bulkModule exports fill(length), which fills from 0 with 7, and copy(length), which copies from 0 to 8; both return the
// byte at 8.
func bulkModule() []byte {
	return wasmOf(
		sec(1, 2, 0x60, 1, tI32, 1, tI32, 0x60, 0, 1, tI32),
		sec(2, 1, 1, 'h', 1, 'f', 0, 1),
		sec(3, 2, 0, 0),
		sec(5, 1, 0, 1),
		sec(7, 2, 4, 'f', 'i', 'l', 'l', 0, 1, 4, 'c', 'o', 'p', 'y', 0, 2),
		codeSec(
			[]byte{0x41, 0, 0x41, 7, 0x20, 0, 0xfc, 11, 0, 0x41, 0, 0x2d, 0, 8, end},
			[]byte{0x41, 8, 0x41, 0, 0x20, 0, 0xfc, 10, 0, 0, 0x41, 0, 0x2d, 0, 8, end},
		),
	)
}

// One bulk instruction may move all of memory and is a turn of no loop: it counts by its length, and still does what it did.
func TestMeterCountsBulk(t *testing.T) {
	m := decode(t, bulkModule())
	stats, err := m.AddMeter(wasmpass.Meter{Countdown: 100})
	if err != nil || stats != (wasmpass.MeterStats{Functions: 2, Bulk: 2}) {
		t.Fatalf("AddMeter = %+v, %v", stats, err)
	}
	polls := 0
	mod := instantiate(t, m.Encode(), func() uint64 { polls++; return 1 }, number(0))
	for _, tt := range []struct {
		export       string
		length, want uint64
		polls        int // so far
	}{
		{"fill", 63, 7, 0},        // less than a step
		{"fill", 64 * 40, 7, 0},   // 40 of 100 steps
		{"copy", 64 * 50, 7, 0},   // 90
		{"copy", 64 * 10, 7, 1},   // the last one
		{"fill", 60_000, 7, 2},    // far more than all
		{"copy", 0, 7, 2},         // nothing
		{"copy", 64 * 1000, 7, 3}, // again
		{"fill", 64 * 99, 7, 3},   // the counter was full
		{"fill", 1 << 16, 7, 4},   // to the last byte of memory
	} {
		if got := callExport(t, mod, tt.export, tt.length); got != tt.want || polls != tt.polls {
			t.Errorf("%s(%d) = %d after %d polls, want %d after %d", tt.export, tt.length, got, polls, tt.want, tt.polls)
		}
	}
}

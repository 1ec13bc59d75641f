package cron

import "slices"

// maxRuns bounds a set of minutes. Only a clock that is set back and forth makes more than one run.
const maxRuns = 64

// minutes is a set of minutes, numbered from 1970, kept as runs. Over maxRuns it takes in a gap, the smallest: then a minute that
// was not looked at counts as one that was, and is skipped; none is ever looked at twice.
type minutes struct {
	runs []stretch // ascending, none touches the next
}

// stretch is a run of minutes, both ends included.
type stretch struct{ first, last int64 }

// add puts a minute into the set and reports whether it is new.
func (m *minutes) add(n int64) bool {
	i, found := slices.BinarySearchFunc(m.runs, n, func(r stretch, n int64) int {
		switch {
		case r.last < n:
			return -1
		case r.first > n:
			return 1
		}
		return 0
	})
	if found {
		return false
	}
	m.runs = slices.Insert(m.runs, i, stretch{n, n})
	m.join(i)
	m.join(i - 1)
	if len(m.runs) > maxRuns {
		m.closeGap()
	}
	return true
}

// join makes one run of i and the next if they touch.
func (m *minutes) join(i int) {
	if i >= 0 && i+1 < len(m.runs) && m.runs[i].last+1 == m.runs[i+1].first {
		m.runs[i].last = m.runs[i+1].last
		m.runs = slices.Delete(m.runs, i+1, i+2)
	}
}

func (m *minutes) closeGap() {
	smallest := 0
	for i := range len(m.runs) - 1 {
		if m.gap(i) < m.gap(smallest) {
			smallest = i
		}
	}
	m.runs[smallest].last = m.runs[smallest+1].last
	m.runs = slices.Delete(m.runs, smallest+1, smallest+2)
}

func (m *minutes) gap(i int) int64 { return m.runs[i+1].first - m.runs[i].last }

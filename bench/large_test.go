package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// Comparisons that met a disk that changed are repeated and printed, and so often at most.
func TestPairsOf(t *testing.T) {
	steady, changed := largePair{1, 900, 900, 1000, 1900}, largePair{0.3, 300, 900, 400, 1500}
	for name, c := range map[string]struct {
		disk     func(n int) largePair
		repeated int
		measured int
		low      float64
	}{
		"a steady disk":           {func(int) largePair { return steady }, 0, largePairs, 1},
		"a disk that changes now": {func(n int) largePair { return []largePair{changed, steady}[n%2] }, largePairs, 2 * largePairs, 1},
		"one that always changes": {func(int) largePair { return changed }, largeRepeats, largePairs + largeRepeats, 0.3},
	} {
		var out bytes.Buffer
		r, began := &report{out: &out}, []string{}
		counted, repeated, err := r.pairsOf(func(first string) (largePair, error) {
			began = append(began, first)
			return c.disk(len(began) - 1), nil
		})
		if err != nil || len(counted) != largePairs || repeated != c.repeated || len(began) != c.measured {
			t.Errorf("%s: %d count, %d repeated of %d, %v", name, len(counted), repeated, len(began), err)
		}
		for _, p := range counted {
			if p.ratio != c.low {
				t.Errorf("%s: %v counts", name, p)
			}
		}
		if lines := strings.Count(out.String(), "\n"); lines != c.measured {
			t.Errorf("%s: %d lines for %d comparisons", name, lines, c.measured)
		}
		if got := strings.Count(out.String(), ": repeated"); got != c.repeated {
			t.Errorf("%s: %d are marked, not %d", name, got, c.repeated)
		}
		if got := strings.Count(strings.Join(began, " "), "ours"); c.repeated == 0 && got != largePairs/2 {
			t.Errorf("%s: ours began %d times", name, got)
		}
	}
	if _, _, err := (&report{out: &bytes.Buffer{}}).pairsOf(func(string) (largePair, error) { return steady, errors.New("no disk") }); err == nil {
		t.Error("an error is lost")
	}
}

package table

import (
	"fmt"
	"testing"

	"edged/internal/testkit"
)

// With gives the table that Build would give, and leaves the one it came from as it was.
func TestWith(t *testing.T) {
	rng := testkit.Rand(t)
	want := map[string]*Worker{}
	tab, err := Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(tab *Table, want map[string]*Worker) {
		t.Helper()
		for i := range 300 {
			name := fmt.Sprintf("h%d.test", i)
			if got := tab.Match([]byte(name)); got != want[name] {
				t.Fatalf("%s leads to %v, want %v", name, got, want[name])
			}
		}
	}
	for range 200 {
		before, old := tab, map[string]*Worker{}
		for k, v := range want {
			old[k] = v
		}
		set, drop := map[string]*Worker{}, []string{}
		for range 1 + rng.IntN(5) {
			name := fmt.Sprintf("h%d.test", rng.IntN(300))
			if rng.IntN(3) == 0 {
				drop = append(drop, name)
				delete(want, name)
				delete(set, name)
			} else {
				set[name] = worker("w", FullWeight)
				want[name] = set[name]
			}
		}
		if tab, err = tab.With(set, drop); err != nil {
			t.Fatal(err)
		}
		check(tab, want)
		check(before, old)
	}
	if bad, err := tab.With(map[string]*Worker{"x.test": nil}, nil); err == nil || bad != nil {
		t.Errorf("a host without a worker gives %v %v", bad, err)
	}
	check(tab, want)
}

// One host more among many, beside building the whole table anew.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		hosts := map[string]*Worker{}
		for i := range n {
			hosts[fmt.Sprintf("h%d.test", i)] = worker("w", FullWeight)
		}
		tab, err := Build(hosts)
		if err != nil {
			b.Fatal(err)
		}
		one := map[string]*Worker{"h7.test": worker("w", FullWeight)}
		b.Run(fmt.Sprintf("hosts=%d/impl=with", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tab.With(one, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("hosts=%d/impl=build", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(hosts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	hosts := map[string]*Worker{}
	for i := range 10_000 {
		hosts[fmt.Sprintf("some-host-name-%d.example.test", i)] = worker("w", FullWeight)
	}
	tab, err := Build(hosts)
	if err != nil {
		b.Fatal(err)
	}
	host := []byte("Some-Host-Name-77.example.test:8080")
	for b.Loop() {
		if tab.Match(host) == nil {
			b.Fatal("no match")
		}
	}
}

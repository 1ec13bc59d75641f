package table

import (
	"strings"
	"testing"

	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func worker(uid string, weights ...int) *Worker {
	w := &Worker{UID: uid}
	for i, n := range weights {
		w.Versions = append(w.Versions, Weighted{&Version{UID: string(rune('a' + i))}, n})
	}
	return w
}

// node-surface §7: port and letter case are ignored, one trailing dot is dropped, nothing else.
func TestMatch(t *testing.T) {
	w := worker("w", FullWeight)
	tab, err := Build(map[string]*Worker{"a.test": w, "b-1.a.test": w})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"a.test": true, "A.TEST": true, "a.test.": true, "a.test:80": true, "a.test.:443": true, "a.test:": true, "B-1.a.test": true,
		"a.test..": false, ".a.test": false, "x.a.test": false, "": false, ":80": false, ".": false, "a.tes": false,
		"A.test..": false, "A.test:80:80": false, "[::1]:80": false, strings.Repeat("a", 300): false, "a.test:80:80": false,
	} {
		if got := tab.Match([]byte(host)) != nil; got != want {
			t.Errorf("%q: got %t", host, got)
		}
	}
	host := []byte("A.Test.:8080")
	if n := testing.AllocsPerRun(100, func() { tab.Match(host) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !SameHost([]byte("A.test:1"), []byte("a.test.")) || SameHost([]byte("a.test"), []byte("b.test")) || SameHost(nil, nil) {
		t.Error("SameHost")
	}
}

// worker-deployment §§1, 3: over all 10,000 draws each version is chosen exactly as often as its basis points say.
func TestPickIsExact(t *testing.T) {
	for _, weights := range [][]int{{10000}, {1, 9999}, {5000, 5000}, {3333, 3333, 3334}, {1, 1, 1, 1, 1, 1, 1, 9993}} {
		w := worker("w", weights...)
		got := map[string]int{}
		for r := range uint32(FullWeight) {
			got[w.Pick(r).UID]++
		}
		for _, v := range w.Versions {
			if got[v.UID] != v.Weight {
				t.Errorf("%v: version %s was chosen %d times", weights, v.UID, got[v.UID])
			}
		}
	}
	if v := worker("w").Pick(0); v != nil {
		t.Errorf("no deployment: got %v", v)
	}
}

// Build reports every fault at once and lets a worker without a deployment be.
func TestBuildChecks(t *testing.T) {
	first := worker("first", FullWeight)
	first.Versions[0].RunWorkerFirst = true
	twice := worker("twice", 5000, 5000)
	twice.Versions[1].UID = "a"
	_, err := Build(map[string]*Worker{
		"Upper.test": worker("w", FullWeight), "port.test:80": worker("w", FullWeight), "dot.test.": worker("w", FullWeight),
		"nil.test": nil, "sum.test": worker("sum", 5000, 4999), "zero.test": worker("zero", 0, FullWeight),
		"first.test": first, "twice.test": twice, "missing.test": {UID: "missing", Versions: []Weighted{{nil, FullWeight}}},
	})
	for _, want := range []string{"Upper.test", "port.test:80", "dot.test.", "nil.test", "sum: weights sum to 9999", "zero: version a has weight 0",
		"first: version a runs a worker first", "twice: version a stands twice", "missing: a version is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if _, err := Build(map[string]*Worker{"ok.test": worker("ok")}); err != nil {
		t.Error(err)
	}
}

// The asset stage per version: hit, fallback, and no fallback for a path that cannot be searched.
func TestAsset(t *testing.T) {
	index, file := &Asset{}, &Asset{}
	assets := Assets{"index.html": index, "f": file}
	for _, tt := range []struct {
		v    *Version
		path string
		want *Asset
	}{
		{&Version{Assets: assets}, "/f", file},
		{&Version{Assets: assets}, "/F", nil},
		{&Version{Assets: assets}, "/", index},
		{&Version{Assets: assets, SPA: true}, "/none/", index},
		{&Version{Assets: assets, SPA: true}, "/none//x", nil},
		{&Version{Assets: Assets{"f": file}, SPA: true}, "/none", nil},
		{&Version{SPA: true}, "/", nil},
	} {
		if got, _ := tt.v.Asset([]byte(tt.path), nil); got != tt.want {
			t.Errorf("%+v %s: got %p", tt.v, tt.path, got)
		}
	}
}

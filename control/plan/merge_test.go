package plan

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"edged/internal/testkit"
)

// randomDelta changes parts of every kind that a Delta has, found by reflection: a kind that is forgotten anywhere shows.
func randomDelta(rnd *rand.Rand, index uint64) *Delta {
	d := &Delta{Index: index}
	v := reflect.ValueOf(d).Elem()
	for i := range v.NumField() {
		changes := v.Field(i)
		if changes.Kind() != reflect.Struct {
			continue
		}
		put, gone := changes.FieldByName("Put"), changes.FieldByName("Gone")
		for id := range 6 {
			name := fmt.Sprintf("id%d", id)
			switch rnd.IntN(4) {
			case 0:
				part := reflect.New(put.Type().Elem().Elem())
				named := false
				for f := range part.Elem().NumField() { // the first string of a part is its id
					if field := part.Elem().Field(f); field.Kind() == reflect.String && !named {
						field.SetString(name)
						named = true
					} else if field.Kind() == reflect.String {
						field.SetString(fmt.Sprint(rnd.IntN(3)))
					}
				}
				put.Set(reflect.Append(put, part))
			case 1:
				gone.Set(reflect.Append(gone, reflect.ValueOf(name)))
			}
		}
	}
	return d
}

// Merge, To, Cut and Delta are other ways to the same plan, for every kind of part.
func TestOtherWaysToTheSamePlan(t *testing.T) {
	rnd := testkit.Rand(t)
	for range 200 {
		from, to := New(), New()
		var ds []*Delta
		for i := range 1 + rnd.IntN(4) {
			ds = append(ds, randomDelta(rnd, uint64(i+1)))
		}
		base := randomDelta(rnd, 0)
		from.Apply(base)
		to.Apply(base)
		for _, d := range ds {
			to.Apply(d)
		}
		for what, way := range map[string][]*Delta{"Merge": {Merge(ds...)}, "To": {from.To(to)}, "Cut": Merge(ds...).Cut(2)} {
			got := New()
			got.Apply(base)
			for _, d := range way {
				if err := d.Check(); err != nil {
					t.Fatal(err)
				}
				got.Apply(d)
			}
			if !reflect.DeepEqual(got, to) {
				t.Fatalf("%s leads to another plan", what)
			}
		}
		if d := to.To(to); !d.Empty() {
			t.Fatalf("a plan differs from itself: %+v", d)
		}
		for _, piece := range Merge(ds...).Cut(2) {
			v := reflect.ValueOf(piece).Elem()
			for i := range v.NumField() {
				if f := v.Field(i); f.Kind() == reflect.Struct && f.FieldByName("Put").Len() > 2 {
					t.Fatalf("a piece has %d parts", f.FieldByName("Put").Len())
				}
			}
		}
	}
}

// Check refuses a part of any kind that is not there or has no id.
func TestCheckOfADelta(t *testing.T) {
	v := reflect.TypeFor[Delta]()
	for i := range v.NumField() {
		if v.Field(i).Type.Kind() != reflect.Struct {
			continue
		}
		for _, empty := range []bool{true, false} {
			d := new(Delta)
			put := reflect.ValueOf(d).Elem().Field(i).FieldByName("Put")
			part := reflect.Zero(put.Type().Elem())
			if empty {
				part = reflect.New(put.Type().Elem().Elem())
			}
			put.Set(reflect.Append(put, part))
			if d.Check() == nil {
				t.Errorf("%s: a part that is empty %t passes", v.Field(i).Name, empty)
			}
		}
	}
}

// A mark is kept with the plan, in the same batch, also when all is written anew; a store without one gives the zero Mark.
func TestMark(t *testing.T) {
	dir := t.TempDir()
	open := func() *Store {
		t.Helper()
		s, err := OpenStore(dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := Mark{Epoch: 7, Partial: true, Fresh: time.Unix(1000, 0).UTC()}
	s := open()
	if m, err := s.Mark(); err != nil || m != (Mark{}) {
		t.Errorf("an empty store has the mark %+v, %v", m, err)
	}
	p, d := New(), randomDelta(rand.New(rand.NewPCG(1, 2)), 3)
	p.Apply(d)
	if err := s.SaveMarked(d, p, want); err != nil {
		t.Fatal(err)
	}
	s.stale = true
	if err := s.Save(&Delta{Index: 4}, p); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer s.Close()
	if m, err := s.Mark(); err != nil || m != want {
		t.Errorf("the mark is %+v, %v; want %+v", m, err, want)
	}
	if back, err := s.Load(); err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("the plan beside a mark is %+v, %v", back, err)
	}
}

package jsonraw

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestAccess(t *testing.T) {
	doc := []byte(` { "a" : 1.0 , "\u0062":[ "x\n", {"y":[1,"]}"]} , [], -2e1,true ],"c":{},"A":null, "e":"" } `)
	if err := Check(doc); err != nil {
		t.Fatal(err)
	}
	var names, values []string
	for name, raw := range Members(doc) {
		names, values = append(names, name), append(values, string(raw))
	}
	wantNames := []string{"a", "b", "c", "A", "e"}
	wantValues := []string{`1.0`, `[ "x\n", {"y":[1,"]}"]} , [], -2e1,true ]`, `{}`, `null`, `""`}
	if !slices.Equal(names, wantNames) || !slices.Equal(values, wantValues) {
		t.Fatalf("got %q %q", names, values)
	}
	var items []string
	var kinds []Kind
	for raw := range Items([]byte(values[1])) {
		items, kinds = append(items, string(raw)), append(kinds, KindOf(raw))
	}
	if !slices.Equal(items, []string{`"x\n"`, `{"y":[1,"]}"]}`, `[]`, `-2e1`, `true`}) ||
		!slices.Equal(kinds, []Kind{String, Object, Array, Number, Bool}) {
		t.Fatalf("got %q %v", items, kinds)
	}
	if s, ok := Text([]byte(items[0])); !ok || s != "x\n" {
		t.Errorf("got %q %t", s, ok)
	}
	if _, ok := Text([]byte(`1`)); ok {
		t.Error("a number is taken for text")
	}
	for range Members([]byte(`[]`)) {
		t.Error("an array has members")
	}
	for range Items([]byte(`{}`)) {
		t.Error("an object has items")
	}
	if KindOf(nil) != None || KindOf([]byte("}")) != None || KindOf([]byte(" null")) != Null {
		t.Error("KindOf is wrong about what is no value")
	}
	for range Members(doc) { // a range that is left early
		break
	}
}

// What Check accepts encoding/json accepts and Access walks whole; a document with its members in another order has the
// same fingerprint; nothing panics.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2,{"b":null}],"c":"\ud83d\ude00"}`, `[1e400]`, `{"a":1,"a":2}`, `"\ud800"`, `-0.0e-0`, `[[[[]]]]`, "\xff", `{"":{"":{}}}`,
		`{"z":1,"y":[true,false],"x":{"q":"é","p":-1.50e-3}}`,
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, doc []byte, seed uint64) {
		if err := Check(doc); err != nil {
			for range Members(doc) {
			}
			for range Items(doc) {
			}
			Text(doc)
			Integer(doc)
			return
		}
		var v any
		if err := json.Unmarshal(doc, &v); err != nil {
			t.Fatalf("%q: accepted, but encoding/json says %v", doc, err)
		}
		shuffled := shuffle(doc, rand.New(rand.NewPCG(seed, 0)))
		var w any
		if err := json.Unmarshal(shuffled, &w); err != nil || !reflect.DeepEqual(v, w) {
			t.Fatalf("%q walked to %q (%v)", doc, shuffled, err)
		}
		a, aerr := Fingerprint(doc)
		b, berr := Fingerprint(shuffled)
		if (aerr == nil) != (berr == nil) || a != b {
			t.Fatalf("%q and %q have different fingerprints", doc, shuffled)
		}
	})
}

// shuffle writes doc anew through the accessors, members in random order.
func shuffle(doc []byte, rng *rand.Rand) []byte {
	var parts [][]byte
	switch KindOf(doc) {
	case Object:
		for name, raw := range Members(doc) {
			quoted, _ := json.Marshal(name)
			parts = append(parts, slices.Concat(quoted, []byte(" :"), shuffle(raw, rng)))
		}
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return slices.Concat([]byte("{"), bytes.Join(parts, []byte(" , ")), []byte("}"))
	case Array:
		for raw := range Items(doc) {
			parts = append(parts, shuffle(raw, rng))
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	case String:
		s, _ := Text(doc)
		quoted, _ := json.Marshal(s)
		return quoted
	}
	return doc
}

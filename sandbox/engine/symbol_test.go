package engine

import "testing"

// A hidden name works like any other where it is known, and shows nowhere else.
func TestHideSymbol(t *testing.T) {
	in := fresh(t)
	name, err := in.Eval([]byte("globalThis.name = Symbol('shown')"), "x")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !in.HideSymbol(name) {
			t.Fatal("this build keeps symbols otherwise")
		}
	}
	got, err := in.Eval([]byte(`
		const o = { [name]: 1, a: 2 }, made = Object.assign({}, o), inherits = Object.create(o);
		o[name]++;
		Object.defineProperty(made, name, { value: 5, writable: true, enumerable: true });
		Object.freeze(made);
		made[name] = 6;
		[o[name], inherits[name], name in o, Object.hasOwn(o, name), Object.hasOwn(inherits, name), ({ ...o })[name], Reflect.ownKeys(o), Object.getOwnPropertySymbols(made).length,
			Object.keys(Object.getOwnPropertyDescriptors(o)), made[name], name.description, String(name), delete o[name], o[name]].join('|')`), "x")
	if err != nil {
		t.Fatal(err)
	}
	if text, want := in.Text(got), "2|2|true|true|false||a|0|a|6|shown|Symbol(shown)|true|"; text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	for _, src := range []string{"Symbol.for('x')", "'text'", "1", "({})"} {
		v, err := in.Eval([]byte(src), "x")
		if err != nil {
			t.Fatal(err)
		}
		if in.HideSymbol(v) {
			t.Errorf("%s became a hidden name", src)
		}
	}
}

package wasmpass

import (
	"maps"
	"slices"
)

// The functions that a module of TableModule exports beside its table.
const (
	TableGet  = "get"  // i32 -> ref
	TableSet  = "set"  // i32 ref ->
	TableGrow = "grow" // ref i32 -> i32
	TableSize = "size" // -> i32
)

// MemoryHolder is a module that has a memory and nothing else: of no pages, and without a bound of its own.
func MemoryHolder() []byte {
	m := &Module{memories: []limits{{hasMax: true, max: 65536}}, exports: []export{{name: MemoryName, kind: Memory}}}
	return m.Encode()
}

// TableHolder is a module that has a table of no entries, at most max, and what a host needs to reach into it.
func TableHolder(elem byte, max uint32) []byte {
	m := &Module{tables: []table{{elem: elem, limits: limits{hasMax: true, max: max}}}, exports: []export{{name: TableName, kind: Table}}}
	add := func(name, params, results string, code ...byte) {
		fn := m.addFunc(FuncType{Params: params, Results: results}, append(code, opEnd))
		m.exports = append(m.exports, export{name: name, kind: Func, index: fn})
	}
	ref, num := string([]byte{elem}), string([]byte{i32})
	add(TableGet, num, ref, opLocalGet, 0, 0x25, 0)
	add(TableSet, num+ref, "", opLocalGet, 0, opLocalGet, 1, 0x26, 0)
	add(TableGrow, ref+num, num, opLocalGet, 0, opLocalGet, 1, prefixMisc, 15, 0)
	add(TableSize, "", num, prefixMisc, 16, 0)
	return m.Encode()
}

// GlobalHolder is a module that has one mutable global of each type but v128, by GlobalName.
func GlobalHolder() []byte {
	m := &Module{}
	for _, typ := range slices.Sorted(maps.Keys(typeNames)) {
		if typ == v128 {
			continue
		}
		m.exports = append(m.exports, export{name: GlobalName(typ), kind: Global, index: uint32(len(m.globals))})
		m.globals = append(m.globals, global{typ: typ, mutable: true, init: zeroOf(typ)})
	}
	return m.Encode()
}

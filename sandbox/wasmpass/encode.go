package wasmpass

// Encode returns the module in the binary format. The caller owns the slice.
func (m *Module) Encode() []byte {
	dst := append(make([]byte, 0, m.sizeHint()), header...)
	dst = vector(dst, secType, m.types, func(dst []byte, t FuncType) []byte {
		return appendName(appendName(append(dst, 0x60), t.Params), t.Results)
	})
	dst = vector(dst, secImport, m.imports, func(dst []byte, im Import) []byte {
		dst = append(appendName(appendName(dst, im.Module), im.Name), byte(im.Kind))
		if im.Kind == Func {
			return appendU32(dst, im.typ)
		}
		return append(dst, im.desc...)
	})
	dst = vector(dst, secFunction, m.funcs, appendU32)
	dst = vector(dst, secTable, m.tables, appendTable)
	dst = vector(dst, secMemory, m.memories, appendLimits)
	dst = vector(dst, secGlobal, m.globals, func(dst []byte, g global) []byte {
		return append(append(dst, g.typ, flag(g.mutable)), g.init...)
	})
	dst = vector(dst, secExport, m.exports, func(dst []byte, e export) []byte {
		return appendU32(append(appendName(dst, e.name), byte(e.kind)), e.index)
	})
	for _, fn := range m.start {
		dst = section(dst, secStart, appendU32(nil, fn))
	}
	dst = vector(dst, secElement, m.elems, appendElem)
	for _, n := range m.dataCount {
		dst = section(dst, secDataCount, appendU32(nil, n))
	}
	dst = vector(dst, secCode, m.code, func(dst []byte, b body) []byte {
		dst = appendU32(dst, uint32(len(b.locals)+len(b.code)))
		return append(append(dst, b.locals...), b.code...)
	})
	return section(dst, secData, m.data)
}

func (m *Module) sizeHint() int {
	n := len(m.data) + 1<<14
	for _, b := range m.code {
		n += len(b.locals) + len(b.code) + 5
	}
	return n
}

func section(dst []byte, id byte, payload []byte) []byte {
	if payload == nil {
		return dst
	}
	return appendBytes(append(dst, id), payload)
}

// vector writes a section that is one vector; an empty one is left out.
func vector[T any](dst []byte, id byte, items []T, put func([]byte, T) []byte) []byte {
	if len(items) == 0 {
		return dst
	}
	payload := appendU32(nil, uint32(len(items)))
	for _, it := range items {
		payload = put(payload, it)
	}
	return section(dst, id, payload)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendTable(dst []byte, t table) []byte { return appendLimits(append(dst, t.elem), t.limits) }

func appendLimits(dst []byte, l limits) []byte {
	dst = appendU32(append(dst, flag(l.hasMax)), l.min)
	if l.hasMax {
		dst = appendU32(dst, l.max)
	}
	return dst
}

func appendElem(dst []byte, e elem) []byte {
	dst = appendU32(dst, e.flag)
	if e.flag&elemPassive == 0 {
		if e.flag&elemExplicit != 0 {
			dst = appendU32(dst, e.table)
		}
		dst = append(dst, e.offset...)
	}
	if e.flag&(elemPassive|elemExplicit) != 0 {
		dst = append(dst, e.kind)
	}
	if e.flag&elemExprs != 0 {
		dst = appendU32(dst, uint32(len(e.exprs)))
		for _, x := range e.exprs {
			dst = append(dst, x...)
		}
		return dst
	}
	dst = appendU32(dst, uint32(len(e.funcs)))
	for _, fn := range e.funcs {
		dst = appendU32(dst, fn)
	}
	return dst
}

package manifest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines knows on which line each key and array element of a document stands. Places are JSON pointers: /vars/LIST/3.
type lines struct {
	newlines []int          // offsets of the line ends
	at       map[string]int // line by pointer, the first occurrence
	arrays   map[string]int // how many elements the arrays of tables have so far, by pointer
}

// maxDepth bounds how deep places are told apart: far below every limit of vars, and it keeps hostile documents cheap.
const maxDepth = 32

// readLines indexes a document that is known to be valid TOML.
func readLines(b []byte) *lines {
	x := &lines{at: map[string]int{}, arrays: map[string]int{}}
	for i, c := range b {
		if c == '\n' {
			x.newlines = append(x.newlines, i)
		}
	}
	var p unstable.Parser
	p.Reset(b)
	table := place{}
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			table = x.last(x.key(place{}, e.Key()))
		case unstable.ArrayTable:
			table = x.element(x.key(place{}, e.Key()), e.Key())
		case unstable.KeyValue:
			x.value(x.key(table, e.Key()), e.Value())
		}
	}
	return x
}

// place is a pointer and how many steps it has.
type place struct {
	pointer string
	depth   int
}

func (p place) step(name string) place { return place{p.pointer + "/" + escape(name), p.depth + 1} }

// element returns the place of a new element of an array of tables.
func (x *lines) element(array place, parts unstable.Iterator) place {
	n := x.arrays[array.pointer]
	x.arrays[array.pointer]++
	at := array.step(strconv.Itoa(n))
	for parts.Next() {
		x.record(at.pointer, parts.Node())
	}
	return at
}

// last returns the place of the newest element where at is an array of tables, else at.
func (x *lines) last(at place) place {
	if n := x.arrays[at.pointer]; n > 0 {
		return at.step(strconv.Itoa(n - 1))
	}
	return at
}

// key records every step of a dotted key and returns the place of the last.
func (x *lines) key(at place, parts unstable.Iterator) place {
	for parts.Next() && at.depth < maxDepth {
		at = x.last(at).step(string(parts.Node().Data))
		x.record(at.pointer, parts.Node())
	}
	return at
}

func (x *lines) value(at place, n *unstable.Node) {
	if at.depth >= maxDepth {
		return
	}
	children := n.Children()
	switch n.Kind {
	case unstable.Array:
		for i := 0; children.Next(); i++ {
			element := at.step(strconv.Itoa(i))
			x.record(element.pointer, children.Node())
			x.value(element, children.Node())
		}
	case unstable.InlineTable:
		for children.Next() {
			x.value(x.key(at, children.Node().Key()), children.Node().Value())
		}
	}
}

// record notes the line of a node; some kinds of value do not know where they stand.
func (x *lines) record(pointer string, n *unstable.Node) {
	if _, seen := x.at[pointer]; seen || n.Raw.Length == 0 {
		return
	}
	i, _ := slices.BinarySearch(x.newlines, int(n.Raw.Offset))
	x.at[pointer] = i + 1
}

// of returns the line of a place, or of the nearest one around it that is known.
func (x *lines) of(pointer string) int {
	for {
		if line, ok := x.at[pointer]; ok {
			return line
		}
		i := strings.LastIndexByte(pointer, '/')
		if i <= 0 {
			return 1
		}
		pointer = pointer[:i]
	}
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func escape(step string) string { return pointerEscapes.Replace(step) }

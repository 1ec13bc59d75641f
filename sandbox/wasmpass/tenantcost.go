package wasmpass

import (
	"fmt"
	"math/bits"
)

// The compiler's time grows with the product of the values and the blocks of a function, and far faster with what nested loops
// change: a few kilobytes can keep it busy for hours. These bounds are well above what compilers write, and hold a module to some tens of
// seconds. Small functions do not count.
const (
	maxSpread      = 1_000_000 // locals used x blocks, of one function
	maxSpreadTotal = 4_000_000 // of all with more than smallSpread
	smallSpread    = 50_000
	maxCarried     = 4_000  // locals set inside of each loop, of all loops of one function
	maxCarriedAll  = 20_000 // of all functions with more than smallCarried
	smallCarried   = 2_000
	maxBranches    = 16_384  // targets of all br_table instructions of one function
	maxBranchesAll = 200_000 // and of the module
)

// costs refuses a module that would take too long to compile.
func (t *tenancy) costs() error {
	m := t.m
	spreads, carries, branches := 0, 0, 0
	for i := range m.code {
		spread, carried, targets := m.bodyCost(i)
		branches += targets
		if spread > maxSpread || carried > maxCarried || targets > maxBranches {
			return fmt.Errorf("function %d is too complex: %d locals times blocks, %d locals of loops, %d branches; the most are %d, %d and %d",
				int(m.importedFuncs)+i, spread, carried, targets, maxSpread, maxCarried, maxBranches)
		}
		if spread > smallSpread {
			spreads += spread
		}
		if carried > smallCarried {
			carries += carried
		}
	}
	if spreads > maxSpreadTotal || carries > maxCarriedAll || branches > maxBranchesAll {
		return fmt.Errorf("the module has too many complex functions")
	}
	return nil
}

// localSet is a set of locals.
type localSet [(maxTenantLocals + 1024 + 63) / 64]uint64

func (s *localSet) add(i uint32) {
	if int(i/64) < len(s) {
		s[i/64] |= 1 << (i % 64)
	}
}

func (s *localSet) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// bodyCost returns the locals used times the blocks, how many locals the loops set, each loop counting those of
// the loops inside, and the targets of branch tables.
func (m *Module) bodyCost(body int) (spread, carried, targets int) {
	var used localSet
	var loops []*localSet
	var open []bool // which of the open blocks are loops
	blocks := 1
	s := scanner{reader: reader{b: m.code[body].code}} // checked by Decode: no fault can occur
	for s.next() {
		switch s.op {
		case opBlock, opIf, opLoop:
			blocks++
			open = append(open, s.op == opLoop)
			if s.op == opLoop {
				blocks += loopBlocks
				loops = append(loops, &localSet{})
			}
		case opEnd:
			if len(open) > 0 && open[len(open)-1] {
				last := loops[len(loops)-1]
				loops = loops[:len(loops)-1]
				carried += last.count()
				if len(loops) > 0 {
					for i, w := range last {
						loops[len(loops)-1][i] |= w
					}
				}
			}
			open = open[:max(len(open)-1, 0)]
		case opBrIf:
			blocks++
		case opBrTable:
			targets += s.pos - s.start // one byte each, or more
			blocks += (s.pos - s.start) / 4
		case opLocalGet, opLocalSet, opLocalTee:
			used.add(s.index)
			if s.op != opLocalGet && len(loops) > 0 {
				loops[len(loops)-1].add(s.index)
			}
		}
		if carried > maxCarried || targets > maxBranches {
			break
		}
	}
	return used.count() * blocks, carried, targets
}

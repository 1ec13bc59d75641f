package sourcemap

import "strings"

// cursor is a place in the mappings, and the mapping that was read last.
type cursor struct {
	at                   int // in the text, behind that mapping
	line, column         int // in the generated code, from 0
	source               int
	fromLine, fromColumn int
	mapped               bool // the mapping has a source
}

// behind reports whether the mapping is behind a place in the generated code.
func (c *cursor) behind(line, column int) bool {
	return c.line > line || c.line == line && c.column > column
}

// next reads one mapping; false at the end.
func (c *cursor) next(text string) (bool, error) {
	for c.at < len(text) && (text[c.at] == ',' || text[c.at] == ';') {
		if text[c.at] == ';' {
			c.line++
			c.column = 0
			c.mapped = false
		}
		c.at++
	}
	if c.at == len(text) {
		return false, nil
	}
	var field [5]int
	n := 0
	for c.at < len(text) && text[c.at] != ',' && text[c.at] != ';' {
		if n == len(field) {
			return false, errMap
		}
		value, size := vlq(text[c.at:])
		if size == 0 {
			return false, errMap
		}
		field[n] = value
		n++
		c.at += size
	}
	if n == 2 || n == 3 {
		return false, errMap
	}
	c.column += field[0]
	if c.mapped = n >= 4; c.mapped {
		c.source += field[1]
		c.fromLine += field[2]
		c.fromColumn += field[3]
	}
	const most = 1 << 31
	if c.column < 0 || c.source < 0 || c.fromLine < 0 || c.fromColumn < 0 || c.column|c.source|c.fromLine|c.fromColumn >= most {
		return false, errMap
	}
	return true, nil
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// vlq reads a number in base 64, five bits at a time; size is 0 if there is none.
func vlq(text string) (value, size int) {
	bits := 0
	for i := 0; i < len(text) && i < 7; i++ {
		digit := strings.IndexByte(digits, text[i])
		if digit < 0 {
			return 0, 0
		}
		bits |= (digit & 31) << (5 * i)
		if digit&32 == 0 {
			if bits&1 != 0 {
				return -(bits >> 1), i + 1
			}
			return bits >> 1, i + 1
		}
	}
	return 0, 0
}

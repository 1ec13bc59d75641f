package engine

import (
	"bytes"
	"encoding/hex"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// SQLite looks at its interrupt between the steps of its virtual machine, never inside a function. instr, replace, trim and
// unhex take time in the product of their arguments' lengths: on arguments of a few megabytes, minutes. These do the same in
// time that grows with the sum.

// replaceFunctions puts the linear functions in the place of SQLite's own.
func (c *Conn) replaceFunctions() error {
	const flags = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	limit := c.db.Limit(sqlite3.LIMIT_LENGTH, -1)
	for _, f := range []struct {
		name string
		args int
		fn   sqlite3.ScalarFunction
	}{
		{"instr", 2, instr},
		{"replace", 3, func(ctx sqlite3.Context, arg ...sqlite3.Value) { replace(ctx, limit, arg) }},
		{"trim", 2, func(ctx sqlite3.Context, arg ...sqlite3.Value) { trim(ctx, true, true, arg) }},
		{"ltrim", 2, func(ctx sqlite3.Context, arg ...sqlite3.Value) { trim(ctx, true, false, arg) }},
		{"rtrim", 2, func(ctx sqlite3.Context, arg ...sqlite3.Value) { trim(ctx, false, true, arg) }},
		{"unhex", 2, unhex},
	} {
		if err := c.db.CreateFunction(f.name, f.args, flags, f.fn); err != nil {
			return err
		}
	}
	return nil
}

func anyNull(arg []sqlite3.Value) bool {
	for _, a := range arg {
		if a.Type() == sqlite3.NULL {
			return true
		}
	}
	return false
}

// text copies an argument out of SQLite's memory, which the next conversion may move.
func text(a sqlite3.Value) []byte { return bytes.Clone(a.RawText()) }

// instr returns where the second argument begins in the first, from 1, in characters, or in bytes of two blobs; 0 if nowhere.
func instr(ctx sqlite3.Context, arg ...sqlite3.Value) {
	if anyNull(arg) {
		return
	}
	isText := arg[0].Type() != sqlite3.BLOB || arg[1].Type() != sqlite3.BLOB
	hay, needle := text(arg[0]), text(arg[1])
	if isText && len(needle) > 0 && continues(needle[0]) { // no character but perhaps the first begins like this
		if !bytes.HasPrefix(hay, needle) {
			ctx.ResultInt64(0)
			return
		}
		ctx.ResultInt64(1)
		return
	}
	i := newFinder(needle).find(hay)
	switch {
	case i < 0:
		ctx.ResultInt64(0)
	case isText:
		ctx.ResultInt64(int64(characters(hay[:i])) + 1)
	default:
		ctx.ResultInt64(int64(i) + 1)
	}
}

func continues(b byte) bool { return b&0xc0 == 0x80 }

// characters counts as SQLite does: the first byte begins a character whatever it is, then every byte that does not continue one.
func characters(b []byte) (n int) {
	for i, c := range b {
		if i == 0 || !continues(c) {
			n++
		}
	}
	return n
}

// replace puts the third argument in the place of every occurrence of the second in the first.
func replace(ctx sqlite3.Context, limit int, arg []sqlite3.Value) {
	if anyNull(arg[:2]) {
		return
	}
	s, pattern := text(arg[0]), text(arg[1])
	if len(pattern) == 0 || pattern[0] == 0 {
		ctx.ResultText(string(s))
		return
	}
	if anyNull(arg[2:]) {
		return
	}
	with := text(arg[2])
	f := newFinder(pattern)
	var at []int
	for from := 0; ; {
		i := f.find(s[from:])
		if i < 0 {
			break
		}
		at = append(at, from+i)
		from += i + len(pattern)
	}
	size := int64(len(s)) + int64(len(at))*(int64(len(with))-int64(len(pattern)))
	if size > int64(limit) {
		ctx.ResultError(sqlite3.TOOBIG)
		return
	}
	out, from := make([]byte, 0, size), 0
	for _, i := range at {
		out = append(append(out, s[from:i]...), with...)
		from = i + len(pattern)
	}
	ctx.ResultText(string(append(out, s[from:]...)))
}

// trim removes the characters of the second argument from the ends of the first.
func trim(ctx sqlite3.Context, left, right bool, arg []sqlite3.Value) {
	if anyNull(arg) {
		return
	}
	s, set := text(arg[0]), map[rune]bool{}
	chars := text(arg[1])
	if !utf8.Valid(chars) || !utf8.Valid(s) {
		ctx.ResultError(sqlite3.MISMATCH) // SQLite would cut inside a character
		return
	}
	chars, _, _ = bytes.Cut(chars, []byte{0}) // as SQLite does
	for _, r := range string(chars) {
		set[r] = true
	}
	in := func(r rune) bool { return set[r] }
	if left {
		s = bytes.TrimLeftFunc(s, in)
	}
	if right {
		s = bytes.TrimRightFunc(s, in)
	}
	ctx.ResultText(string(s))
}

// unhex reads hexadecimal digits; between two pairs of digits characters of the second argument are passed over. Anything else
// gives NULL.
func unhex(ctx sqlite3.Context, arg ...sqlite3.Value) {
	if anyNull(arg) {
		return
	}
	s, pass := text(arg[0]), map[rune]bool{}
	for _, r := range string(text(arg[1])) {
		pass[r] = true
	}
	out := make([]byte, 0, len(s)/2)
	for len(s) > 0 && s[0] != 0 { // as SQLite does
		if isHex(s[0]) {
			if len(s) < 2 || !isHex(s[1]) {
				return
			}
			out, _ = hex.AppendDecode(out, s[:2])
			s = s[2:]
			continue
		}
		r, n := utf8.DecodeRune(s)
		if !pass[r] {
			return
		}
		s = s[n:]
	}
	ctx.ResultBlob(out)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// A finder finds a pattern in linear time whatever the text and the pattern are (Knuth, Morris, Pratt). The standard
// library's search can be made to take time in the product of both by texts whose hashes agree.
type finder struct {
	pattern []byte
	border  []int32 // of each prefix: the longest proper prefix that is its suffix; nil for a short pattern
}

// shortPattern is where the product stops to matter.
const shortPattern = 32

func newFinder(pattern []byte) *finder {
	f := &finder{pattern: pattern}
	if len(pattern) <= shortPattern {
		return f
	}
	f.border = make([]int32, len(pattern))
	k := int32(0)
	for i := 1; i < len(pattern); i++ {
		for k > 0 && pattern[k] != pattern[i] {
			k = f.border[k-1]
		}
		if pattern[k] == pattern[i] {
			k++
		}
		f.border[i] = k
	}
	return f
}

// find returns where the pattern first begins in text, -1 if nowhere.
func (f *finder) find(text []byte) int {
	if f.border == nil {
		return bytes.Index(text, f.pattern)
	}
	k := int32(0)
	for i, c := range text {
		for k > 0 && f.pattern[k] != c {
			k = f.border[k-1]
		}
		if f.pattern[k] == c {
			k++
		}
		if int(k) == len(f.pattern) {
			return i + 1 - len(f.pattern)
		}
	}
	return -1
}

package codec

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A scanner reads the JSON that parse.go expects, token by token. It keeps no stack: the expected form has a fixed depth.
// Every method that fails returns an ErrType, for text that is not the JSON asked for has the wrong shape.
type scanner struct {
	b []byte // UTF-8
	i int
}

func (s *scanner) bad(want string) error {
	return ErrType.Newf(opParse, "expected %s at byte %d", want, s.i)
}

// peek returns the next byte that is not space, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte, what string) error {
	if s.peek() != c {
		return s.bad(what)
	}
	s.i++
	return nil
}

// more is called after an opening bracket and after each item: it returns false and eats the closing bracket at the end of
// the list.
func (s *scanner) more(first bool, closing byte) (bool, error) {
	switch c := s.peek(); {
	case c == closing:
		s.i++
		return false, nil
	case first:
		return true, nil
	case c == ',':
		s.i++
		return true, nil
	}
	return false, s.bad("a comma or " + string(closing))
}

// str reads a string. whole is false when it holds half of a surrogate pair, which no Unicode string does.
func (s *scanner) str(what string) (text string, whole bool, err error) {
	if err := s.expect('"', what); err != nil {
		return "", false, err
	}
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			text = string(s.b[start:s.i])
			s.i++
			return text, true, nil
		case c == '\\':
			return s.escaped(start, what)
		case c < 0x20:
			return "", false, s.bad(what)
		}
		s.i++
	}
	return "", false, s.bad(what)
}

// escaped goes on with a string from its first escape.
func (s *scanner) escaped(start int, what string) (text string, whole bool, err error) {
	out := append(make([]byte, 0, s.i-start+32), s.b[start:s.i]...)
	whole = true
	for s.i < len(s.b) {
		c := s.b[s.i]
		switch {
		case c == '"':
			s.i++
			return string(out), whole, nil
		case c < 0x20:
			return "", false, s.bad(what)
		case c != '\\':
			out = append(out, c)
			s.i++
			continue
		}
		r, ok := s.escape()
		if !ok {
			return "", false, s.bad(what)
		}
		whole = whole && !utf16.IsSurrogate(r)
		out = utf8.AppendRune(out, r)
	}
	return "", false, s.bad(what)
}

// escape reads one escape, and both halves of a surrogate pair. A half alone is returned as it is.
func (s *scanner) escape() (rune, bool) {
	if s.i+1 >= len(s.b) {
		return 0, false
	}
	c := s.b[s.i+1]
	if c == 'u' {
		r, ok := s.hex4()
		if !ok || !utf16.IsSurrogate(r) || s.i+1 >= len(s.b) || s.b[s.i] != '\\' || s.b[s.i+1] != 'u' {
			return r, ok
		}
		at := s.i
		low, ok := s.hex4()
		if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
			return pair, true
		}
		s.i = at // not a pair: the second stands for itself
		return r, true
	}
	s.i += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

func (s *scanner) hex4() (rune, bool) {
	if s.i+6 > len(s.b) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s.b[s.i+2:s.i+6]), 16, 16)
	s.i += 6
	return rune(n), err == nil
}

// number reads a JSON number and returns its text.
func (s *scanner) number(what string) (string, error) {
	s.peek()
	start := s.i
	s.eat('-')
	if !s.eat('0') && s.digits() == 0 {
		return "", s.bad(what)
	}
	if s.eat('.') && s.digits() == 0 {
		return "", s.bad(what)
	}
	if s.eat('e') || s.eat('E') {
		if !s.eat('+') {
			s.eat('-')
		}
		if s.digits() == 0 {
			return "", s.bad(what)
		}
	}
	return string(s.b[start:s.i]), nil
}

func (s *scanner) eat(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) digits() (n int) {
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
		n++
	}
	return n
}

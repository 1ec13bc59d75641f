package jsonraw

import (
	"hash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"edged/internal/fault"
)

// MaxDepth is how deep containers may nest: far above what any Form allows, so that it is the Form that refuses a
// merely deep value, and low enough that a document cannot exhaust the stack.
const MaxDepth = 1000

// Check reports whether b is exactly one JSON document by host-api §2.2: UTF-8 without a byte-order mark, no invalid
// escape and no lone surrogate, no member name twice in one object (compared after decoding), no number beyond the
// double range, nothing after the value, no deeper than MaxDepth. The error is Invalid; its detail says what and at
// which byte. b is not kept. The caller bounds len(b).
func Check(b []byte) error {
	s := scanner{b: b}
	return s.document(nil)
}

// member is one name of an object that is being read; sum is its value's digest when digesting.
type member struct {
	name string
	sum  [32]byte
}

// scanner reads a document in one pass. With a hash it also digests what it reads (digest.go).
type scanner struct {
	b       []byte
	i       int
	depth   int
	members []member    // of all open objects, the innermost last
	hashers []hash.Hash // by depth, see digest.go
	scratch []byte
}

func (s *scanner) document(h hash.Hash) error {
	if !utf8.Valid(s.b) {
		return fault.New(fault.Invalid, "jsonraw.Check", "the document is not valid UTF-8")
	}
	s.space()
	if err := s.value(h); err != nil {
		return err
	}
	s.space()
	if s.i != len(s.b) {
		return s.fail("something follows the JSON value")
	}
	return nil
}

func (s *scanner) fail(what string) error {
	if s.i >= len(s.b) {
		return fault.Newf(fault.Invalid, "jsonraw.Check", "%s at the end, byte %d", what, len(s.b))
	}
	return fault.Newf(fault.Invalid, "jsonraw.Check", "%s at byte %d", what, s.i)
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return
		}
	}
}

// peek returns the byte at hand, 0 at the end (which no JSON token starts with).
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) value(h hash.Hash) error {
	switch c := s.peek(); {
	case c == '{':
		return s.object(h)
	case c == '[':
		return s.array(h)
	case c == '"':
		return s.text(h)
	case c == '-' || '0' <= c && c <= '9':
		return s.number(h)
	case c == 't':
		return s.word("true", h)
	case c == 'f':
		return s.word("false", h)
	case c == 'n':
		return s.word("null", h)
	}
	return s.fail("a JSON value is missing")
}

func (s *scanner) word(w string, h hash.Hash) error {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return s.fail("a JSON value is missing")
	}
	s.i += len(w)
	if h != nil {
		h.Write([]byte{w[0]})
	}
	return nil
}

func (s *scanner) text(h hash.Hash) error {
	end, escaped, what := scanText(s.b, s.i)
	if what != "" {
		s.i = end
		return s.fail(what)
	}
	if h != nil {
		s.digestText(h, s.i, end, escaped)
	}
	s.i = end
	return nil
}

// number reads one number token; s.i stands on '-' or a digit.
func (s *scanner) number(h hash.Hash) error {
	start := s.i
	end, exponent := scanNumber(s.b, start)
	if end < 0 {
		return s.fail("a number is malformed")
	}
	s.i = end
	token := s.b[start:end]
	// Without an exponent it takes more than 308 digits to leave the double range.
	if exponent || len(token) > 308 {
		if _, err := strconv.ParseFloat(string(token), 64); err != nil {
			s.i = start
			return s.fail("a number is beyond the double range")
		}
	}
	if h != nil {
		d, ok := ParseDecimal(token)
		if !ok {
			s.i = start
			return s.fail("a number's exponent is too long")
		}
		s.digestDecimal(h, d)
	}
	return nil
}

func (s *scanner) enter() error {
	if s.depth++; s.depth > MaxDepth {
		return s.fail("arrays and objects nest too deeply")
	}
	s.i++
	s.space()
	return nil
}

func (s *scanner) array(h hash.Hash) error {
	if err := s.enter(); err != nil {
		return err
	}
	inner := s.hasher(h, 0)
	for first := true; s.peek() != ']'; first = false {
		if !first {
			if err := s.comma(); err != nil {
				return err
			}
		}
		if err := s.value(inner); err != nil {
			return err
		}
		s.space()
	}
	s.i++
	s.digestInner(h, 'A', inner)
	s.depth--
	return nil
}

// comma steps over the comma between two elements; a closing bracket after it is no element and fails there.
func (s *scanner) comma() error {
	if s.peek() != ',' {
		return s.fail("a comma or a closing bracket is missing")
	}
	s.i++
	s.space()
	return nil
}

func (s *scanner) object(h hash.Hash) error {
	if err := s.enter(); err != nil {
		return err
	}
	base := len(s.members)
	inner := s.hasher(h, 0)
	for first := true; s.peek() != '}'; first = false {
		if !first {
			if err := s.comma(); err != nil {
				return err
			}
		}
		if err := s.member(inner); err != nil {
			return err
		}
		s.space()
	}
	mine := s.members[base:]
	slices.SortFunc(mine, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(mine); i++ {
		if mine[i].name == mine[i-1].name {
			return fault.Newf(fault.Invalid, "jsonraw.Check", "member %.64q appears twice in one object", mine[i].name)
		}
	}
	s.i++
	s.digestMembers(inner, mine)
	s.digestInner(h, 'O', inner)
	clear(mine)
	s.members = s.members[:base]
	s.depth--
	return nil
}

// member reads one name and value and appends it to s.members. inner is nil unless digesting.
func (s *scanner) member(inner hash.Hash) error {
	if s.peek() != '"' {
		return s.fail("a member name is missing")
	}
	end, escaped, what := scanText(s.b, s.i)
	if what != "" {
		s.i = end
		return s.fail(what)
	}
	m := member{name: string(s.decoded(s.i, end, escaped))}
	s.i = end
	s.space()
	if s.peek() != ':' {
		return s.fail("a colon is missing")
	}
	s.i++
	s.space()
	vh := s.hasher(inner, 1)
	if err := s.value(vh); err != nil {
		return err
	}
	if vh != nil {
		vh.Sum(m.sum[:0])
	}
	s.members = append(s.members, m)
	return nil
}

// decoded returns the text of the string literal b[start:end]; the slice is valid until the next call.
func (s *scanner) decoded(start, end int, escaped bool) []byte {
	body := s.b[start+1 : end-1]
	if !escaped {
		return body
	}
	s.scratch = appendText(s.scratch[:0], body)
	return s.scratch
}

// scanNumber returns the end of the number that starts at b[i] and whether it has an exponent; -1 if it is malformed.
func scanNumber(b []byte, i int) (end int, exponent bool) {
	digits := func() bool {
		from := i
		for i < len(b) && '0' <= b[i] && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return -1, false
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return -1, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return -1, false
		}
		exponent = true
	}
	return i, exponent
}

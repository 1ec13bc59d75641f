package jsonraw

import "iter"

// Kind is the type of a JSON value.
type Kind uint8

// The kinds. None is what no JSON value is.
const (
	None Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// KindOf tells the kind of the value in checked bytes by its first character.
func KindOf(raw []byte) Kind {
	s := scanner{b: raw}
	s.space()
	switch c := s.peek(); {
	case c == 'n':
		return Null
	case c == 't' || c == 'f':
		return Bool
	case c == '-' || '0' <= c && c <= '9':
		return Number
	case c == '"':
		return String
	case c == '[':
		return Array
	case c == '{':
		return Object
	}
	return None
}

// Members ranges over the members of the object in raw, in order, each with its decoded name and the raw bytes of its
// value (a part of raw). raw must have passed Check; for anything but an object there is nothing to range over, and at
// a fault in unchecked bytes the range ends.
func Members(raw []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		s := scanner{b: raw}
		if !s.open('{') {
			return
		}
		for s.peek() == '"' {
			end, escaped, what := scanText(s.b, s.i)
			if what != "" {
				return
			}
			name := string(s.decoded(s.i, end, escaped))
			s.i = end
			s.space()
			if s.peek() != ':' {
				return
			}
			s.i++
			value, ok := s.skip()
			if !ok || !yield(name, value) || !s.next() {
				return
			}
		}
	}
}

// Items ranges over the elements of the array in raw, under the same terms as Members.
func Items(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := scanner{b: raw}
		if !s.open('[') {
			return
		}
		for s.peek() != ']' {
			value, ok := s.skip()
			if !ok || !yield(value) || !s.next() {
				return
			}
		}
	}
}

// Text returns the decoded string in raw; ok is false if raw is no string.
func Text(raw []byte) (text string, ok bool) {
	s := scanner{b: raw}
	s.space()
	if s.peek() != '"' {
		return "", false
	}
	end, escaped, what := scanText(s.b, s.i)
	if what != "" {
		return "", false
	}
	return string(s.decoded(s.i, end, escaped)), true
}

// Integer returns the integral number in raw, however it is spelled (host-api §2.2); ok is false if raw is no number,
// has a fraction or does not fit.
func Integer(raw []byte) (n int64, ok bool) {
	s := scanner{b: raw}
	s.space()
	end, _ := scanNumber(raw, s.i)
	if end < 0 {
		return 0, false
	}
	d, ok := ParseDecimal(raw[s.i:end])
	if !ok {
		return 0, false
	}
	return d.Int()
}

func (s *scanner) open(bracket byte) bool {
	s.space()
	if s.peek() != bracket {
		return false
	}
	s.i++
	s.space()
	return true
}

// next steps over the comma to a further element; false if there is none.
func (s *scanner) next() bool {
	s.space()
	if s.peek() != ',' {
		return false
	}
	s.i++
	s.space()
	return true
}

// skip steps over one value without judging it again: it only counts brackets outside strings.
func (s *scanner) skip() (value []byte, ok bool) {
	s.space()
	start, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			end, _, what := scanText(s.b, s.i)
			if what != "" {
				return nil, false
			}
			s.i = end
			if depth == 0 {
				return s.b[start:s.i], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.b[start:s.i], s.i > start
			}
			if depth--; depth == 0 {
				s.i++
				return s.b[start:s.i], true
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.b[start:s.i], s.i > start
			}
		}
		s.i++
	}
	return s.b[start:s.i], depth == 0 && s.i > start
}

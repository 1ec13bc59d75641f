package urlpattern

import "unicode"

type tokenKind int

const (
	tokenOpen tokenKind = iota
	tokenClose
	tokenRegexp
	tokenName
	tokenChar
	tokenEscaped
	tokenModifier
	tokenAsterisk
	tokenEnd
	tokenInvalid
)

// token is a piece of a pattern; at is where it begins.
type token struct {
	kind  tokenKind
	at    int
	value string
}

// tokenize splits a pattern. What is no token is an error, or, if lenient, a token of its own kind.
func tokenize(input []rune, lenient bool) ([]token, error) {
	tokens := make([]token, 0, len(input)+1)
	for at := 0; at < len(input); {
		kind, from, to, next := scan(input, at)
		if kind == tokenInvalid && !lenient {
			return nil, errorf("a piece of the pattern is not valid at character %d", at)
		}
		tokens = append(tokens, token{kind, at, string(input[from:to])})
		at = next
	}
	return append(tokens, token{kind: tokenEnd, at: len(input)}), nil
}

// scan looks at the token at a position: its value is input[from:to], and the next one begins at next.
func scan(input []rune, at int) (kind tokenKind, from, to, next int) {
	after := at + 1
	switch input[at] {
	case '*':
		return tokenAsterisk, at, after, after
	case '+', '?':
		return tokenModifier, at, after, after
	case '{':
		return tokenOpen, at, after, after
	case '}':
		return tokenClose, at, after, after
	case '\\':
		if after == len(input) {
			return tokenInvalid, at, after, after
		}
		return tokenEscaped, after, after + 1, after + 1
	case ':':
		end := after
		for end < len(input) && isNameRune(input[end], end == after) {
			end++
		}
		if end == after {
			return tokenInvalid, at, after, after
		}
		return tokenName, after, end, end
	case '(':
		if end := scanRegexp(input, after); end > after+1 {
			return tokenRegexp, after, end - 1, end
		}
		return tokenInvalid, at, after, after
	}
	return tokenChar, at, after, after
}

// scanRegexp returns where the group that begins behind an opening parenthesis ends, behind its own; 0 if it is not valid.
func scanRegexp(input []rune, start int) int {
	depth := 1
	for at := start; at < len(input); at++ {
		c := input[at]
		switch {
		case c > unicode.MaxASCII, c == '?' && at == start:
			return 0
		case c == '\\':
			at++
			if at == len(input) || input[at] > unicode.MaxASCII {
				return 0
			}
		case c == ')':
			if depth--; depth == 0 {
				return at + 1
			}
		case c == '(':
			depth++
			if at+1 == len(input) || input[at+1] != '?' {
				return 0 // a group that captures would shift the numbers of the others
			}
		}
	}
	return 0
}

// isNameRune reports whether c may stand in a name: what JavaScript allows in an identifier.
func isNameRune(c rune, first bool) bool {
	if c == '$' || c == '_' || unicode.In(c, unicode.Letter, unicode.Nl, unicode.Other_ID_Start) && !unicode.In(c, unicode.Pattern_Syntax, unicode.Pattern_White_Space) {
		return true
	}
	return !first && (c == 0x200c || c == 0x200d || unicode.In(c, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue))
}

package urlpattern

import (
	"fmt"
	"strconv"
)

// Error says why a pattern, or an input by component, is not valid.
type Error struct{ text string }

// Error returns the reason.
func (e *Error) Error() string { return e.text }

func errorf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

type partKind int

const (
	partFixed partKind = iota
	partRegexp
	partSegment // up to the next delimiter
	partFull    // everything
)

// part is a piece of a component's pattern. modifier is "", "?", "*" or "+".
type part struct {
	kind                 partKind
	value, modifier      string
	name, prefix, suffix string
}

// options of a component: what ends a segment, and what a group takes along when it is left out.
type options struct{ delimiter, prefix string }

var (
	plainOptions = options{}
	hostOptions  = options{delimiter: "."}
	pathOptions  = options{delimiter: "/", prefix: "/"}
)

// canonicalizer is what the URL parser makes of fixed text.
type canonicalizer func(text string) (string, error)

type patternParser struct {
	opt     options
	encode  canonicalizer
	segment string
	tokens  []token
	at      int
	parts   []part
	names   map[string]bool
	pending []byte // fixed text that is not in a part yet
	number  int    // of the next group without a name
}

// parsePattern parses a component's pattern.
func parsePattern(input string, opt options, encode canonicalizer) ([]part, error) {
	tokens, err := tokenize([]rune(input), false)
	if err != nil {
		return nil, err
	}
	p := &patternParser{opt: opt, encode: encode, segment: segmentRegexp(opt), tokens: tokens, names: map[string]bool{}}
	for p.at < len(p.tokens) {
		if err := p.piece(); err != nil {
			return nil, err
		}
	}
	return p.parts, nil
}

func (p *patternParser) try(kind tokenKind) *token {
	if t := &p.tokens[p.at]; t.kind == kind {
		p.at++
		return t
	}
	return nil
}

func (p *patternParser) require(kind tokenKind) error {
	if p.try(kind) == nil {
		return errorf("the pattern is not valid at character %d", p.tokens[p.at].at)
	}
	return nil
}

func (p *patternParser) tryGroup(name *token) *token {
	t := p.try(tokenRegexp)
	if t == nil && name == nil {
		t = p.try(tokenAsterisk)
	}
	return t
}

func (p *patternParser) tryModifier() string {
	for _, kind := range [...]tokenKind{tokenModifier, tokenAsterisk} {
		if t := p.try(kind); t != nil {
			return t.value
		}
	}
	return ""
}

func (p *patternParser) text() string {
	var s []byte
	for {
		t := p.try(tokenChar)
		if t == nil {
			t = p.try(tokenEscaped)
		}
		if t == nil {
			return string(s)
		}
		s = append(s, t.value...)
	}
}

// piece parses what comes next.
func (p *patternParser) piece() error {
	char := p.try(tokenChar)
	name := p.try(tokenName)
	group := p.tryGroup(name)
	if name != nil || group != nil {
		prefix := ""
		if char != nil {
			if prefix = char.value; prefix != p.opt.prefix {
				p.pending = append(p.pending, prefix...)
				prefix = ""
			}
		}
		if err := p.flush(); err != nil {
			return err
		}
		return p.add(prefix, name, group, "", p.tryModifier())
	}
	if char == nil {
		char = p.try(tokenEscaped)
	}
	if char != nil {
		p.pending = append(p.pending, char.value...)
		return nil
	}
	if p.try(tokenOpen) != nil {
		prefix := p.text()
		name = p.try(tokenName)
		group = p.tryGroup(name)
		suffix := p.text()
		if err := p.require(tokenClose); err != nil {
			return err
		}
		return p.add(prefix, name, group, suffix, p.tryModifier())
	}
	if err := p.flush(); err != nil {
		return err
	}
	return p.require(tokenEnd)
}

// flush makes the pending text a part.
func (p *patternParser) flush() error {
	if len(p.pending) == 0 {
		return nil
	}
	value, err := p.encode(string(p.pending))
	p.pending = p.pending[:0]
	p.parts = append(p.parts, part{kind: partFixed, value: value})
	return err
}

func (p *patternParser) add(prefix string, name, group *token, suffix, modifier string) error {
	if name == nil && group == nil && modifier == "" {
		p.pending = append(p.pending, prefix...)
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	if name == nil && group == nil {
		if prefix == "" {
			return nil
		}
		value, err := p.encode(prefix)
		p.parts = append(p.parts, part{kind: partFixed, value: value, modifier: modifier})
		return err
	}
	x := part{kind: partRegexp, modifier: modifier}
	switch {
	case group == nil:
		x.kind = partSegment
	case group.kind == tokenAsterisk, group.value == fullRegexp:
		x.kind = partFull
	case group.value == p.segment:
		x.kind = partSegment
	default:
		x.value = group.value
	}
	if name != nil {
		x.name = name.value
	} else {
		x.name = strconv.Itoa(p.number)
		p.number++
	}
	if p.names[x.name] {
		return errorf("the name %q stands for two groups", x.name)
	}
	p.names[x.name] = true
	var err error
	if x.prefix, err = p.encode(prefix); err != nil {
		return err
	}
	x.suffix, err = p.encode(suffix)
	p.parts = append(p.parts, x)
	return err
}

package urlpattern

import (
	"strings"
	"unicode/utf8"
)

const fullRegexp = ".*"

// escape writes text with a backslash before each of the given ASCII characters.
func escape(text, special string) string {
	if !strings.ContainsAny(text, special) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if strings.IndexByte(special, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func escapeRegexp(text string) string  { return shield(escape(text, `.+*?^${}()[]|/\`)) }
func escapePattern(text string) string { return escape(text, `+*?:{}()\`) }

func segmentRegexp(opt options) string {
	return "[^" + escape(opt.delimiter, `.+*?^${}()[]|/\`) + "]+?"
}

// shield writes punctuation outside of character classes in a way that means the same and that the engine takes too: with
// the flag v it holds it to the rules for what is inside of them, by which -, / and doubled characters are reserved.
func shield(expression string) string {
	const reserved = "-/&!#%,:;<=>@`~"
	if !strings.ContainsAny(expression, reserved) {
		return expression
	}
	var b strings.Builder
	depth := 0 // of classes
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case c == '\\' && i+1 < len(expression):
			b.WriteByte(c)
			i++
			c = expression[i]
		case c == '[':
			depth++
		case c == ']' && depth > 0:
			depth--
		case depth > 0:
		case c == '-', c == '/', i > 0 && c == expression[i-1] && strings.IndexByte(reserved, c) >= 0:
			const hex = "0123456789abcdef"
			b.WriteString(`\x` + string(hex[c>>4]) + string(hex[c&15]))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// regexpOf returns the regular expression of parts and the names of its groups.
func regexpOf(parts []part, opt options) (source string, names []string) {
	var b strings.Builder
	b.WriteByte('^')
	for _, p := range parts {
		if p.kind == partFixed {
			if p.modifier == "" {
				b.WriteString(escapeRegexp(p.value))
			} else {
				b.WriteString("(?:" + escapeRegexp(p.value) + ")" + p.modifier)
			}
			continue
		}
		names = append(names, p.name)
		value := shield(p.value)
		switch p.kind {
		case partSegment:
			value = segmentRegexp(opt)
		case partFull:
			value = fullRegexp
		}
		once := p.modifier == "" || p.modifier == "?"
		prefix, suffix := escapeRegexp(p.prefix), escapeRegexp(p.suffix)
		switch {
		case prefix == "" && suffix == "" && once:
			b.WriteString("(" + value + ")" + p.modifier)
		case prefix == "" && suffix == "":
			b.WriteString("((?:" + value + ")" + p.modifier + ")")
		case once:
			b.WriteString("(?:" + prefix + "(" + value + ")" + suffix + ")" + p.modifier)
		default:
			b.WriteString("(?:" + prefix + "((?:" + value + ")(?:" + suffix + prefix + "(?:" + value + "))*)" + suffix + ")")
			if p.modifier == "*" {
				b.WriteByte('?')
			}
		}
	}
	b.WriteByte('$')
	return b.String(), names
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func beginsName(text string) bool {
	c, size := utf8.DecodeRuneInString(text)
	return size > 0 && isNameRune(c, false)
}

// patternOf writes parts as the shortest pattern that means them.
func patternOf(parts []part, opt options) string {
	var b strings.Builder
	for i, p := range parts {
		if p.kind == partFixed {
			if p.modifier == "" {
				b.WriteString(escapePattern(p.value))
			} else {
				b.WriteString("{" + escapePattern(p.value) + "}" + p.modifier)
			}
			continue
		}
		named := !isDigit(p.name[0])
		group := needsGroup(parts, i, opt, named)
		if group {
			b.WriteByte('{')
		}
		b.WriteString(escapePattern(p.prefix))
		if named {
			b.WriteString(":" + p.name)
		}
		switch {
		case p.kind == partRegexp:
			b.WriteString("(" + p.value + ")")
		case p.kind == partSegment && !named:
			b.WriteString("(" + segmentRegexp(opt) + ")")
		case p.kind == partFull && !named && (i == 0 || parts[i-1].kind == partFixed || parts[i-1].modifier != "" || group || p.prefix != ""):
			b.WriteByte('*')
		case p.kind == partFull:
			b.WriteString("(" + fullRegexp + ")")
		case beginsName(p.suffix): // a segment with a name
			b.WriteByte('\\')
		}
		b.WriteString(escapePattern(p.suffix))
		if group {
			b.WriteByte('}')
		}
		b.WriteString(p.modifier)
	}
	return b.String()
}

// needsGroup reports whether parts[i] would be read otherwise without braces around it.
func needsGroup(parts []part, i int, opt options, named bool) bool {
	p := parts[i]
	if p.suffix != "" || p.prefix != "" && p.prefix != opt.prefix {
		return true
	}
	if named && p.kind == partSegment && p.modifier == "" && i+1 < len(parts) && parts[i+1].prefix == "" && parts[i+1].suffix == "" {
		next := parts[i+1]
		if next.kind == partFixed && beginsName(next.value) || next.kind != partFixed && isDigit(next.name[0]) {
			return true
		}
	}
	return p.prefix == "" && i > 0 && parts[i-1].kind == partFixed && opt.prefix != "" && strings.HasSuffix(parts[i-1].value, opt.prefix)
}

package urlpattern

import (
	"regexp"
	"strings"
)

// MaxBytes bounds a pattern, and an input by component.
const MaxBytes = 64 << 10

// How a component is matched.
const (
	MatchAll    = iota // anything; the one group "0" is all of it
	MatchText          // exactly Text
	MatchRegexp        // by the regular expression Text, with the flag v
)

// Component is one compiled component.
type Component struct {
	Pattern   string   // as the pattern is shown
	Match     int      // one of the above
	Text      string   // see Match
	Names     []string // of the groups
	HasRegexp bool     // the pattern holds a regular expression of its own
}

// Options for Compile.
type Options struct {
	// IgnoreCase is for paths, searches and hashes.
	IgnoreCase bool
	// Special is asked whether a regular expression matches the name of a special scheme. It is asked only for patterns
	// that hold an expression of their own.
	Special func(expression string) (bool, error)
}

// Compile compiles a pattern that is one string, with a base URL or nil. The order of the components is that of Init.Parts.
// An error is an *Error, or one of Options.Special.
func Compile(pattern string, base *string, opt Options) (c [8]Component, err error) {
	if len(pattern) > MaxBytes {
		return c, errorf("the pattern is longer than %d bytes", MaxBytes)
	}
	init, err := splitPattern(pattern, func(protocol string) (bool, error) {
		one, err := compile(protocol, plainOptions, canonProtocol, false)
		if err != nil {
			return false, err
		}
		return isSpecialPattern(&one, opt)
	})
	if err != nil {
		return c, err
	}
	if init.Base = base; base == nil && !init.has(protocol) {
		return c, errorf("a relative pattern needs a base URL")
	}
	return CompileInit(init, opt)
}

// CompileInit compiles a pattern that is given by component, as Compile does.
func CompileInit(init *Init, opt Options) (c [8]Component, err error) {
	full, err := init.process(true, nil)
	if err != nil {
		return c, err
	}
	text := func(k component) string {
		if full.Parts[k] == nil {
			return "*"
		}
		return *full.Parts[k]
	}
	ports := text(port)
	if def, ok := defaultPorts[text(protocol)]; ok && def == ports {
		ports = ""
	}
	do := func(k component, value string, o options, canon canonicalizer) {
		if err == nil {
			c[k], err = compile(value, o, canon, opt.IgnoreCase && k >= pathname)
		}
	}
	do(protocol, text(protocol), plainOptions, canonProtocol)
	if err != nil {
		return c, err
	}
	special, err := isSpecialPattern(&c[protocol], opt)
	do(username, text(username), plainOptions, canonUsername)
	do(password, text(password), plainOptions, canonPassword)
	host, path, pathOpt := canonOpaqueHost, canonOpaquePathname, plainOptions
	if special {
		host, path, pathOpt = canonHost, canonPathname, pathOptions
	}
	if isIPv6Pattern(text(hostname)) {
		host = canonIPv6
	}
	do(hostname, text(hostname), hostOptions, host)
	do(port, ports, plainOptions, canonPort)
	do(pathname, text(pathname), pathOpt, path)
	do(search, text(search), plainOptions, canonSearch)
	do(hash, text(hash), plainOptions, canonHash)
	return c, err
}

func isIPv6Pattern(s string) bool {
	return len(s) >= 2 && (s[0] == '[' || strings.HasPrefix(s, "{[") || strings.HasPrefix(s, `\[`))
}

func compile(pattern string, o options, canon canonicalizer, ignoreCase bool) (Component, error) {
	if pattern == "*" {
		return Component{Pattern: "*", Match: MatchAll, Names: []string{"0"}}, nil
	}
	parts, err := parsePattern(pattern, o, canon)
	if err != nil {
		return Component{}, err
	}
	c := Component{Pattern: patternOf(parts, o), Match: MatchRegexp}
	for _, p := range parts {
		c.HasRegexp = c.HasRegexp || p.kind == partRegexp
	}
	switch {
	case len(parts) == 0 && !ignoreCase:
		c.Match = MatchText
	case len(parts) == 1 && parts[0].kind == partFixed && parts[0].modifier == "" && !ignoreCase:
		c.Match, c.Text = MatchText, parts[0].value
	default:
		c.Text, c.Names = regexpOf(parts, o)
	}
	return c, nil
}

// isSpecialPattern reports whether a protocol's pattern matches a special scheme.
func isSpecialPattern(c *Component, opt Options) (bool, error) {
	switch {
	case c.Match == MatchAll:
		return true, nil
	case c.Match == MatchText:
		return isSpecial(c.Text), nil
	case c.HasRegexp:
		return opt.Special(c.Text)
	}
	re, err := regexp.Compile(strings.ReplaceAll(c.Text, "[^]", `[\s\S]`)) // the two languages agree on all else
	if err != nil {
		return false, errorf("the pattern of the protocol is too long")
	}
	for scheme := range defaultPorts {
		if re.MatchString(scheme) {
			return true, nil
		}
	}
	return false, nil
}

package urlpattern

import (
	"strings"

	"edged/sandbox/hostapi/whatwgurl"
)

// component numbers the components of a URL in the order of the standard.
type component int

const (
	protocol component = iota
	username
	password
	hostname
	port
	pathname
	search
	hash
	numComponents
)

// Init is a pattern, or a URL, given by component. The order of Parts is protocol, username, password, hostname, port,
// pathname, search, hash.
type Init struct {
	Parts [numComponents]*string // nil: absent
	Base  *string                // a base URL, nil: none
}

func (i *Init) has(parts ...component) bool {
	for _, c := range parts {
		if i.Parts[c] != nil {
			return true
		}
	}
	return false
}

// URL returns the components of the URL that an Init stands for; what it does not say is "".
func (i *Init) URL() (c [8]string, err error) {
	var empty Init
	for k := range empty.Parts {
		empty.Parts[k] = new(string)
	}
	out, err := i.process(false, &empty)
	if err != nil {
		return c, err
	}
	for k := range c {
		c[k] = *out.Parts[k]
	}
	return c, nil
}

// process completes an Init from its base. Of a pattern the text stays as it is; of a URL it becomes canonical.
func (i *Init) process(isPattern bool, given *Init) (*Init, error) {
	if i.length() > MaxBytes {
		return nil, errorf("the input is longer than %d bytes", MaxBytes)
	}
	out := &Init{}
	if given != nil {
		out.Parts = given.Parts
	}
	base, err := i.inherit(out, isPattern)
	if err != nil {
		return nil, err
	}
	put := func(c component, strip func(string) string, canon canonicalizer) {
		if i.Parts[c] == nil || err != nil {
			return
		}
		value := *i.Parts[c]
		if strip != nil {
			value = strip(value)
		}
		if !isPattern {
			value, err = canon(value)
		}
		out.Parts[c] = &value
	}
	put(protocol, func(s string) string { return strings.TrimSuffix(s, ":") }, canonProtocol)
	put(username, nil, canonUsername)
	put(password, nil, canonPassword)
	scheme := ""
	if out.Parts[protocol] != nil {
		scheme = *out.Parts[protocol]
	}
	host := canonHost
	if scheme != "" && !isSpecial(scheme) {
		host = canonOpaqueHost
	}
	put(hostname, nil, host)
	put(port, nil, func(s string) (string, error) { return canonPortFor(scheme, s) })
	path := canonPathname
	if scheme != "" && !isSpecial(scheme) {
		path = canonOpaquePathname
	}
	put(pathname, func(s string) string { return resolve(s, base, isPattern) }, path)
	put(search, func(s string) string { return strings.TrimPrefix(s, "?") }, canonSearch)
	put(hash, func(s string) string { return strings.TrimPrefix(s, "#") }, canonHash)
	return out, err
}

func (i *Init) length() (n int) {
	for _, s := range append(i.Parts[:], i.Base) {
		if s != nil {
			n += len(*s)
		}
	}
	return n
}

// inherit puts into out what i takes from its base, and returns the base's components, nil if it has none.
func (i *Init) inherit(out *Init, isPattern bool) (*[numComponents]string, error) {
	if i.Base == nil {
		return nil, nil
	}
	u, ok := whatwgurl.Parse(*i.Base, nil)
	if !ok {
		return nil, errorf("the base URL is not valid")
	}
	base := split(u)
	take := func(c component, unless ...component) {
		if i.has(unless...) {
			return
		}
		value := base[c]
		if isPattern {
			value = escapePattern(value)
		}
		out.Parts[c] = &value
	}
	take(protocol, protocol)
	if !isPattern {
		take(username, protocol, hostname, port, username)
		take(password, protocol, hostname, port, username, password)
	}
	take(hostname, protocol, hostname)
	take(port, protocol, hostname, port)
	take(pathname, protocol, hostname, port, pathname)
	take(search, protocol, hostname, port, pathname, search)
	take(hash, protocol, hostname, port, pathname, search, hash)
	return &base, nil
}

// resolve makes a relative path absolute, by a base whose path is not opaque.
func resolve(path string, base *[numComponents]string, isPattern bool) string {
	if base == nil || !strings.HasPrefix(base[pathname], "/") || isAbsolute(path, isPattern) {
		return path
	}
	dir := base[pathname]
	if isPattern {
		dir = escapePattern(dir)
	}
	return dir[:strings.LastIndexByte(dir, '/')+1] + path
}

func isAbsolute(path string, isPattern bool) bool {
	return strings.HasPrefix(path, "/") || isPattern && (strings.HasPrefix(path, `\/`) || strings.HasPrefix(path, "{/"))
}

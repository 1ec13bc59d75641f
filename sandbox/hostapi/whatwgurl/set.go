package whatwgurl

import "strings"

// Part names a part of a URL that can be set.
type Part int

// The parts, numbered as the prelude numbers them: append only.
const (
	Protocol Part = iota
	Username
	Password
	Host // with port
	Hostname
	Port
	Pathname
	Search
	Hash
)

// Set sets a part as the URL class does: a value that the standard refuses leaves u as it was. It returns whether u may
// have changed.
func (u *URL) Set(part Part, value string) bool {
	if len(value) > MaxBytes {
		return false
	}
	switch part {
	case Username, Password:
		if u.cannotHaveCredentials() {
			return false
		}
		if part == Username {
			u.username = userSet.encode(value)
		} else {
			u.password = userSet.encode(value)
		}
		return true
	}
	switch part {
	case Search:
		u.query, u.hasQuery = "", false
		if value != "" {
			u.setQuery(withoutTabs(strings.TrimPrefix(value, "?")))
		}
		return true
	case Hash:
		u.fragment, u.hasFragment = "", false
		if value != "" {
			u.setFragment(withoutTabs(strings.TrimPrefix(value, "#")))
		}
		return true
	}
	empty := value == "" // not the same as empty without its tabs
	value = withoutTabs(value)
	switch part {
	case Protocol:
		return u.setProtocol(value)
	case Host, Hostname:
		return !u.opaque && u.setHost(value, part == Host)
	case Port:
		return u.setPortText(value, empty)
	case Pathname:
		return u.setPathname(value)
	}
	return false
}

func (u *URL) setProtocol(value string) bool {
	scheme, _, ok := cutScheme(value + ":")
	if !ok {
		return false
	}
	if _, special := special(scheme); special != u.isSpecial() {
		return false
	}
	if scheme == "file" && (u.includesCredentials() || u.port != noPort) || u.scheme == "file" && u.host == "" {
		return false
	}
	u.scheme = scheme
	if u.port != noPort {
		u.setPort(u.port)
	}
	return true
}

func (u *URL) setHost(value string, withPort bool) bool {
	special := u.isSpecial()
	stop := "/?#"
	if special {
		stop = `/\?#`
	}
	if end := strings.IndexAny(value, stop); end >= 0 {
		value = value[:end]
	}
	if u.scheme == "file" {
		return u.setFileHost(value)
	}
	name, port, hasPort := cutPort(value)
	if hasPort && (!withPort || name == "") {
		return false
	}
	if name == "" && (special || u.includesCredentials() || u.port != noPort) {
		return false
	}
	host, ok := parseHost(name, special)
	if !ok {
		return false
	}
	u.host, u.hasHost = host, true
	if n, digits, ok := parsePort(port); ok && digits > 0 {
		u.setPort(n)
	}
	return true
}

func (u *URL) setFileHost(name string) bool {
	if name == "" {
		u.host, u.hasHost = "", true
		return true
	}
	host, ok := parseHost(name, true)
	if !ok {
		return false
	}
	if host == "localhost" {
		host = ""
	}
	u.host, u.hasHost = host, true
	return true
}

func (u *URL) setPortText(value string, clear bool) bool {
	if u.cannotHaveCredentials() {
		return false
	}
	if clear {
		u.port = noPort
		return true
	}
	n, digits, ok := parsePort(value)
	if !ok || digits == 0 {
		return false
	}
	u.setPort(n)
	return true
}

func (u *URL) setPathname(value string) bool {
	if u.opaque {
		return false
	}
	u.path = ""
	if value == "" && !u.isSpecial() {
		if !u.hasHost {
			u.path = "/"
		}
		return true
	}
	u.appendPath(value)
	return true
}

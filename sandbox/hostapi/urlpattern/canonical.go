package urlpattern

import (
	"strings"

	"edged/sandbox/hostapi/whatwgurl"
)

// dummy is a URL whose parts are set to see what becomes of a value.
func dummy(scheme string) *whatwgurl.URL {
	u, ok := whatwgurl.Parse(scheme+"://dummy.invalid/", nil)
	if !ok {
		u, _ = whatwgurl.Parse("https://dummy.invalid/", nil)
	}
	return u
}

// set sets a part of u and returns what it is then, without what marks it.
func set(u *whatwgurl.URL, part whatwgurl.Part, value string) (string, bool) {
	ok := u.Set(part, value)
	return split(u)[componentOf[part]], ok
}

var componentOf = map[whatwgurl.Part]component{
	whatwgurl.Username: username, whatwgurl.Password: password, whatwgurl.Hostname: hostname, whatwgurl.Port: port,
	whatwgurl.Pathname: pathname, whatwgurl.Search: search, whatwgurl.Hash: hash,
}

// split returns the components of a URL.
func split(u *whatwgurl.URL) (c [numComponents]string) {
	b, p := u.AppendTo(nil)
	href := string(b)
	c[protocol] = href[:p.ProtocolEnd-1]
	c[username] = href[p.UserStart:p.UserEnd]
	if p.PasswordEnd > p.UserEnd {
		c[password] = href[p.UserEnd+1 : p.PasswordEnd]
	}
	c[hostname] = href[p.HostStart:p.HostEnd]
	if strings.HasPrefix(href[p.HostEnd:p.PathStart], ":") {
		c[port] = href[p.HostEnd+1 : p.PathStart]
	}
	c[pathname] = href[p.PathStart:p.SearchStart]
	c[search] = strings.TrimPrefix(href[p.SearchStart:p.HashStart], "?")
	c[hash] = strings.TrimPrefix(href[p.HashStart:], "#")
	return c
}

func canonProtocol(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	u, ok := whatwgurl.Parse(value+"://dummy.invalid/", nil)
	if !ok {
		return "", errorf("%q is not a valid protocol", brief(value))
	}
	return split(u)[protocol], nil
}

func canonUsername(value string) (string, error) {
	s, _ := set(dummy("https"), whatwgurl.Username, value)
	return s, nil
}

func canonPassword(value string) (string, error) {
	s, _ := set(dummy("https"), whatwgurl.Password, value)
	return s, nil
}

// canonHost is for special schemes, whose hosts are domains; canonOpaqueHost for all others.
func canonHost(value string) (string, error) { return canonHostOf("https", value) }

func canonOpaqueHost(value string) (string, error) { return canonHostOf("x", value) }

func canonHostOf(scheme, value string) (string, error) {
	if value == "" {
		return "", nil
	}
	s, ok := set(dummy(scheme), whatwgurl.Hostname, value)
	if !ok {
		return "", errorf("%q is not a valid hostname", brief(value))
	}
	return s, nil
}

func canonIPv6(value string) (string, error) {
	for i := 0; i < len(value); i++ {
		if c := value[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') && c != '[' && c != ']' && c != ':' {
			return "", errorf("%q is not a piece of an IPv6 address", brief(value))
		}
	}
	return strings.ToLower(value), nil
}

func canonPort(value string) (string, error) { return canonPortFor("x", value) }

func canonPortFor(scheme, value string) (string, error) {
	if value == "" {
		return "", nil
	}
	s, ok := set(dummy(scheme), whatwgurl.Port, value)
	if !ok {
		return "", errorf("%q is not a valid port", brief(value))
	}
	return s, nil
}

func canonPathname(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	if value[0] == '/' {
		s, _ := set(dummy("https"), whatwgurl.Pathname, value)
		return s, nil
	}
	s, _ := set(dummy("https"), whatwgurl.Pathname, "/-"+value)
	if len(s) < 2 {
		return "", errorf("%q is not a valid piece of a path", brief(value))
	}
	return s[2:], nil
}

func canonOpaquePathname(value string) (string, error) { return whatwgurl.OpaquePath(value), nil }

func canonSearch(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	s, _ := set(dummy("https"), whatwgurl.Search, "?"+value)
	return s, nil
}

func canonHash(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	s, _ := set(dummy("https"), whatwgurl.Hash, "#"+value)
	return s, nil
}

// brief cuts what is shown in an error.
func brief(s string) string { return strings.ToValidUTF8(s[:min(len(s), 64)], "") }

// defaultPorts are the special schemes with the ports that they do not show.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", "file": ""}

func isSpecial(scheme string) bool {
	_, ok := defaultPorts[scheme]
	return ok
}

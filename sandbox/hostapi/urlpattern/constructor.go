package urlpattern

// The states of the constructor string parser beside the components themselves.
const (
	stateInit      = numComponents + iota
	stateAuthority // between the scheme and whatever turns out to come
	stateDone
)

type constructor struct {
	input    []rune
	tokens   []token
	out      Init
	start    int // of the component
	at       int
	step     int
	depth    int // of groups
	brackets int // of an IPv6 address
	special  bool
	state    component
	judge    func(protocol string) (bool, error)
}

// splitPattern splits a pattern that is one string. judge says whether a protocol's pattern matches a special scheme.
func splitPattern(input string, judge func(string) (bool, error)) (*Init, error) {
	p := &constructor{input: []rune(input), state: stateInit, judge: judge}
	p.tokens, _ = tokenize(p.input, true)
	for p.at < len(p.tokens) {
		p.step = 1
		done, err := p.next()
		if err != nil {
			return nil, err
		}
		if done {
			break
		}
		p.at += p.step
	}
	if p.out.has(hostname) && !p.out.has(port) {
		p.out.Parts[port] = new(string)
	}
	return &p.out, nil
}

// next looks at one token.
func (p *constructor) next() (done bool, err error) {
	t := p.tokens[p.at]
	if t.kind == tokenEnd {
		return p.end()
	}
	if t.kind == tokenOpen {
		p.depth++
		return false, nil
	}
	if p.depth > 0 {
		if t.kind != tokenClose {
			return false, nil
		}
		p.depth--
	}
	switch p.state {
	case stateInit:
		if p.is(p.at, ":") {
			p.rewind(protocol)
		}
	case protocol:
		if p.is(p.at, ":") {
			err = p.afterProtocol()
		}
	case stateAuthority:
		if p.is(p.at, "@") {
			p.rewind(username)
		} else if p.is(p.at, "/") || p.isSearch() || p.is(p.at, "#") {
			p.rewind(hostname)
		}
	case username:
		if p.is(p.at, ":") {
			p.change(password, 1)
		} else if p.is(p.at, "@") {
			p.change(hostname, 1)
		}
	case password:
		if p.is(p.at, "@") {
			p.change(hostname, 1)
		}
	case hostname:
		switch {
		case p.is(p.at, "["):
			p.brackets++
		case p.is(p.at, "]"):
			p.brackets--
		case p.is(p.at, ":") && p.brackets == 0:
			p.change(port, 1)
		default:
			p.tail(pathname)
		}
	case port:
		p.tail(pathname)
	case pathname:
		p.tail(search)
	case search:
		p.tail(hash)
	}
	return false, err
}

// tail looks for the beginning of a component behind the host, from the given one on.
func (p *constructor) tail(from component) {
	switch {
	case from <= pathname && p.is(p.at, "/"):
		p.change(pathname, 0)
	case from <= search && p.isSearch():
		p.change(search, 1)
	case p.is(p.at, "#"):
		p.change(hash, 1)
	}
}

func (p *constructor) end() (done bool, err error) {
	switch p.state {
	case stateInit:
		p.at, p.step = p.start, 0
		switch {
		case p.is(p.at, "#"):
			p.change(hash, 1)
		case p.isSearch():
			p.change(search, 1)
		default:
			p.change(pathname, 0)
		}
		return false, nil
	case stateAuthority:
		p.rewind(hostname)
		return false, nil
	}
	p.change(stateDone, 0)
	return true, nil
}

func (p *constructor) afterProtocol() (err error) {
	if p.special, err = p.judge(p.text()); err != nil {
		return err
	}
	switch {
	case p.is(p.at+1, "/") && p.is(p.at+2, "/"):
		p.change(stateAuthority, 3)
	case p.special:
		p.change(stateAuthority, 1)
	default:
		p.change(pathname, 1)
	}
	return nil
}

func (p *constructor) rewind(state component) {
	p.at, p.step, p.state = p.start, 0, state
}

func (p *constructor) change(state component, skip int) {
	old := p.state
	if old < numComponents {
		text := p.text()
		p.out.Parts[old] = &text
	}
	if old != stateInit && state != stateDone {
		front := old <= password || old == stateAuthority // before the host
		p.fill(hostname, "", front && state >= port && state <= hash)
		path := ""
		if p.special {
			path = "/"
		}
		p.fill(pathname, path, (old <= port || old == stateAuthority) && (state == search || state == hash))
		p.fill(search, "", (old <= pathname || old == stateAuthority) && state == hash)
	}
	p.state = state
	p.at += skip
	p.start, p.step = p.at, 0
}

// fill gives a component that was passed over its value.
func (p *constructor) fill(c component, value string, passed bool) {
	if passed && p.out.Parts[c] == nil {
		p.out.Parts[c] = &value
	}
}

func (p *constructor) token(at int) token { return p.tokens[min(at, len(p.tokens)-1)] }

func (p *constructor) text() string { return string(p.input[p.token(p.start).at:p.token(p.at).at]) }

// is reports whether a token is a character that the pattern syntax gives no meaning.
func (p *constructor) is(at int, c string) bool {
	t := p.token(at)
	return t.value == c && (t.kind == tokenChar || t.kind == tokenEscaped || t.kind == tokenInvalid)
}

// isSearch reports whether a question mark begins the search, and is not the modifier of a group.
func (p *constructor) isSearch() bool {
	if p.is(p.at, "?") {
		return true
	}
	if p.token(p.at).value != "?" || p.token(p.at).kind == tokenEnd {
		return false
	}
	if p.at == 0 {
		return true
	}
	switch p.tokens[p.at-1].kind {
	case tokenName, tokenRegexp, tokenClose, tokenAsterisk:
		return false
	}
	return true
}

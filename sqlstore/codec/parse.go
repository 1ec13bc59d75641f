package codec

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

const opParse = "sqlstore.Parse"

// ParseStatement reads {"sql": text, "params": [value objects]}; params may be absent. It is the form of one execute or
// query call and of one member of a transaction (sql §§2, 3).
//
// ErrType: the JSON, a member or a type is wrong, or there are too many parameters. ErrSQL: a value or the SQL text is out
// of its limit, not canonical or not Unicode. ErrRange: a number that no REAL holds; as JSON cannot write a number that is
// not finite, a caller that meets one may write 1e999.
//
// Memory and time are bounded by a small multiple of the length of data. The Statement keeps nothing of data.
func ParseStatement(data []byte) (Statement, error) {
	p, err := newParser(data)
	if err != nil {
		return Statement{}, err
	}
	s, err := p.statement()
	if err == nil {
		err = p.end()
	}
	if err == nil {
		err = s.Check()
	}
	return s, err
}

// ParseCall is ParseStatement for an SQL text that is there already, and its parameters: [value objects], which may not be absent.
func ParseCall(sql string, params []byte) (Statement, error) {
	p, err := newParser(params)
	if err != nil {
		return Statement{}, err
	}
	s := Statement{SQL: sql}
	s.Params, err = p.params()
	if err == nil {
		err = p.end()
	}
	if err == nil {
		err = s.Check()
	}
	return s, err
}

// ParseStatements reads a transaction: an array of 1 to 100 of what ParseStatement reads. Errors are the same.
func ParseStatements(data []byte) ([]Statement, error) {
	p, err := newParser(data)
	if err != nil {
		return nil, err
	}
	if err := p.expect('[', "an array of statements"); err != nil {
		return nil, err
	}
	var out []Statement
	for {
		more, err := p.more(len(out) == 0, ']')
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		if len(out) == MaxStatements {
			return nil, checkCount(MaxStatements + 1)
		}
		s, err := p.statement()
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	if err := checkCount(len(out)); err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return out, CheckTransaction(out)
}

// A parser is a scanner that remembers the first wrong content, for a wrong shape further on wins over it.
type parser struct {
	scanner
	content error
}

func newParser(data []byte) (*parser, error) {
	if !utf8.Valid(data) {
		return nil, ErrType.New(opParse, "the call is not UTF-8")
	}
	return &parser{scanner: scanner{b: data}}, nil
}

func (p *parser) wrong(err error) {
	if p.content == nil {
		p.content = err
	}
}

func (p *parser) end() error {
	if p.peek() != 0 || p.i < len(p.b) {
		return p.bad("the end")
	}
	return p.content
}

func (p *parser) statement() (s Statement, err error) {
	if err := p.expect('{', "a statement object"); err != nil {
		return s, err
	}
	var haveSQL, haveParams bool
	for first := true; ; first = false {
		more, err := p.more(first, '}')
		if err != nil {
			return s, err
		}
		if !more {
			break
		}
		name, err := p.member()
		if err != nil {
			return s, err
		}
		switch {
		case name == "sql" && !haveSQL:
			haveSQL = true
			s.SQL, err = p.text("the SQL text as a string")
		case name == "params" && !haveParams:
			haveParams = true
			s.Params, err = p.params()
		default:
			err = ErrType.Newf(opParse, "a statement has no member %.40q, or has it twice", name)
		}
		if err != nil {
			return s, err
		}
	}
	if !haveSQL {
		return s, p.bad("a member sql")
	}
	return s, nil
}

func (p *parser) member() (string, error) {
	name, _, err := p.str("a member name")
	if err != nil {
		return "", err
	}
	return name, p.expect(':', "a colon")
}

// text reads a string whose content must be Unicode.
func (p *parser) text(what string) (string, error) {
	s, whole, err := p.str(what)
	if err == nil && !whole {
		p.wrong(ErrSQL.New(opParse, "a text holds half of a surrogate pair, which is not Unicode"))
	}
	return s, err
}

func (p *parser) params() ([]Value, error) {
	if err := p.expect('[', "an array of parameters"); err != nil {
		return nil, err
	}
	var out []Value
	for {
		more, err := p.more(len(out) == 0, ']')
		if err != nil || !more {
			return out, err
		}
		if len(out) == MaxParams {
			return nil, ErrType.Newf(opParse, "more than %d parameters", MaxParams)
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

// The content of a value object may come before its tag, so both are kept until the object ends.
type content struct {
	tag       string
	value     string // of a string member
	base64    string
	number    string
	hasTag    bool
	hasValue  bool
	isNumber  bool
	hasBase64 bool
}

func (p *parser) value() (Value, error) {
	if err := p.expect('{', "a tagged value object"); err != nil {
		return Value{}, err
	}
	var c content
	for first := true; ; first = false {
		more, err := p.more(first, '}')
		if err != nil {
			return Value{}, err
		}
		if !more {
			return p.decide(&c)
		}
		name, err := p.member()
		if err != nil {
			return Value{}, err
		}
		switch {
		case name == "type" && !c.hasTag:
			c.hasTag = true
			c.tag, _, err = p.str("a tag as a string")
		case name == "value" && !c.hasValue:
			c.hasValue = true
			err = p.scalar(&c)
		case name == "base64" && !c.hasBase64:
			c.hasBase64 = true
			c.base64, err = p.text("base64 as a string")
		default:
			err = ErrType.Newf(opParse, "a value has no member %.40q, or has it twice", name)
		}
		if err != nil {
			return Value{}, err
		}
	}
}

func (p *parser) scalar(c *content) (err error) {
	if p.peek() == '"' {
		c.value, err = p.text("a string")
		return err
	}
	c.isNumber = true
	c.number, err = p.number("a string or a number")
	return err
}

// decide makes the Value of a complete object.
func (p *parser) decide(c *content) (Value, error) {
	switch {
	case c.tag == "null" && !c.hasValue && !c.hasBase64:
		return Null(), nil
	case c.tag == "integer" && c.hasValue && !c.isNumber && !c.hasBase64:
		n, err := strconv.ParseInt(c.value, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != c.value {
			p.wrong(ErrSQL.Newf(opParse, "%.40q is no canonical 64-bit integer", c.value))
		}
		return Integer(n), nil
	case c.tag == "real" && c.hasValue && c.isNumber && !c.hasBase64:
		f, _ := strconv.ParseFloat(c.number, 64)
		if math.IsInf(f, 0) {
			p.wrong(ErrRange.New(opParse, "a number is not finite"))
		}
		return Real(f), nil
	case c.tag == "text" && c.hasValue && !c.isNumber && !c.hasBase64:
		return Text(c.value), nil
	case c.tag == "blob" && c.hasBase64 && !c.hasValue:
		b, err := base64.StdEncoding.Strict().DecodeString(c.base64)
		if err != nil || strings.ContainsAny(c.base64, "\r\n") {
			p.wrong(ErrSQL.New(opParse, "a blob is not padded, unwrapped base64"))
		}
		return Blob(b), nil
	}
	return Value{}, ErrType.Newf(opParse, "a value with the tag %.20q does not have the members of that tag", c.tag)
}

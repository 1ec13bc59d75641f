package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"edged/control/form"
	"edged/control/jsonraw"
	"edged/control/state"
	"edged/internal/fault"
)

// query is step 5 for the parameters: only known ones, each once.
func (c *call) query(known ...string) (url.Values, *problem) {
	values, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, malformed("the query is malformed")
	}
	for name, all := range values {
		if !slices.Contains(known, name) {
			return nil, malformed("unknown query parameter")
		}
		if len(all) > 1 {
			return nil, malformed("query parameter " + name + " is repeated")
		}
	}
	return values, nil
}

// idempotencyKey reads the header that every mutation needs: [A-Za-z0-9][A-Za-z0-9._:-]{15,127}.
func (c *call) idempotencyKey() (string, *problem) {
	values := c.r.Header.Values("Idempotency-Key")
	if len(values) != 1 {
		return "", malformed("exactly one Idempotency-Key is needed")
	}
	key := values[0]
	ok := len(key) >= 16 && len(key) <= 128
	for i := 0; ok && i < len(key); i++ {
		ch := key[i]
		letter := ch|0x20 >= 'a' && ch|0x20 <= 'z' || ch >= '0' && ch <= '9'
		ok = letter || i > 0 && strings.IndexByte("._:-", ch) >= 0
	}
	if !ok {
		return "", malformed("Idempotency-Key must match [A-Za-z0-9][A-Za-z0-9._:-]{15,127}")
	}
	return key, nil
}

// expectedGeneration reads the fence of an update or delete.
func (c *call) expectedGeneration() (uint64, *problem) {
	values := c.r.Header.Values("Takoform-Expected-Generation")
	if len(values) == 0 {
		return 0, &problem{status: http.StatusPreconditionRequired, code: "expected_generation_required", detail: "Takoform-Expected-Generation is needed"}
	}
	text := values[0]
	n, err := strconv.ParseUint(text, 10, 64)
	if len(values) > 1 || err != nil || n > state.MaxCounter || strings.Trim(text, "0123456789") != "" {
		return 0, malformed("Takoform-Expected-Generation must be one decimal integer")
	}
	return n, nil
}

// bodyTimeout bounds how long the body of a request may take to arrive: 8 MiB at about 140 KiB/s. The server lifts it
// once the body is there, so that it does not end the wait for an answer.
const bodyTimeout = time.Minute

// document is steps 6 and 7 up to the envelope: media type, size, raw JSON.
func (c *call) document() ([]byte, *problem) {
	types := c.r.Header.Values("Content-Type")
	if len(types) != 1 || !isJSON(types[0]) {
		return nil, unsupportedType("the body must be application/json")
	}
	if enc := c.r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, unsupportedType("the body must not be encoded")
	}
	tooLarge := &problem{status: http.StatusRequestEntityTooLarge, code: "request_too_large",
		detail: "the body may have " + strconv.FormatInt(c.opt.MaxRequestBytes, 10) + " bytes"}
	if c.r.ContentLength > c.opt.MaxRequestBytes {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.opt.MaxRequestBytes))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		return nil, malformed("the body did not arrive")
	}
	if err := jsonraw.Check(body); err != nil {
		return nil, malformed(fault.Detail(err))
	}
	return body, nil
}

// empty refuses a body where none belongs, whatever the headers say of it.
func (c *call) empty() *problem {
	var one [1]byte
	switch n, err := io.ReadFull(c.r.Body, one[:]); {
	case n > 0:
		return malformed("this request has no body")
	case err != io.EOF: // a body was announced, and broke off before its first byte
		return malformed("the body did not arrive")
	}
	return nil
}

// drain reads what is left of a refused body, so that a client that sends all of it first gets to read the answer: a
// connection that is closed under unread bytes takes the answer with it. What is far too long is not waited for, nor
// what the client holds back until it is asked for.
func (c *call) drain() {
	most := 2 * c.opt.MaxRequestBytes
	if c.r.Header.Get("Expect") != "" {
		return
	}
	if c.r.ContentLength > most {
		c.w.Header().Set("Connection", "close")
		return
	}
	_, _ = io.CopyN(io.Discard, c.r.Body, most) // whatever became of it, the answer is the same
}

func unsupportedType(detail string) *problem {
	return &problem{status: http.StatusUnsupportedMediaType, code: "unsupported_media_type", detail: detail}
}

func isJSON(value string) bool {
	mediaType, params, err := mime.ParseMediaType(value)
	if err != nil || mediaType != "application/json" {
		return false
	}
	charset, named := params["charset"]
	return !named || strings.EqualFold(charset, "utf-8")
}

// nameParam reads an optional query parameter of the grammar of names.
func nameParam(values url.Values, name string) (string, *problem) {
	if !values.Has(name) {
		return "", nil
	}
	v := values.Get(name)
	if !form.IsName(v) {
		return "", malformed("query parameter " + name + " is malformed")
	}
	return v, nil
}

func formParam(values url.Values) (string, *problem) {
	v := values.Get("form")
	if values.Has("form") && !form.IsFormURL(v) {
		return "", malformed("query parameter form is not a Form URL")
	}
	return v, nil
}

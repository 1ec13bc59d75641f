package outbound

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"edged/internal/fault"
	"edged/sandbox/event"
)

// fill copies an answer. A coding of the body is undone where it is known; the fields that speak of the coded form then go.
func fill(res *event.Response, answer *http.Response, method string) error {
	bare := method == "HEAD" || answer.StatusCode == http.StatusNoContent || answer.StatusCode == http.StatusNotModified
	if answer.StatusCode < 200 || answer.StatusCode > 599 { // 101: nothing here could take the connection over
		answer.Body.Close()
		return fault.New(fault.Invalid, "outbound.Fetch", "the answer's status is not between 200 and 599")
	}
	body := io.ReadCloser(answer.Body)
	if !bare {
		if coding := strings.ToLower(strings.TrimSpace(answer.Header.Get("Content-Encoding"))); decodes(coding) {
			body = &decoder{source: answer.Body, coding: coding}
			answer.Header.Del("Content-Encoding")
			answer.Header.Del("Content-Length")
		}
	}
	res.Status, res.Length = answer.StatusCode, -1
	names := make([]string, 0, len(answer.Header))
	for name := range answer.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		lower := strings.ToLower(name)
		if hop[lower] && lower != "content-length" || strings.HasPrefix(lower, "edged-") {
			continue
		}
		for _, value := range answer.Header[name] {
			res.Header = append(append(append(append(res.Header, lower...), '\n'), value...), '\n')
		}
	}
	if bare {
		answer.Body.Close()
		res.Null, res.Length = true, 0
		return nil
	}
	res.Stream = body
	return nil
}

func decodes(coding string) bool {
	return coding == "gzip" || coding == "x-gzip" || coding == "deflate"
}

// decoder undoes a coding. It looks at the body with the first Read only.
type decoder struct {
	source io.ReadCloser
	coding string
	plain  io.Reader
	err    error
}

// Read gives decoded bytes.
func (d *decoder) Read(p []byte) (int, error) {
	if d.plain == nil && d.err == nil {
		d.err = d.open()
	}
	if d.err != nil {
		return 0, d.err
	}
	n, err := d.plain.Read(p)
	if err != nil {
		d.err = err
	}
	return n, err
}

func (d *decoder) open() (err error) {
	in := bufio.NewReader(d.source)
	if _, err := in.Peek(1); err != nil {
		return err // an empty body is empty in every coding
	}
	if d.coding == "deflate" {
		d.plain, err = zlib.NewReader(in)
	} else {
		d.plain, err = gzip.NewReader(in)
	}
	return err
}

// Close ends the transfer.
func (d *decoder) Close() error { return d.source.Close() }

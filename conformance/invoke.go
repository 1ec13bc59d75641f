package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"

	"edged/sandbox"
	"edged/sandbox/event"
)

// text is a request body that is all there.
type text struct{ bytes.Reader }

func (t *text) TryRead(p []byte) (int, error) { return t.Read(p) }
func (t *text) Close() error                  { return nil }

// invoke sends body to the worker and returns the whole answer.
func invoke(ctx context.Context, v *sandbox.Version, body []byte) ([]byte, error) {
	var in text
	in.Reset(body)
	req := event.Request{
		Method: []byte("POST"), URL: []byte("http://conformance.test/"), Header: []byte("host\nconformance.test\n"),
		Body: &in, Length: int64(len(body)),
	}
	var res event.Response
	res.Reset()
	if err := v.Serve(ctx, &req, &res); err != nil {
		return nil, err
	}
	if res.Stream == nil {
		return res.Body, nil
	}
	out, err := io.ReadAll(res.Stream)
	if e := res.Stream.Close(); err == nil {
		err = e
	}
	return out, err
}

// lexical finds declarations at the top of a script, by their place at the beginning of a line.
var lexical = regexp.MustCompile(`(?m)^(?:(?:let|const) |class (\w+))`)

// useStrict finds a script's directive to be strict.
var useStrict = regexp.MustCompile(`\A(?:\s|//.*\n|/\*(?s:.*?)\*/)*["']use strict["']`)

// globalise makes declarations at the top of a script global variables. A worker evaluates scripts, and what an evaluated
// script declares with let, const and class, and a strict one altogether, ends with it; in a page it is there for the
// scripts that follow.
func globalise(source string) string {
	source = useStrict.ReplaceAllString(source, "")
	return lexical.ReplaceAllStringFunc(source, func(m string) string {
		if name, ok := strings.CutPrefix(m, "class "); ok {
			return "var " + name + " = " + m
		}
		return "var "
	})
}

const (
	script   = "application/javascript+module"
	plain    = "text/plain"
	mainPath = "conformance-main.js"
)

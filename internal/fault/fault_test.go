package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Codes are append-only: names, numbers and statuses are pinned.
func TestCodesAreGolden(t *testing.T) {
	var b strings.Builder
	for _, c := range Codes() {
		fmt.Fprintf(&b, "%d %s %d %t\n", c, c, c.HTTPStatus(), c.Retryable())
	}
	const want = `1 internal 500 false
2 invalid 400 false
3 not_found 404 false
4 too_large 413 false
5 limited 429 true
6 denied 403 false
7 conflict 409 false
8 unavailable 503 true
9 timeout 504 true
10 canceled 499 false
`
	if b.String() != want {
		t.Fatalf("got\n%swant\n%s", b.String(), want)
	}
	if got := Code(200).String(); got != "internal" {
		t.Errorf("an unknown code reads %q, want internal", got)
	}
}

func TestAsking(t *testing.T) {
	tooLarge := Name(TooLarge, "value_too_large", 17)
	secret := errors.New("disk /dev/x")
	tests := []struct {
		err    error
		code   Code
		name   string
		detail string
	}{
		{nil, 0, "", ""},
		{tooLarge, TooLarge, "value_too_large", ""},
		{tooLarge.New("kv.Put", "over 25 MiB"), TooLarge, "value_too_large", "over 25 MiB"},
		{fmt.Errorf("put: %w", tooLarge.New("kv.Put", "x")), TooLarge, "value_too_large", "x"},
		{Wrap(Unavailable, "kv.Put", secret), Unavailable, "unavailable", ""},
		{New(Internal, "kv.Put", "never shown"), Internal, "internal", ""},
		{context.Canceled, Canceled, "canceled", ""},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), Timeout, "timeout", ""},
		{secret, Internal, "internal", ""},
	}
	for _, tt := range tests {
		if c, n, d := CodeOf(tt.err), NameOf(tt.err), Detail(tt.err); c != tt.code || n != tt.name || d != tt.detail {
			t.Errorf("%v: got %v %q %q, want %v %q %q", tt.err, c, n, d, tt.code, tt.name, tt.detail)
		}
	}
	if !errors.Is(tooLarge.Wrap("kv.Put", secret), secret) || !errors.Is(tooLarge.New("a", "b"), tooLarge) {
		t.Error("a fault hides its cause or its name from errors.Is")
	}
	if Wrap(Internal, "x", nil) != nil {
		t.Error("Wrap(nil) is not nil")
	}
}

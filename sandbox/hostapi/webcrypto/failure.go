package webcrypto

import "fmt"

// Failure is how an operation ends that does not succeed: the name of a DOMException, or "TypeError", and a text for the
// developer. The text names no key material.
type Failure struct{ Name, Text string }

// Error is name and text.
func (f *Failure) Error() string { return f.Name + ": " + f.Text }

func fail(name, format string, args ...any) error {
	return &Failure{Name: name, Text: fmt.Sprintf(format, args...)}
}

func dataError(format string, args ...any) error      { return fail("DataError", format, args...) }
func operationError(format string, args ...any) error { return fail("OperationError", format, args...) }
func accessError(format string, args ...any) error {
	return fail("InvalidAccessError", format, args...)
}
func notSupported(format string, args ...any) error {
	return fail("NotSupportedError", format, args...)
}
func usageError(format string, args ...any) error { return fail("SyntaxError", format, args...) }

// errStopped ends work that its caller called off; nobody sees it.
var errStopped error = &Failure{Name: "OperationError", Text: "the time is over"}

// Stop reports whether work is to be given up. Long work asks every fraction of a millisecond. nil never does.
type Stop func() bool

func (s Stop) now() bool { return s != nil && s() }

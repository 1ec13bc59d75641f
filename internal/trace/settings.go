package trace

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// Settings are what an operator says of the collector.
type Settings struct {
	Endpoint string // http or https URL; without a path, or with / alone, spans go to /v1/traces below it, else to exactly this URL
	Headers  string // name of a file with a line "NAME: VALUE" for each field to send, mode 0600; "" for none
	// HeadersEnv is the same as OTEL_EXPORTER_OTLP_HEADERS has it, name=value with commas between, values percent-encoded;
	// what Headers says of a name wins.
	HeadersEnv string
	CAFile     string // PEM with the authorities of an https endpoint; "" trusts the system's
}

const (
	tracesPath     = "/v1/traces"
	maxSettingFile = 64 << 10
	maxHeaders     = 32
)

// Read checks the settings and reads their files. The faults name what is wrong and never a value.
func (s Settings) Read() (endpoint string, headers http.Header, roots *x509.CertPool, err error) {
	var faults []error
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return "", nil, nil, errors.New("the endpoint is no http or https URL like http://127.0.0.1:4318")
	case u.User != nil || u.Fragment != "":
		return "", nil, nil, errors.New("the endpoint has credentials or a fragment in its URL; credentials belong into the file of headers")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = tracesPath
	}
	headers, err = headersOf(s.HeadersEnv)
	faults = append(faults, err)
	if s.Headers != "" {
		fromFile, err := readHeaders(s.Headers)
		faults = append(faults, err)
		for name, values := range fromFile {
			headers[name] = values
		}
	}
	if len(headers) > 0 && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		faults = append(faults, errors.New("headers are secrets: they go to an https endpoint, or to one on this machine"))
	}
	if s.CAFile != "" {
		roots = x509.NewCertPool()
		text, err := readBounded(s.CAFile)
		switch {
		case err != nil:
			faults = append(faults, err)
		case u.Scheme != "https":
			faults = append(faults, errors.New("authorities are for an https endpoint"))
		case !roots.AppendCertsFromPEM(text):
			faults = append(faults, fmt.Errorf("%s holds no certificate in PEM", s.CAFile))
		}
	}
	return u.String(), headers, roots, errors.Join(faults...)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Size() > maxSettingFile:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxSettingFile)
	}
	return os.ReadFile(path)
}

// readHeaders reads the file: empty lines and lines that begin with # are skipped.
func readHeaders(path string) (http.Header, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %v: make it readable for its owner alone (0600)", path, info.Mode().Perm())
	}
	text, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	out := http.Header{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(string(line), ":")
		if !ok || !addHeader(out, name, value) {
			return nil, fmt.Errorf("%s:%d: want NAME: VALUE, each name once, and none of the message's own fields", path, number)
		}
	}
	return out, nil
}

// headersOf reads the form that the environment has.
func headersOf(text string) (http.Header, error) {
	out := http.Header{}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !addHeader(out, name, value) {
			return out, errors.New("the headers of the environment are not name=value with commas between")
		}
	}
	return out, nil
}

// addHeader adds a field that may be sent.
func addHeader(h http.Header, name, value string) bool {
	name, value = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
	switch name {
	case "Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "User-Agent":
		return false
	}
	if len(h) == maxHeaders || h[name] != nil || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }) {
		return false
	}
	h[name] = []string{value}
	return true
}

// isToken reports whether s is the name of a field.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) })
}

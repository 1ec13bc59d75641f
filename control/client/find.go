package client

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"edged/internal/fault"
)

// Where says how to find a node: by DataDir, whose files a running node keeps current, or by the others, which win.
type Where struct {
	DataDir    string
	ControlURL string // the node's control origin
	CAFile     string // PEM; empty with ControlURL means the system's roots
	TokenFile  string
}

// Find reads what Where points to. The error is Invalid if something is missing or malformed, and names the file.
func Find(w Where) (Options, error) {
	opt := Options{URL: w.ControlURL}
	caFile, tokenFile := w.CAFile, w.TokenFile
	if opt.URL == "" {
		if w.DataDir == "" {
			return Options{}, invalid("name the node by its data directory or by its control URL")
		}
		run, err := readRun(filepath.Join(w.DataDir, "run.json"))
		if err != nil {
			return Options{}, err
		}
		opt.URL, opt.Dial = run.ControlOrigin, reachable(run.Control)
		if caFile == "" {
			caFile = filepath.Join(w.DataDir, "tls", "ca.pem")
		}
		if tokenFile == "" {
			tokenFile = filepath.Join(w.DataDir, "control.token")
		}
	}
	if caFile != "" {
		pem, err := readSmall(caFile)
		if err != nil {
			return Options{}, err
		}
		opt.Roots = x509.NewCertPool()
		if !opt.Roots.AppendCertsFromPEM(pem) {
			return Options{}, invalid("%s holds no certificate", caFile)
		}
	}
	if tokenFile == "" {
		return Options{}, invalid("a token file is needed beside the control URL")
	}
	token, err := readSmall(tokenFile)
	if err != nil {
		return Options{}, err
	}
	if opt.Token = strings.TrimSpace(string(token)); opt.Token == "" {
		return Options{}, invalid("%s is empty", tokenFile)
	}
	return opt, nil
}

func invalid(format string, args ...any) error {
	return fault.Newf(fault.Invalid, "client.Find", format, args...)
}

type run struct {
	Control       string `json:"control"`
	ControlOrigin string `json:"controlOrigin"`
}

func readRun(path string) (run, error) {
	b, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		return run{}, invalid("no node runs on this data directory: %s does not exist", path)
	}
	if err != nil {
		return run{}, err
	}
	var r run
	if json.Unmarshal(b, &r) != nil || r.Control == "" || r.ControlOrigin == "" {
		return run{}, invalid("%s does not say where the control listener is", path)
	}
	return r, nil
}

// reachable turns the address of a listener on all interfaces into one that this machine can connect to.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	switch ip := net.ParseIP(host); {
	case host == "":
		host = "localhost"
	case ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// maxFileBytes bounds the small files that are read whole.
const maxFileBytes = 1 << 20

func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFileBytes {
		return nil, invalid("%s is over %d bytes", path, maxFileBytes)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, errors.Join(invalid("cannot read %s: %v", path, bare(err)), err)
	}
	return b, nil
}

// bare takes the path out of an error that is told with its own path.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

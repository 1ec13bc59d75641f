package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"edged/internal/fault"
	"edged/node/certs"
)

// bind opens every listener that is on and tells which address it got. The caller closes them.
func bind(opt Options) (map[string]net.Listener, error) {
	bound := map[string]net.Listener{}
	var errs []error
	for _, l := range opt.listeners() {
		if l.addr == "" {
			continue
		}
		ln, err := opt.listen(l)
		if err != nil {
			errs = append(errs, bindFault(l, err))
			continue
		}
		bound[l.name] = ln
	}
	if len(errs) > 0 {
		closeAll(bound)
		return nil, errors.Join(errs...)
	}
	return bound, nil
}

func bindFault(l namedAddr, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fault.Newf(fault.Unavailable, "node.bind", "--%s: %s is taken by another process: stop it or name another address", l.name, l.addr)
	}
	return fault.Newf(fault.Unavailable, "node.bind", "--%s: cannot listen on %s: %v", l.name, l.addr, errors.Unwrap(err))
}

func closeAll(bound map[string]net.Listener) {
	for _, ln := range bound {
		ln.Close()
	}
}

// addrOf returns the bound address of a listener, "" if it is off.
func addrOf(bound map[string]net.Listener, name string) string {
	if ln := bound[name]; ln != nil {
		return ln.Addr().String()
	}
	return ""
}

// webServer serves one of the node's own listeners, control or admin, until ctx is done; then it lets requests finish
// for a while. conf is nil for plain HTTP.
func webServer(ctx context.Context, ln net.Listener, h http.Handler, conf *tls.Config, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           h,
		TLSConfig:         conf,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { // its Shutdown is waited for below
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err := srv.Shutdown(grace)
		if err != nil {
			err = srv.Close()
		}
		stopped <- err
	})
	var err error
	if conf != nil {
		err = srv.ServeTLS(ln, "", "")
	} else {
		err = srv.Serve(ln)
	}
	if !stop() {
		return <-stopped
	}
	return err
}

func (n *Node) openListeners() (err error) {
	if err = patiently(func() error { n.bound, err = bind(n.opt); return err }); err != nil {
		return err
	}
	controlAddr := addrOf(n.bound, "control")
	if n.opt.ControlOrigin == "" {
		n.opt.ControlOrigin = "https://" + controlAddr
	}
	n.info = runInfo{PID: os.Getpid(), HTTP: addrOf(n.bound, "http"), HTTPS: addrOf(n.bound, "https"), Control: controlAddr,
		Admin: addrOf(n.bound, "admin"), Peer: addrOf(n.bound, "peer"), ControlOrigin: n.opt.ControlOrigin, EndpointDomain: n.opt.EndpointDomain}
	if !n.opt.hasRole("control") {
		n.info.Role = n.opt.Role
	}
	n.closeUnused()
	if n.opt.Bound != nil {
		n.opt.Bound(n.listening())
	}
	return nil
}

func (n *Node) openCertificates() error {
	authority, err := certs.Open(certs.Options{Dir: filepath.Join(n.opt.DataDir, "tls"), Log: n.log})
	if err != nil {
		return err
	}
	if n.hosts, err = authority.Hosts(controlHosts(n.info.Control, n.opt.ControlOrigin)...); err != nil {
		return err
	}
	if n.opt.TLSDir != "" {
		if n.operatorCerts, err = certs.OpenDir(certs.DirOptions{Dir: n.opt.TLSDir, Log: n.log}); err != nil {
			return err
		}
	}
	n.names, err = authority.Names(certs.NamesOptions{
		Allowed: func(name string) bool { return n.router.Routes(name) },
		Default: n.opt.EndpointDomain, DefaultIPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		Operator: n.operatorCerts,
	})
	return err
}

// controlHosts returns the names and addresses that the control listener's certificate must cover.
func controlHosts(bound, origin string) []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if host, _, err := net.SplitHostPort(bound); err == nil && !unspecified(host) {
		hosts = append(hosts, host)
	}
	if u, err := url.Parse(origin); err == nil {
		hosts = append(hosts, u.Hostname())
	}
	return hosts
}

func unspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

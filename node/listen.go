package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"edged/internal/fault"
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

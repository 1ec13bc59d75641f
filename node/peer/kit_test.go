package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"edged/internal/pki"
	"edged/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// network is where members listen and dial: loopback, or pipes for tests in a bubble.
type network interface {
	listen(t testing.TB) net.Listener
	dial(ctx context.Context, network, addr string) (net.Conn, error)
}

type loopback struct{}

func (loopback) listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func (loopback) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// pipes is a network in memory, on which waiting is free in a bubble.
type pipes struct {
	mu  sync.Mutex
	all map[string]*handoff
}

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }

func (p *pipes) listen(testing.TB) net.Listener {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[string]*handoff{}
	}
	h := newHandoff(pipeAddr("pipe:" + strconv.Itoa(len(p.all))))
	p.all[h.addr.String()] = h
	return h
}

func (p *pipes) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	p.mu.Lock()
	h := p.all[addr]
	p.mu.Unlock()
	if h == nil {
		return nil, errors.New("nobody listens there")
	}
	near, far := net.Pipe()
	if err := h.offer(ctx, far); err != nil {
		return nil, err
	}
	return near, nil
}

// fleet is the test's control plane: it signs, resolves and revokes.
type fleet struct {
	t   testing.TB
	net network
	ca  *pki.Authority

	mu      sync.Mutex
	addr    map[string]string // by member
	removed map[string]bool
	voters  []string
}

func newFleet(t testing.TB, net network) *fleet {
	t.Helper()
	ca, err := pki.New(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &fleet{t: t, net: net, ca: ca, addr: map[string]string{}, removed: map[string]bool{}}
}

func (f *fleet) resolve(member string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.addr[member]
	return a, ok
}

func (f *fleet) move(member, addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addr[member] = addr
}

func (f *fleet) allowed(member, serial string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return serial != "" && !f.removed[member]
}

func (f *fleet) remove(member string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed[member] = true
}

// certificate is what a member with a leaf of that time shows.
func (f *fleet) certificate(node string, signed time.Time) (leafPEM, keyPEM []byte, cert *tls.Certificate) {
	f.t.Helper()
	key, csr, err := pki.NewRequest(node)
	if err != nil {
		f.t.Fatal(err)
	}
	leaf, err := f.ca.Sign(csr, node, signed)
	if err != nil {
		f.t.Fatal(err)
	}
	root, err := pki.ParseCertificate(f.ca.CertPEM())
	if err != nil {
		f.t.Fatal(err)
	}
	if cert, err = pair(root, node, leaf.PEM, key); err != nil {
		f.t.Fatal(err)
	}
	return leaf.PEM, key, cert
}

// sign is a voter's Renew.
func (f *fleet) sign(_ context.Context, member string, csr []byte) ([]byte, error) {
	leaf, err := f.ca.Sign(csr, member, time.Now())
	return leaf.PEM, err
}

func (f *fleet) options(node, dir string) Options {
	return Options{Dir: dir, Node: node, Resolve: f.resolve, Allowed: f.allowed, Dial: f.net.dial,
		Voters: func() []string { f.mu.Lock(); defer f.mu.Unlock(); return f.voters }}
}

type member struct {
	*Peers
	addr, dir string
	stop      func() // Run is over when it returns
}

// founded makes a member with a fresh leaf of its own and runs it. set changes its options, prepare it before it runs.
func (f *fleet) founded(node string, set func(*Options), prepare func(*Peers)) *member {
	f.t.Helper()
	return f.aged(node, 0, set, prepare)
}

// aged is founded with a leaf that was signed that long ago.
func (f *fleet) aged(node string, age time.Duration, set func(*Options), prepare func(*Peers)) *member {
	f.t.Helper()
	dir := f.t.TempDir()
	leaf, key, _ := f.certificate(node, time.Now().Add(-age))
	if err := Found(dir, node, f.ca.CertPEM(), leaf, key); err != nil {
		f.t.Fatal(err)
	}
	return f.run(node, dir, set, prepare)
}

func (f *fleet) run(node, dir string, set func(*Options), prepare func(*Peers)) *member {
	f.t.Helper()
	opt := f.options(node, dir)
	if set != nil {
		set(&opt)
	}
	p, err := Open(opt)
	if err != nil {
		f.t.Fatal(err)
	}
	p.Handle("/echo", http.HandlerFunc(echo))
	if prepare != nil {
		prepare(p)
	}
	ln := f.net.listen(f.t)
	m := &member{Peers: p, dir: dir, addr: ln.Addr().String()}
	f.move(node, m.addr)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, ln) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("%s: Run: %v", node, err)
		}
	})
	f.t.Cleanup(m.stop)
	return m
}

// echo answers with who calls, then with what it is sent, as it comes.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Caller", Caller(r))
	w.Header().Set("Serial", pki.SerialOf(r.TLS.PeerCertificates[0]))
	rc := http.NewResponseController(w)
	rc.Flush()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		if n > 0 {
			w.Write(buf[:n])
			rc.Flush()
		}
		if err != nil {
			return
		}
	}
}

// stream is an open call of echo.
type stream struct {
	resp *http.Response
	in   *io.PipeWriter
}

func (m *member) stream(t testing.TB, to string) (*stream, error) {
	t.Helper()
	body, in := io.Pipe()
	req, err := http.NewRequest("POST", "https://"+pki.Host(to)+"/echo", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := m.Client().Do(req)
	if err != nil {
		in.Close()
		return nil, err
	}
	t.Cleanup(func() { in.Close(); resp.Body.Close() })
	return &stream{resp, in}, nil
}

// says sends a word and reads it back.
func (s *stream) says(word string) error {
	if _, err := s.in.Write([]byte(word)); err != nil {
		return err
	}
	got := make([]byte, len(word))
	if _, err := io.ReadFull(s.resp.Body, got); err != nil {
		return err
	}
	if string(got) != word {
		return errors.New("came back as " + string(got))
	}
	return nil
}

func (m *member) mustStream(t testing.TB, to string) *stream {
	t.Helper()
	s, err := m.stream(t, to)
	if err == nil {
		err = s.says("hello")
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ended waits for the end of what cannot say anything any more.
func ended(t testing.TB, what string, r io.Reader) {
	t.Helper()
	done := make(chan error, 1)
	go func() { _, err := io.Copy(io.Discard, r); done <- err }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Errorf("%s is still open", what)
	}
}

// bare is a TLS client without any of this package's code.
func (f *fleet) bare(addr string, cert *tls.Certificate, protos ...string) (*tls.Conn, error) {
	raw, err := f.net.dial(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{InsecureSkipVerify: true, NextProtos: protos}
	if cert != nil {
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil } // asked for or not
	}
	c := tls.Client(raw, conf)
	return c, c.Handshake()
}

func readResponse(t testing.TB, c io.Reader) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp
}

// raftStream opens a stream and returns both its ends.
func raftStream(t testing.TB, from *member, to string, l net.Listener) (near, far net.Conn) {
	t.Helper()
	near, err := from.DialRaft(to, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	return near, far
}

package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"edged/internal/fault"
)

// acquire does the work of Acquire: manifest first, then the files, a few at a time.
func (s *Store) acquire(caller context.Context, req Request) (*Index, error) {
	ctx, cancel := context.WithTimeout(caller, s.opt.TotalTimeout)
	defer cancel()
	index, err := s.acquireAll(ctx, req)
	if err != nil && caller.Err() == nil && ctx.Err() != nil {
		err = ErrInvalid.New("artifact.Acquire", "the bundle did not arrive in time")
	}
	return index, err
}

func (s *Store) acquireAll(ctx context.Context, req Request) (*Index, error) {
	a := &acquisition{store: s, req: req}
	a.left.Store(MaxBundleBytes)
	var text bytes.Buffer
	if _, err := a.obtain(ctx, piece{url: req.URL, digest: req.Digest, limit: MaxManifestBytes, tee: &text}); err != nil {
		return nil, told(err, "manifest")
	}
	m, err := ParseManifest(text.Bytes(), req.Kind)
	if err != nil {
		return nil, err
	}
	index := &Index{ManifestSHA256: req.Digest.String(), Entrypoint: m.Entrypoint, Files: make([]File, len(m.Files))}
	if err := a.files(ctx, m, index); err != nil {
		return nil, err
	}
	for i := range index.Files {
		index.TotalBytes += index.Files[i].ByteSize
	}
	return index, nil
}

// told puts what a refusal is about in front of its sentence; other errors pass.
func told(err error, what string) error {
	if !errors.Is(err, ErrInvalid) {
		return err
	}
	return ErrInvalid.Newf("artifact.Acquire", "%s: %s", what, fault.Detail(err))
}

// acquisition is one run of Acquire.
type acquisition struct {
	store *Store
	req   Request
	left  atomic.Int64 // bytes that the files may still have together
}

// files obtains every file of m into index. Of several failures the first in the manifest's order among those that were
// not caused by another is returned.
func (a *acquisition) files(ctx context.Context, m *Manifest, index *Index) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(m.Files))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(a.store.opt.Parallel, len(m.Files)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(m.Files) || ctx.Err() != nil {
					return
				}
				f := &m.Files[i]
				size, err := a.file(ctx, f)
				if err != nil {
					errs[i] = told(err, "file "+quote(f.Path))
					cancel()
					return
				}
				index.Files[i] = File{Path: f.Path, SHA256: f.Digest.String(), MediaType: f.MediaType, ByteSize: size}
			}
		})
	}
	workers.Wait()
	var late error
	for _, err := range errs {
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			late = err
		default:
			return err
		}
	}
	if late == nil {
		late = ctx.Err() // the caller left between two files
	}
	return late
}

func quote(path string) string {
	if len(path) > 64 {
		path = strings.ToValidUTF8(path[:64], "") + "…"
	}
	return `"` + path + `"`
}

func (a *acquisition) file(ctx context.Context, f *ManifestFile) (int64, error) {
	p := piece{url: f.URL, digest: f.Digest, limit: MaxBlobBytes, budget: &a.left}
	if a.req.Kind != Migrations {
		return a.obtain(ctx, p)
	}
	check := new(textCheck)
	p.tee = check
	size, err := a.obtain(ctx, p)
	if err == nil {
		err = check.end()
	}
	return size, err
}

// piece is one blob that an acquisition needs.
type piece struct {
	url    string
	digest Digest
	limit  int64
	budget *atomic.Int64 // nil: counts against nothing
	tee    resettable    // sees the bytes; nil: nobody
}

// resettable is a writer that can start anew, for when a first attempt to read was in vain.
type resettable interface {
	io.Writer
	Reset()
}

// obtain makes the Resource refer to the blob, whose bytes it has verified, and returns its size.
func (a *acquisition) obtain(ctx context.Context, p piece) (int64, error) {
	if mine, err := a.store.refers(a.req.UID, p.digest); err != nil {
		return 0, err
	} else if mine {
		// From before a crash, or kept since long: only if it is damaged is its source asked again.
		size, err := a.verifyHeld(ctx, p)
		if err == nil || !errors.Is(err, errDamaged) {
			return size, err
		}
		a.store.opt.Log.Warn("artifact in custody is damaged, asking its source", "err", err)
		if p.tee != nil {
			p.tee.Reset()
		}
	}
	u, err := parseURL(p.url)
	if err != nil {
		return 0, ErrInvalid.New("artifact.Acquire", "its URL "+fault.Detail(err))
	}
	for _, own := range a.store.ownOrigins() {
		if self, ok := originOf(own + "/"); ok && origin(u) == self {
			return a.obtainHeld(ctx, p, own)
		}
	}
	return a.obtainRemote(ctx, u, p)
}

// obtainHeld resolves a URL of the control listener's own origin (node-surface §4).
func (a *acquisition) obtainHeld(ctx context.Context, p piece, own string) (int64, error) {
	if p.url != own+SidePath+p.digest.String() {
		return 0, ErrInvalid.New("artifact.Acquire",
			"its URL is on this node's own origin but is not the one of the declared sha256 in the side channel")
	}
	held, err := a.store.holdsAnywhere(ctx, a.req.Tenant, p.digest)
	if err != nil {
		return 0, err
	}
	if !held {
		return 0, ErrInvalid.New("artifact.Acquire", "its bytes are not held by this tenant; upload them first")
	}
	size, err := a.verifyHeld(ctx, p)
	if errors.Is(err, errDamaged) {
		err = ErrInvalid.New("artifact.Acquire", "its stored bytes are damaged or missing; upload them again")
	}
	if err != nil {
		return 0, err
	}
	mu := a.store.stripe(p.digest)
	mu.Lock()
	defer mu.Unlock()
	// Collected since? Then it was the last moment of its grace, and the answer is the one for bytes that are not held.
	held, err = a.store.Holds(a.req.Tenant, p.digest)
	if err == nil && !held {
		err = ErrInvalid.New("artifact.Acquire", "its bytes are no longer held by this tenant")
	}
	if err != nil {
		return 0, err
	}
	return size, a.store.refer(a.req.Tenant, a.req.UID, p.digest)
}

var errDamaged = errors.New("stored bytes do not have their digest")

// verifyHeld reads a stored blob and checks limits and digest; errDamaged if it is not what it should be.
func (a *acquisition) verifyHeld(ctx context.Context, p piece) (int64, error) {
	blob, err := a.store.Open(p.digest)
	if fault.CodeOf(err) == fault.NotFound {
		return 0, errDamaged
	}
	if err != nil {
		return 0, err
	}
	defer blob.Close()
	sum := sha256.New()
	size, err := copyBounded(ctx, p.writers(sum), p.counted(blob), p.limit)
	if fault.CodeOf(err) == fault.TooLarge {
		err = ErrInvalid.Newf("artifact.Acquire", "it has more than %d bytes", p.limit)
	}
	if err == nil && Digest(sum.Sum(nil)) != p.digest {
		p.giveBack(size)
		err = errDamaged
	}
	return size, err
}

func (a *acquisition) obtainRemote(ctx context.Context, u *url.URL, p piece) (int64, error) {
	var in *incoming
	err := a.store.sources.fetch(ctx, u, p.limit, func(body io.Reader) (err error) {
		in, err = a.store.receive(ctx, p.counted(body), p.limit, p.writers())
		return err
	})
	if fault.CodeOf(err) == fault.TooLarge {
		err = ErrInvalid.Newf("artifact.Acquire", "the source sent more than %d bytes", p.limit)
	}
	if err != nil {
		return 0, err
	}
	defer in.discard()
	if in.digest != p.digest {
		return 0, ErrInvalid.New("artifact.Acquire", "the source's bytes do not have the declared sha256")
	}
	mu := a.store.stripe(p.digest)
	mu.Lock()
	defer mu.Unlock()
	held, err := a.store.Holds(a.req.Tenant, p.digest)
	if err == nil && !held {
		err = a.store.usage.add(a.req.Tenant, in.size)
	}
	if errors.Is(err, ErrQuota) {
		err = ErrInvalid.New("artifact.Acquire", fault.Detail(err))
	}
	if err != nil {
		return 0, err
	}
	if err = in.place(); err == nil {
		err = a.store.refer(a.req.Tenant, a.req.UID, p.digest)
	}
	if err != nil && !held {
		a.store.usage.sub(a.req.Tenant, in.size)
	}
	return in.size, err
}

// writers joins who wants to see the piece's bytes.
func (p *piece) writers(more ...io.Writer) io.Writer {
	if p.tee != nil {
		more = append(more, p.tee)
	}
	return io.MultiWriter(more...)
}

// counted takes what is read from the bundle's budget and ends with a refusal when that is used up.
func (p *piece) counted(r io.Reader) io.Reader {
	if p.budget == nil {
		return r
	}
	return readerFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		if p.budget.Add(-int64(n)) < 0 {
			return 0, ErrInvalid.Newf("artifact.Acquire", "the files have more than %d bytes together", MaxBundleBytes)
		}
		return n, err
	})
}

func (p *piece) giveBack(n int64) {
	if p.budget != nil {
		p.budget.Add(n)
	}
}

// textCheck refuses what is not UTF-8 or starts with a byte-order mark, however the bytes are cut into writes.
type textCheck struct {
	head []byte // the first bytes, at most 3
	tail []byte // an incomplete rune, at most 3 bytes
	bad  string
}

var byteOrderMark = []byte("\ufeff")

// Write never fails: the digest decides first, end tells what was found.
func (t *textCheck) Write(p []byte) (int, error) {
	if room := len(byteOrderMark) - len(t.head); room > 0 {
		t.head = append(t.head, p[:min(room, len(p))]...)
		if bytes.Equal(t.head, byteOrderMark) {
			t.bad = "it starts with a byte-order mark"
		}
	}
	b := append(t.tail, p...)
	// Keep back what may be the start of a rune that the next write completes.
	cut := len(b)
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				cut = len(b) - i
			}
			break
		}
	}
	if t.bad == "" && !utf8.Valid(b[:cut]) {
		t.bad = "it is not valid UTF-8"
	}
	t.tail = append([]byte(nil), b[cut:]...)
	return len(p), nil
}

// Reset makes t ready for other bytes.
func (t *textCheck) Reset() { *t = textCheck{} }

func (t *textCheck) end() error {
	if t.bad == "" && len(t.tail) > 0 {
		t.bad = "it is not valid UTF-8"
	}
	if t.bad != "" {
		return ErrInvalid.New("artifact.Acquire", t.bad)
	}
	return nil
}

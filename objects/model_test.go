package objects

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"edged/internal/fault"
	"edged/internal/testkit"
)

// modelObject is what a naive store knows of an object.
type modelObject struct {
	body  []byte
	etag  string
	ctype string
}

// modelUpload is an open upload; parts by number.
type modelUpload struct {
	key, ctype string
	parts      map[int]modelObject
}

// model is a naive bucket beside the real one, with readers that were opened some time ago.
type model struct {
	*world
	rng     *rand.Rand
	objects map[string]modelObject
	uploads map[string]*modelUpload
	open    []openReader
	n       int
}

type openReader struct {
	o    *Object
	want []byte // what is left
}

func (m *model) key() string { return fmt.Sprintf("k%d", m.rng.IntN(8)) }

func (m *model) body() []byte {
	m.n++
	n := []int{0, 7, 300, inlineBytes, inlineBytes + 1, blockBytes, blockBytes + 3}[m.rng.IntN(7)]
	return filled(n, byte(m.n))
}

// etagOr returns the etag of there or, now and then, another.
func (m *model) etagOr(there modelObject) string {
	if there.etag == "" || m.rng.IntN(3) == 0 {
		return "stale"
	}
	return there.etag
}

func (m *model) put() {
	key, body := m.key(), m.body()
	there, exists := m.objects[key]
	opt := PutOptions{Length: int64(len(body)), ContentType: fmt.Sprint(m.n)}
	fits := true
	if m.rng.IntN(2) == 0 {
		opt.Length = -1
	}
	switch m.rng.IntN(4) {
	case 0:
		opt.IfNoneMatch, fits = true, !exists
	case 1:
		opt.IfMatch = m.etagOr(there)
		fits = exists && opt.IfMatch == there.etag
	}
	info, err := m.bucket().Put(m.t.Context(), key, bytes.NewReader(body), opt)
	if !fits {
		wantName(m.t, "put", err, "precondition_failed")
		return
	}
	if err != nil || info.Size != int64(len(body)) {
		m.t.Fatalf("put %s: %+v, %v", key, info, err)
	}
	m.objects[key] = modelObject{body, info.ETag, opt.ContentType}
}

func (m *model) delete() {
	key := m.key()
	if err := m.bucket().Delete(m.t.Context(), key); err != nil {
		m.t.Fatal(err)
	}
	delete(m.objects, key)
}

// get opens an object; some readers stay open while the key changes.
func (m *model) get() {
	key := m.key()
	there, exists := m.objects[key]
	var opt GetOptions
	size := int64(len(there.body))
	want, name := there.body, ""
	if m.rng.IntN(2) == 0 {
		r := Range{m.rng.Int64N(size + 2), m.rng.Int64N(size + 2)}
		opt.Range = &r
		if r.Offset >= size {
			name = "range_not_satisfiable"
		} else if want = want[r.Offset:]; r.Length > 0 && r.Length < int64(len(want)) {
			want = want[:r.Length]
		}
	}
	switch m.rng.IntN(4) {
	case 0:
		opt.IfMatch = m.etagOr(there)
		if opt.IfMatch != there.etag {
			name = "precondition_failed"
		}
	case 1:
		opt.IfNoneMatch = m.etagOr(there)
		if opt.IfNoneMatch == there.etag {
			name = "precondition_failed"
		}
	}
	o, ok, err := m.bucket().Get(m.t.Context(), key, opt)
	if !exists {
		name = ""
	}
	if fault.NameOf(err) != name || ok != (exists && name == "") {
		m.t.Fatalf("get %s %+v of %d bytes: %t, %v, want %q", key, opt, size, ok, err, name)
	}
	if ok {
		if o.ETag != there.etag || o.ContentType != there.ctype || o.Partial != (opt.Range != nil) || o.Range.Length != int64(len(want)) {
			m.t.Fatalf("get %s: %+v", key, o.Info)
		}
		m.open = append(m.open, openReader{o, want})
	}
}

// read reads on in one of the open objects, or to its end.
func (m *model) read() {
	if len(m.open) == 0 {
		return
	}
	i := m.rng.IntN(len(m.open))
	r := &m.open[i]
	if m.rng.IntN(2) == 0 {
		p := make([]byte, m.rng.IntN(200_000))
		n, err := io.ReadFull(r.o, p)
		if !bytes.Equal(p[:n], r.want[:min(len(p), len(r.want))]) || err != nil && n < len(r.want) {
			m.t.Fatalf("read %d of %d bytes: %v", n, len(r.want), err)
		}
		r.want = r.want[n:]
		return
	}
	m.finish(r)
	m.open = slices.Delete(m.open, i, i+1)
}

func (m *model) finish(r *openReader) {
	got, err := io.ReadAll(r.o)
	if err := errors.Join(err, r.o.Close()); err != nil || !bytes.Equal(got, r.want) {
		m.t.Fatalf("read the rest: %d bytes, want %d, %v", len(got), len(r.want), err)
	}
}

func (m *model) head() {
	key := m.key()
	there, exists := m.objects[key]
	info, ok, err := m.bucket().Head(m.t.Context(), key)
	if err != nil || ok != exists || ok && (info.ETag != there.etag || info.Size != int64(len(there.body))) {
		m.t.Fatalf("head %s: %+v, %t, %v", key, info, ok, err)
	}
}

func (m *model) list() {
	var want []string
	for key := range m.objects {
		want = append(want, "key "+key)
	}
	slices.Sort(want)
	if got := entriesOf(m.world.list(ListOptions{})); !slices.Equal(got, want) {
		m.t.Fatalf("list: %q, want %q", got, want)
	}
}

// anyUpload returns one of the open uploads.
func (m *model) anyUpload() (string, *modelUpload) {
	for id, u := range m.uploads {
		return id, u
	}
	return "", nil
}

func (m *model) multipart() {
	id, u := m.anyUpload()
	if u == nil || len(m.uploads) < 3 && m.rng.IntN(4) == 0 {
		key := m.key()
		m.uploads[m.upload(key, "u/"+key)] = &modelUpload{key, "u/" + key, map[int]modelObject{}}
		return
	}
	switch m.rng.IntN(5) {
	case 0:
		wantName(m.t, "abort", m.bucket().AbortMultipartUpload(m.t.Context(), u.key, id), "")
		delete(m.uploads, id)
	case 1:
		m.complete(id, u)
	default:
		number, body := 1+m.rng.IntN(3), m.body()
		if m.rng.IntN(3) == 0 {
			body = filled(MinPartBytes, byte(m.n))
		}
		u.parts[number] = modelObject{body: body, etag: m.part(u.key, id, number, body).ETag}
	}
}

// complete completes with all parts; whether that is allowed is decided by the rules of objects §3.4.
func (m *model) complete(id string, u *modelUpload) {
	var parts []Part
	var body []byte
	name := ""
	for n := 1; n <= 3; n++ {
		p, ok := u.parts[n]
		if !ok {
			continue
		}
		if len(parts) > 0 {
			before := u.parts[parts[len(parts)-1].Number]
			if first := u.parts[parts[0].Number]; len(before.body) < MinPartBytes || len(before.body) != len(first.body) {
				name = "invalid_part"
			}
		}
		parts = append(parts, Part{n, p.etag})
		body = append(body, p.body...)
	}
	if len(parts) == 0 {
		name = "invalid"
	}
	info, err := m.bucket().CompleteMultipartUpload(m.t.Context(), u.key, id, parts)
	wantName(m.t, "complete", err, name)
	if err == nil {
		m.objects[u.key] = modelObject{body, info.ETag, u.ctype}
		delete(m.uploads, id)
	}
}

// restart closes all readers first: they are of the old process.
func (m *model) restart() {
	for _, r := range m.open {
		r.o.Close()
	}
	m.open = nil
	m.world.restart()
}

// objects §§2, 3: random calls of all nine operations, readers that stay open across changes, sweeps and restarts agree with a
// naive bucket; the disk agrees with itself, and at the end nothing is left over.
func TestModel(t *testing.T) {
	m := &model{world: newWorld(t, func(o *Options) { o.Grace = 1 }), rng: testkit.Rand(t), objects: map[string]modelObject{}, uploads: map[string]*modelUpload{}}
	ops := []func(){m.put, m.put, m.put, m.delete, m.get, m.get, m.get, m.read, m.read, m.read, m.head, m.list, m.multipart, m.multipart}
	rounds := 3000
	if testing.Short() || raceEnabled {
		rounds = 300
	}
	for i := range rounds {
		ops[m.rng.IntN(len(ops))]()
		m.ms.Add(1)
		switch m.rng.IntN(100) {
		case 0:
			m.restart()
		case 1, 2, 3, 4, 5:
			if err := m.s.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 6:
			if err := audit(m.s); err != nil {
				t.Fatalf("after %d calls: %v", i, err)
			}
		}
	}
	for i := range m.open {
		m.finish(&m.open[i])
	}
	for key, o := range m.objects {
		if got, _, _ := m.world.get(key, GetOptions{}); !bytes.Equal(got, o.body) {
			t.Errorf("%s has %d bytes, want %d", key, len(got), len(o.body))
		}
	}
	if err := m.s.Delete(t.Context(), uid); err != nil {
		t.Fatal(err)
	}
	m.collect()
	m.collect()
	if n := m.files(); n != 0 {
		t.Errorf("%d files are left", n)
	}
	if err := audit(m.s); err != nil {
		t.Error(err)
	}
}

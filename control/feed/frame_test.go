package feed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"edged/control/plan"
)

// A change of any size comes back as it was sent, in frames that are bounded.
func TestFramesRoundTrip(t *testing.T) {
	d := &plan.Delta{Index: 9}
	for i := range 3000 {
		d.Versions.Put = append(d.Versions.Put, &plan.Version{UID: fmt.Sprintf("v%04d", i), Vars: []byte(`"` + strings.Repeat("x", 5000) + `"`)})
		d.Hosts.Gone = append(d.Hosts.Gone, fmt.Sprintf("h%04d", i))
	}
	d.Versions.Put[7].Vars = []byte(`"` + strings.Repeat("y", 3<<20) + `"`)
	frames := appendHello(nil, 3, true)
	frames, err := appendChange(frames, 4, d)
	if err != nil {
		t.Fatal(err)
	}
	frames = appendBeat(frames, 11, 1500*time.Millisecond)
	for rest := frames; len(rest) > 0; {
		n := binary.BigEndian.Uint32(rest)
		if n > pieceBytes+3<<20 {
			t.Errorf("a frame has %d bytes", n)
		}
		rest = rest[4+n:]
	}
	dec := NewDecoder(bytes.NewReader(frames), nil)
	next := func() Event {
		t.Helper()
		e, err := dec.Next()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := next(); e.Hello == nil || *e.Hello != (Hello{3, true}) {
		t.Errorf("hello %+v", e)
	}
	if e := next(); e.Change == nil || e.Change.Prev != 4 || !reflect.DeepEqual(e.Change.Delta, d) {
		t.Error("the change came back different")
	}
	if e := next(); e.Beat == nil || *e.Beat != (Beat{11, 1500 * time.Millisecond}) {
		t.Errorf("beat %+v", e)
	}
	if _, err := dec.Next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

// What this program does not know of a plan is refused and not passed over: it would serve another plan.
func TestNewerPlanIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"novel":1}`: "newer edged", `{"workers":{"put":[{"uid":"w","novel":true}]}}`: "newer edged", `{`: "", `{} {}`: "stands behind",
	} {
		frames := appendFrame(appendFrame(appendHello(nil, 3, false), framePiece, []byte(body)), frameEnd, num(1), num(2))
		dec := NewDecoder(bytes.NewReader(frames), nil)
		_, err := dec.Next()
		if err == nil {
			_, err = dec.Next()
		}
		if err == nil || !strings.Contains(err.Error(), want) || want == "" && strings.Contains(err.Error(), "newer") {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	frames := appendFrame(appendHello(nil, 3, false), 77)
	dec := NewDecoder(bytes.NewReader(frames), nil)
	_, _ = dec.Next()
	if _, err := dec.Next(); err == nil || !strings.Contains(err.Error(), "newer edged") {
		t.Errorf("a frame of another kind: %v", err)
	}
}

// What is out of order or malformed is refused.
func TestDecoderRefuses(t *testing.T) {
	hello := appendHello(nil, 1, false)
	piece := func(json string) []byte { return appendFrame(nil, framePiece, []byte(json)) }
	end := func(prev, index uint64) []byte { return appendFrame(nil, frameEnd, num(prev), num(index)) }
	for what, frames := range map[string][][]byte{
		"no hello":               {end(1, 2)},
		"two hellos":             {hello, hello},
		"index does not rise":    {hello, end(2, 2)},
		"reset in a change":      {hello, piece(`{"Index":1}`), appendFrame(nil, frameReset)},
		"beat in a change":       {hello, piece(`{"Index":1}`), appendBeat(nil, 1, 0)},
		"an empty part":          {hello, piece(`{"Hosts":{"Put":[null]}}`)},
		"a part without id":      {hello, piece(`{"Hosts":{"Put":[{}]}}`)},
		"a huge file":            {hello, piece(`{"Bundles":{"Put":[{"resource":"b","files":[{"sha256":"` + strings.Repeat("a", 64) + `","size":99999999}]}]}}`)},
		"a file without digest":  {hello, piece(`{"Bundles":{"Put":[{"resource":"b","files":[{"sha256":"../x","size":9}]}]}}`)},
		"no JSON":                {hello, piece(`{`)},
		"unknown kind":           {hello, appendFrame(nil, 99)},
		"a frame that is huge":   {hello, binary.BigEndian.AppendUint32(nil, maxFrame+1), {framePiece}},
		"a frame without a kind": {hello, make([]byte, 5)},
	} {
		dec := NewDecoder(bytes.NewReader(bytes.Join(frames, nil)), nil)
		var err error
		for err == nil {
			_, err = dec.Next()
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			t.Errorf("%s: is read to its end (%v)", what, err)
		}
	}
}

// Whatever bytes come, reading them ends, and what is let through can be applied.
func FuzzDecoder(f *testing.F) {
	hello := appendHello(nil, 1, false)
	d := gatePlan()
	change, err := appendChange(bytes.Clone(hello), 4, d)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(change)
	f.Add(appendBeat(appendFrame(appendFrame(bytes.Clone(hello), frameReset), frameEnd, num(0), num(9)), 9, time.Second))
	f.Add(append(bytes.Clone(hello), 0xff, 0xff, 0xff, 0xff, framePiece))
	f.Fuzz(func(t *testing.T, b []byte) {
		dec := NewDecoder(bytes.NewReader(b), nil)
		p := plan.New()
		for {
			e, err := dec.Next()
			if err != nil {
				return
			}
			switch c := e.Change; {
			case c == nil:
				if (e.Hello != nil) == (e.Beat != nil) || e.Beat != nil && (e.Beat.Age < 0 || e.Beat.Age > maxAge) {
					t.Fatalf("event %+v", e)
				}
			case c.Whole != nil:
				p = c.Whole
			default:
				p.Apply(c.Delta)
				if c.Delta.Index <= c.Prev {
					t.Fatalf("a change leads from %d to %d", c.Prev, c.Delta.Index)
				}
			}
			for uid := range p.Workers {
				filesOf(p, uid)
			}
		}
	})
}

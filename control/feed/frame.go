package feed

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"edged/control/artifact"
	"edged/control/plan"
)

// A feed is a sequence of frames: len u32 | kind u8 | body, big-endian; len counts kind and body. First a hello. A change is any number
// of pieces and one end; if a reset stands before them, they are the whole plan. A beat says that all there is was sent.
const (
	frameHello = 1 // epoch u64 | partial u8
	frameReset = 2 // nothing
	framePiece = 3 // JSON of a plan.Delta
	frameEnd   = 4 // index before u64 | index after u64
	frameBeat  = 5 // index u64 | age in ms u64
)

const (
	// maxFrame bounds a frame. The largest part of a plan is a version with all the variables that it may have: less than 8 MiB.
	maxFrame = 16 << 20
	// maxChange bounds the frames of one change: a whole plan has 1 to 2 KB for a Resource.
	maxChange = 1 << 30
	// maxAge is what an age is cut to: it is as good as for ever.
	maxAge = 365 * 24 * time.Hour
	// pieceParts is how many parts of a kind go into a piece, and pieceBytes where fewer do.
	pieceParts = 256
	pieceBytes = 1 << 20
)

func appendFrame(dst []byte, kind byte, parts ...[]byte) []byte {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	dst = append(binary.BigEndian.AppendUint32(dst, uint32(n)), kind)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

func appendHello(dst []byte, epoch uint64, partial bool) []byte {
	flag := []byte{0}
	if partial {
		flag[0] = 1
	}
	return appendFrame(dst, frameHello, num(epoch), flag)
}

func appendBeat(dst []byte, index uint64, age time.Duration) []byte {
	return appendFrame(dst, frameBeat, num(index), num(uint64(min(max(age, 0), maxAge)/time.Millisecond)))
}

func num(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// appendPieces appends the pieces that are d, none for an empty one.
func appendPieces(dst []byte, d *plan.Delta) ([]byte, error) {
	if d.Empty() {
		return dst, nil
	}
	todo := d.Cut(pieceParts)
	for len(todo) > 0 {
		piece := todo[0]
		todo = todo[1:]
		body, err := json.Marshal(piece)
		if err != nil {
			return dst, err
		}
		if len(body) > pieceBytes {
			if smaller := piece.Cut(max(1, pieceParts*pieceBytes/(2*len(body)))); len(smaller) > 1 {
				todo = append(smaller, todo...)
				continue
			}
		}
		if len(body) >= maxFrame {
			return dst, fmt.Errorf("a part of the plan has more than %d bytes", maxFrame)
		}
		dst = appendFrame(dst, framePiece, body)
	}
	return dst, nil
}

// appendChange appends what leads from the plan at index prev to the one after d.
func appendChange(dst []byte, prev uint64, d *plan.Delta) ([]byte, error) {
	dst, err := appendPieces(dst, d)
	if err != nil {
		return dst, err
	}
	return appendFrame(dst, frameEnd, num(prev), num(d.Index)), nil
}

// Event is what a feed says next; exactly one of its fields is set.
type Event struct {
	Hello  *Hello
	Change *Change
	Beat   *Beat
}

// Hello begins a feed.
type Hello struct {
	Epoch   uint64
	Partial bool // what the follower does not need is left out
}

// Change is what leads from the plan at index Prev to a later one, or a whole plan.
type Change struct {
	Prev  uint64
	Delta *plan.Delta // nil with Whole
	Whole *plan.Plan  // to be taken in place of whatever there was; nil with Delta
	Bytes int         // that its frames had
}

// Beat says that the plan at Index is the newest that the sender has, and how long ago that was known to be the newest of all.
type Beat struct {
	Index uint64
	Age   time.Duration
}

var errMalformed = errors.New("the feed is malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// Decoder reads a feed. It is used by one goroutine at a time.
type Decoder struct {
	r     *bufio.Reader
	alive func() // called for every frame
	began bool
	whole *plan.Plan    // being received, nil between resets
	parts []*plan.Delta // pieces of a change
	bytes int
}

// NewDecoder reads from r. alive is called for every frame that came, nil for nobody.
func NewDecoder(r io.Reader, alive func()) *Decoder {
	return &Decoder{r: bufio.NewReaderSize(r, 32<<10), alive: alive}
}

// Next returns the next event. What is too long, out of order or unreadable is an error, after which nothing more is read.
func (d *Decoder) Next() (Event, error) {
	for {
		kind, body, err := d.frame()
		if err != nil {
			return Event{}, err
		}
		if d.alive != nil {
			d.alive()
		}
		if (kind == frameHello) == d.began {
			return Event{}, malformed("the hello is missing or comes twice")
		}
		d.bytes += len(body)
		if d.bytes > maxChange {
			return Event{}, malformed("a change has more than %d bytes", maxChange)
		}
		e, done, err := d.take(kind, body)
		if err != nil || done {
			return e, err
		}
	}
}

// frame reads one frame. Memory is taken as bytes come, not as they are promised.
func (d *Decoder) frame() (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(d.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > maxFrame {
		return 0, nil, malformed("a frame has %d bytes", n)
	}
	body, err = io.ReadAll(io.LimitReader(d.r, int64(n-1)))
	if err == nil && len(body) < int(n-1) {
		err = io.ErrUnexpectedEOF
	}
	return head[4], body, err
}

func (d *Decoder) take(kind byte, body []byte) (e Event, done bool, err error) {
	switch kind {
	case frameHello:
		if len(body) != 9 || body[8] > 1 {
			return e, false, malformed("the hello has another form: another version of edged sends it")
		}
		d.began, d.bytes = true, 0
		return Event{Hello: &Hello{Epoch: binary.BigEndian.Uint64(body), Partial: body[8] == 1}}, true, nil
	case frameReset:
		if len(body) > 0 || d.whole != nil || len(d.parts) > 0 {
			return e, false, malformed("a reset stands inside a change")
		}
		d.whole = plan.New()
		return e, false, nil
	case framePiece:
		return e, false, d.piece(body)
	case frameEnd:
		return d.end(body)
	case frameBeat:
		if len(body) != 16 || d.whole != nil || len(d.parts) > 0 {
			return e, false, malformed("a beat has another form or stands inside a change")
		}
		age := time.Duration(min(binary.BigEndian.Uint64(body[8:]), uint64(maxAge/time.Millisecond))) * time.Millisecond
		d.bytes = 0
		return Event{Beat: &Beat{Index: binary.BigEndian.Uint64(body), Age: age}}, true, nil
	}
	return e, false, malformed("a frame is of kind %d, which this program does not know: a newer edged sends it", kind)
}

func (d *Decoder) piece(body []byte) error {
	delta := new(plan.Delta)
	if err := decodeStrictly(body, delta); err != nil {
		return malformed("a piece is no delta: %v", err)
	}
	if err := errors.Join(delta.Check(), checkFiles(delta)); err != nil {
		return malformed("%v", err)
	}
	if d.whole != nil {
		d.whole.Apply(delta)
	} else {
		d.parts = append(d.parts, delta)
	}
	return nil
}

// decodeStrictly reads one document. What this program does not know of a plan is an error: to pass it over would be to serve another plan.
func decodeStrictly(body []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	switch {
	case err == nil && len(bytes.TrimSpace(body[dec.InputOffset():])) > 0:
		return errors.New("something stands behind it")
	case err != nil && json.Unmarshal(body, v) == nil:
		return fmt.Errorf("it has what this program does not know, so a newer edged made it: run that here too (%w)", err)
	}
	return err
}

// checkFiles bounds what a node will make room for when it reads the files.
func checkFiles(d *plan.Delta) error {
	for _, b := range d.Bundles.Put {
		for _, f := range b.Files {
			if _, ok := artifact.ParseDigest(f.SHA256); !ok || f.Size < 0 || f.Size > artifact.MaxBlobBytes {
				return fmt.Errorf("a file of bundle %q has no digest or a wrong size", b.Resource)
			}
		}
	}
	return nil
}

func (d *Decoder) end(body []byte) (Event, bool, error) {
	if len(body) != 16 {
		return Event{}, false, malformed("the end of a change has another form")
	}
	c := &Change{Prev: binary.BigEndian.Uint64(body), Bytes: d.bytes}
	index := binary.BigEndian.Uint64(body[8:])
	switch {
	case d.whole != nil:
		d.whole.Index = index
		c.Whole, d.whole = d.whole, nil
	case index <= c.Prev:
		return Event{}, false, malformed("a change leads from index %d to %d", c.Prev, index)
	default:
		c.Delta = plan.Merge(append(d.parts, &plan.Delta{Index: index})...)
		d.parts = nil
	}
	d.bytes = 0
	return Event{Change: c}, true, nil
}

package trace

import (
	"encoding/hex"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"edged/internal/fault"
)

// Kind says which side of a call a span is (OpenTelemetry's SpanKind, with its numbers).
type Kind uint8

// The kinds.
const (
	Internal Kind = iota + 1
	Server
	Client
	Producer
	Consumer
)

// What one span may keep.
const (
	maxAttributes = 24
	maxText       = 1 << 10 // bytes of one value
	maxTexts      = 4 << 10 // bytes of all values
)

// Span is one step of a piece of work. A nil Span does nothing. One goroutine at a time may use it, but Child, Context and
// the methods that only read may be called by any, also after End.
type Span struct {
	tracer *Tracer
	ctx    Context
	rec    *record // nil: the trace is not recorded, the span only carries it on
}

// record is what is kept of a span until it was sent.
type record struct {
	parent     [8]byte
	kind       Kind
	name       string
	start, end time.Time
	attributes []attribute
	texts      int
	lost       int  // attributes that did not fit
	failed     bool // it counts as failed
	told       bool // error.type is set
	ended      bool
	link       *Context
	tally      *atomic.Int32 // children of all spans of this piece of work
}

// attribute is a value with its name; which field holds it says its kind.
type attribute struct {
	key  string
	kind attributeKind
	text string
	num  int64
	real float64
}

type attributeKind uint8

const (
	textAttribute attributeKind = iota
	intAttribute
	realAttribute
)

// Recorded reports whether somebody will see what is set: what costs something to find out need not be found out
// otherwise.
func (s *Span) Recorded() bool { return s != nil && s.rec != nil }

// Context returns the name of the span, nil of a nil span. The caller must not change it.
func (s *Span) Context() *Context {
	if s == nil {
		return nil
	}
	return &s.ctx
}

// TraceID returns the trace's ID in hexadecimal, "" of a nil span.
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	return hex.EncodeToString(s.ctx.TraceID[:])
}

// SpanID returns the span's ID in hexadecimal, "" of a nil span.
func (s *Span) SpanID() string {
	if s == nil {
		return ""
	}
	return hex.EncodeToString(s.ctx.SpanID[:])
}

// Attr is the trace's ID for a log line; of a nil span it is the empty attribute, which handlers leave out.
func (s *Span) Attr() slog.Attr {
	if s == nil {
		return slog.Attr{}
	}
	return slog.String("trace", s.TraceID())
}

// Child begins a step within this one. Of a span that is not recorded it is the span itself. When the work has as many as it
// may have, what is returned is not recorded either.
func (s *Span) Child(kind Kind, name string) *Span {
	if s == nil || s.rec == nil {
		return s
	}
	if int(s.rec.tally.Add(1)) >= s.tracer.opt.MaxSpans {
		s.tracer.opt.Metrics.full.Inc()
		return &Span{tracer: s.tracer, ctx: s.ctx} // what goes out from here still belongs to the trace
	}
	c := &Span{tracer: s.tracer, ctx: s.ctx, rec: &record{parent: s.ctx.SpanID, kind: kind, name: name, start: time.Now(), tally: s.rec.tally}}
	newID(c.ctx.SpanID[:])
	return c
}

// Since makes the span begin at another instant.
func (s *Span) Since(start time.Time) {
	if s.Recorded() {
		s.rec.start = start
	}
}

// Link notes another span that this one has to do with, and is no child of.
func (s *Span) Link(c Context) {
	if s.Recorded() {
		s.rec.link = &c
	}
}

// Set notes a text. Names are those of OpenTelemetry's semantic conventions, or begin with edged. and are constants. What is
// too long is cut, what is no UTF-8 is replaced.
func (s *Span) Set(key, value string) {
	if !s.Recorded() {
		return
	}
	if len(value) > maxText {
		end := maxText
		for end > maxText-utf8.UTFMax && !utf8.RuneStart(value[end]) {
			end--
		}
		value = value[:end]
	}
	if s.rec.texts += len(value); s.rec.texts > maxTexts {
		s.rec.texts -= len(value)
		s.rec.lost++
		return
	}
	s.add(attribute{key: key, text: strings.ToValidUTF8(value, "\uFFFD")})
}

// SetBytes is Set with a value that the caller reuses: it is copied, if anybody will see it.
func (s *Span) SetBytes(key string, value []byte) {
	if s.Recorded() {
		s.Set(key, string(value[:min(len(value), 2*maxText)]))
	}
}

// SetInt notes a whole number.
func (s *Span) SetInt(key string, value int64) {
	if s.Recorded() {
		s.add(attribute{key: key, kind: intAttribute, num: value})
	}
}

// SetFloat notes a number, which must be finite.
func (s *Span) SetFloat(key string, value float64) {
	if s.Recorded() {
		s.add(attribute{key: key, kind: realAttribute, real: value})
	}
}

func (s *Span) add(a attribute) {
	if len(s.rec.attributes) == maxAttributes {
		s.rec.lost++
		return
	}
	s.rec.attributes = append(s.rec.attributes, a)
}

// Fail notes that the work failed, by the error's name or code. Its text is not kept: it may hold what a tenant wrote. A
// nil error is no failure; of one whose caller gave up only the name is kept. The first failure counts.
func (s *Span) Fail(err error) {
	if err == nil || !s.Recorded() {
		return
	}
	s.FailAs(fault.NameOf(err), fault.CodeOf(err) != fault.Canceled)
}

// FailAs is Fail with the word itself, a constant. ours says whether the span counts as failed.
func (s *Span) FailAs(word string, ours bool) {
	if !s.Recorded() || s.rec.told {
		return
	}
	s.rec.told, s.rec.failed = true, ours
	s.Set("error.type", word)
}

// End ends the span and gives it to the exporter; err as in Fail. Only the first call counts.
func (s *Span) End(err error) {
	if s.Recorded() && !s.rec.ended {
		s.Fail(err)
		s.EndAt(time.Now())
	}
}

// EndAt is End at an instant that the caller has read.
func (s *Span) EndAt(end time.Time) {
	if !s.Recorded() || s.rec.ended {
		return
	}
	s.rec.ended, s.rec.end = true, end
	s.tracer.take(s)
}

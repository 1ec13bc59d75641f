package router

import (
	"strconv"
	"time"

	"edged/sandbox/event"
)

// maxShownWaits bounds the bindings that Edged-Receipt names; the others are one sum.
const maxShownWaits = 16

// appendReceipt appends the field Edged-Receipt: a dictionary (RFC 9651) of what the invocation of this request has cost. It is for
// peers that see diagnostics and ask for Edged-Explain: made for each response, it would take a tenth off what a node serves to them. What a streamed response costs after its head is not in it: final says whether there can be more.
func (c *conn) appendReceipt(dst []byte) []byte {
	r := &c.receipt
	if !c.why.reached || r.Wall == 0 {
		return dst // no sandbox was had for it
	}
	dst = append(dst, "Edged-Receipt: sandbox="...)
	dst = append(dst, r.Origin.String()...)
	number := func(key string, n int64) {
		dst = append(dst, key...)
		dst = strconv.AppendInt(dst, n, 10)
	}
	number(", admission-us=", micros(r.Admission))
	number(", queue-us=", micros(r.Queue))
	number(", wall-us=", micros(r.Wall))
	number(", cpu-us=", micros(r.CPU))
	number(", memory=", r.Memory)
	number(", in=", r.BodyIn)
	number(", out=", r.BodyOut)
	number(", subrequests=", int64(r.Subrequests))
	if len(r.Waits) > 0 {
		dst = appendWaits(dst, r.Waits)
	}
	number(", left-cpu-us=", micros(r.Left.CPU))
	number(", left-wall-us=", micros(r.Left.Wall))
	number(", left-memory=", r.Left.Memory)
	number(", left-subrequests=", int64(r.Left.Subrequests))
	if r.Final {
		return append(dst, ", final\r\n"...)
	}
	return append(dst, ", final=?0\r\n"...)
}

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// appendWaits appends the member waits: a list of bindings, each with its calls and their time.
func appendWaits(dst []byte, waits []event.Wait) []byte {
	shown, rest := waits, event.Wait{}
	if len(waits) > maxShownWaits {
		shown = waits[:maxShownWaits]
		for _, w := range waits[maxShownWaits:] {
			rest.Calls += w.Calls
			rest.Time += w.Time
		}
	}
	dst = append(dst, ", waits=("...)
	for i, w := range shown {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendWait(appendText(dst, w.Name), w)
	}
	if rest.Calls > 0 {
		dst = appendWait(append(dst, " others"...), rest)
	}
	return append(dst, ')')
}

func appendWait(dst []byte, w event.Wait) []byte {
	dst = strconv.AppendInt(append(dst, ";calls="...), int64(w.Calls), 10)
	return strconv.AppendInt(append(dst, ";us="...), micros(w.Time), 10)
}

// appendText appends a string of a structured field: printable ASCII in quotes, all else as a question mark.
func appendText[T ~string | ~[]byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < 0x20 || b > 0x7e:
			dst = append(dst, '?')
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}

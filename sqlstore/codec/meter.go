package codec

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"
)

const opMeter = "sqlstore.Result"

// A Meter checks a call's results against sql §6 while they are read, so that a result over a limit costs no more than the
// limit. Sizes are bytes of RFC 8785 JSON of the returned form. For each statement call Columns, then Row for each row,
// then End. The zero Meter is for a single statement; NewTransactionMeter makes one for a transaction. Not safe for
// concurrent use.
type Meter struct {
	used    int  // bytes of the call so far
	list    bool // results stand in {"results":[…]}
	results int
	rows    int
	names   int // bytes of a row without its values: names, quotes, colons, commas, braces
	columns int
}

// NewTransactionMeter returns the Meter of a call whose results stand in a list.
func NewTransactionMeter() *Meter { return &Meter{list: true} }

// Used returns the exact size so far of everything the call returns.
func (m *Meter) Used() int { return m.used }

// Columns starts a statement's result. It refuses more than 100 columns, names over 128 bytes or not UTF-8, and two columns
// of one name, which an object could not keep apart. A statement without columns passes none.
func (m *Meter) Columns(names []string) error {
	if len(names) > MaxColumns {
		return ErrSQL.Newf(opMeter, "the result has %d columns, at most %d are allowed", len(names), MaxColumns)
	}
	m.rows, m.columns, m.names = 0, len(names), 1
	for i, n := range names {
		if len(n) > MaxNameBytes {
			return ErrSQL.Newf(opMeter, "the name of column %d has %d bytes, at most %d are allowed", i+1, len(n), MaxNameBytes)
		}
		if !utf8.ValidString(n) {
			return ErrSQL.Newf(opMeter, "the name of column %d is not well-formed Unicode", i+1)
		}
		for _, other := range names[:i] {
			if other == n {
				return ErrSQL.Newf(opMeter, "two columns have the name %q; give one of them another name with AS", n)
			}
		}
		m.names += stringSize(n) + 2
	}
	if len(names) == 0 {
		m.names = 2
	}
	m.used += len(`{"rows":[],"rowsWritten":}`)
	if m.list {
		if m.results == 0 {
			m.used += len(`{"results":[]}`)
		} else {
			m.used++
		}
	}
	m.results++
	return nil
}

// Row counts one row and refuses it when a value, the row, the number of rows or the call is over its limit, or when a
// value has no exact form.
func (m *Meter) Row(row []Value) error {
	if m.rows++; m.rows > MaxRows {
		return ErrSQL.Newf(opMeter, "the result has more than %d rows", MaxRows)
	}
	size := m.names
	for i, v := range row {
		if err := v.check(opMeter, "column", i+1); err != nil {
			return err
		}
		size += valueSize(v)
	}
	if size > MaxRowBytes {
		return ErrSQL.Newf(opMeter, "a row of %d bytes of JSON, at most %d are allowed", size, MaxRowBytes)
	}
	if m.rows > 1 {
		size++
	}
	m.used += size
	return m.checkOutput()
}

// End counts what a result holds beside its rows.
func (m *Meter) End(r *Result) error {
	m.used += intSize(r.RowsWritten)
	if r.Inserted {
		m.used += len(`"lastInsertRowId":"",`) + intSize(r.LastInsertRowID)
	}
	return m.checkOutput()
}

func (m *Meter) checkOutput() error {
	if m.used > MaxOutputBytes {
		return ErrSQL.Newf(opMeter, "the results are over %d bytes of JSON", MaxOutputBytes)
	}
	return nil
}

func valueSize(v Value) int {
	switch v.kind {
	case KindInteger:
		return len(`{"type":"integer","value":""}`) + intSize(int64(v.num))
	case KindReal:
		return len(`{"type":"real","value":}`) + realSize(math.Float64frombits(v.num))
	case KindText:
		return len(`{"type":"text","value":}`) + stringSize(v.str)
	case KindBlob:
		return len(`{"type":"blob","base64":""}`) + base64.StdEncoding.EncodedLen(len(v.str))
	}
	return len(`{"type":"null"}`)
}

// stringSize returns the bytes of a string in canonical JSON, quotes included.
func stringSize(s string) int {
	n := len(s) + 2
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\b' || c == '\t' || c == '\n' || c == '\f' || c == '\r':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}

func intSize(n int64) int {
	size, u := 1, uint64(n)
	if n < 0 {
		size, u = 2, -u
	}
	for u >= 10 {
		u /= 10
		size++
	}
	return size
}

func realSize(f float64) int {
	if f == 0 {
		return 1 // canonical JSON knows no negative zero
	}
	var buf [32]byte
	return len(appendReal(buf[:0], f))
}

// appendReal appends a finite number as JavaScript writes it, which is what RFC 8785 asks for. Negative zero alone is kept
// apart, as -0: JSON.parse gives it back.
func appendReal(dst []byte, f float64) []byte {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' { // e-07 and e+07 have one digit too many
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

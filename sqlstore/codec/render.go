package codec

import (
	"encoding/base64"
	"math"
	"strconv"
)

// AppendResult appends a result as the object of sql §3: rows with one member per column, in column order; every value an
// object with its tag; rowsWritten; lastInsertRowId only where a row was inserted.
func AppendResult(dst []byte, r *Result) []byte {
	dst = append(dst, `{"rows":[`...)
	var names [][]byte
	if len(r.Rows) > 0 {
		names = make([][]byte, len(r.Columns))
		for i, c := range r.Columns {
			names[i] = append(appendString(nil, c), ':')
		}
	}
	for i, row := range r.Rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		for j, v := range row {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, names[j]...)
			dst = AppendValue(dst, v)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"rowsWritten":`...)
	dst = strconv.AppendInt(dst, r.RowsWritten, 10)
	if r.Inserted {
		dst = append(dst, `,"lastInsertRowId":"`...)
		dst = strconv.AppendInt(dst, r.LastInsertRowID, 10)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// AppendResults appends the object that a transaction returns: {"results":[…]}, one result per statement.
func AppendResults(dst []byte, results []Result) []byte {
	dst = append(dst, `{"results":[`...)
	for i := range results {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendResult(dst, &results[i])
	}
	return append(dst, "]}"...)
}

// AppendValue appends one value object of sql §3.
func AppendValue(dst []byte, v Value) []byte {
	switch v.kind {
	case KindInteger:
		dst = append(dst, `{"type":"integer","value":"`...)
		dst = strconv.AppendInt(dst, int64(v.num), 10)
		return append(dst, `"}`...)
	case KindReal:
		dst = append(dst, `{"type":"real","value":`...)
		return append(appendReal(dst, math.Float64frombits(v.num)), '}')
	case KindText:
		dst = append(dst, `{"type":"text","value":`...)
		return append(appendString(dst, v.str), '}')
	case KindBlob:
		dst = append(dst, `{"type":"blob","base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(v.str))
		return append(dst, `"}`...)
	}
	return append(dst, `{"type":"null"}`...)
}

const hex = "0123456789abcdef"

// appendString appends s, which is UTF-8, as RFC 8785 writes a string.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(append(dst, s[from:i]...), '\\')
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, c)
		case '\b':
			dst = append(dst, 'b')
		case '\t':
			dst = append(dst, 't')
		case '\n':
			dst = append(dst, 'n')
		case '\f':
			dst = append(dst, 'f')
		case '\r':
			dst = append(dst, 'r')
		default:
			dst = append(dst, 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}

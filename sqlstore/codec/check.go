package codec

import (
	"math"
	"unicode/utf8"
)

// The limits of sql §6.
const (
	MaxSQLBytes    = 100_000   // of one statement's text
	MaxParams      = 100       // per statement
	MaxStatements  = 100       // per transaction
	MaxRows        = 10_000    // per statement
	MaxColumns     = 100       // per row
	MaxNameBytes   = 128       // of a column's name
	MaxTextBytes   = 1_000_000 // of a text value
	MaxBlobBytes   = 1_000_000 // of a blob value, decoded
	MaxRowBytes    = 2_000_000 // of a row in canonical JSON
	MaxOutputBytes = 8_388_608 // of everything one call returns, in canonical JSON
)

const opCheck = "sqlstore.Check"

// Check returns what is wrong with a statement before it runs: ErrType for too many parameters, ErrRange for a REAL that is
// not finite, ErrSQL for a text out of bounds or not UTF-8.
func (s Statement) Check() error {
	if len(s.Params) > MaxParams {
		return ErrType.Newf(opCheck, "%d parameters, at most %d are allowed", len(s.Params), MaxParams)
	}
	if len(s.SQL) == 0 || len(s.SQL) > MaxSQLBytes {
		return ErrSQL.Newf(opCheck, "the SQL text has %d bytes, allowed are 1 to %d", len(s.SQL), MaxSQLBytes)
	}
	if !utf8.ValidString(s.SQL) {
		return ErrSQL.New(opCheck, "the SQL text is not well-formed Unicode")
	}
	for i, p := range s.Params {
		if err := p.check(opCheck, "parameter", i+1); err != nil {
			return err
		}
	}
	return nil
}

// CheckTransaction checks the number of statements and each of them. A count out of bounds in any of them wins over a
// wrong content in any other.
func CheckTransaction(statements []Statement) error {
	if err := checkCount(len(statements)); err != nil {
		return err
	}
	for _, s := range statements {
		if len(s.Params) > MaxParams {
			return s.Check()
		}
	}
	for _, s := range statements {
		if err := s.Check(); err != nil {
			return err
		}
	}
	return nil
}

func checkCount(n int) error {
	if n < 1 || n > MaxStatements {
		return ErrType.Newf(opCheck, "a transaction of %d statements, allowed are 1 to %d", n, MaxStatements)
	}
	return nil
}

// check refuses a value that has no exact form. what and n name it in the error.
func (v Value) check(op, what string, n int) error {
	switch v.kind {
	case KindReal:
		if f := math.Float64frombits(v.num); math.IsInf(f, 0) || math.IsNaN(f) {
			return ErrRange.Newf(op, "%s %d is not a finite number", what, n)
		}
	case KindText:
		if len(v.str) > MaxTextBytes {
			return ErrSQL.Newf(op, "%s %d has %d bytes of text, at most %d are allowed", what, n, len(v.str), MaxTextBytes)
		}
		if !utf8.ValidString(v.str) {
			return ErrSQL.Newf(op, "%s %d is not well-formed Unicode", what, n)
		}
	case KindBlob:
		if len(v.str) > MaxBlobBytes {
			return ErrSQL.Newf(op, "%s %d has %d bytes, at most %d are allowed", what, n, len(v.str), MaxBlobBytes)
		}
	}
	return nil
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// sqlValue is one tagged value of a result (sql §3).
type sqlValue struct {
	Type   string          `json:"type"`
	Value  json.RawMessage `json:"value"`
	Base64 string          `json:"base64"`
}

// text renders a value: plain as SQLite's own shell would, tagged with its storage class and quoted.
func (v *sqlValue) text(tagged bool) string {
	var plain string
	switch v.Type {
	case "integer", "text":
		_ = json.Unmarshal(v.Value, &plain) // the node renders nothing but strings there
		if v.Type == "text" && tagged {
			plain = strconv.Quote(plain)
		} else if v.Type == "text" && plain != "" {
			plain = printable(plain)
		}
	case "real":
		plain = string(v.Value)
	case "blob":
		b, err := base64.StdEncoding.DecodeString(v.Base64)
		if err != nil {
			return "?"
		}
		plain = "x'" + hex.EncodeToString(b) + "'"
	case "null":
		return "NULL"
	}
	if tagged {
		return v.Type + " " + plain
	}
	return plain
}

// sqlResult is what a statement gave, with its columns in order.
type sqlResult struct {
	columns  []string
	rows     [][]sqlValue
	written  int64
	inserted string // rowid of the last row inserted, "" if none was
}

// readResult reads a result; the order of the members of its rows is that of the columns.
func readResult(raw []byte) (*sqlResult, error) {
	var doc struct {
		Rows     []json.RawMessage `json:"rows"`
		Written  int64             `json:"rowsWritten"`
		Inserted string            `json:"lastInsertRowId"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	r := &sqlResult{written: doc.Written, inserted: doc.Inserted}
	for i, text := range doc.Rows {
		dec := json.NewDecoder(bytes.NewReader(text))
		if _, err := dec.Token(); err != nil {
			return nil, err
		}
		var row []sqlValue
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			var v sqlValue
			if err := dec.Decode(&v); err != nil {
				return nil, err
			}
			if i == 0 {
				r.columns = append(r.columns, fmt.Sprint(name))
			}
			row = append(row, v)
		}
		r.rows = append(r.rows, row)
	}
	return r, nil
}

// show writes a table; wrote says that the statement may have changed rows.
func (r *sqlResult) show(w io.Writer, tagged, wrote bool) error {
	if len(r.rows) > 0 {
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		line := func(n int, cell func(int) string) {
			for i := range n {
				end := "\t"
				if i == n-1 {
					end = "\n"
				}
				fmt.Fprint(tab, cell(i), end)
			}
		}
		line(len(r.columns), func(i int) string { return printable(r.columns[i]) })
		for _, row := range r.rows {
			line(len(row), func(i int) string { return row[i].text(tagged) })
		}
		if err := tab.Flush(); err != nil {
			return err
		}
	}
	switch {
	case r.inserted != "":
		_, err := fmt.Fprintf(w, "%d rows written, last rowid %s\n", r.written, r.inserted)
		return err
	case wrote && (r.written > 0 || len(r.rows) == 0):
		_, err := fmt.Fprintf(w, "%d rows written\n", r.written)
		return err
	case len(r.rows) == 0:
		_, err := fmt.Fprintln(w, "no rows")
		return err
	}
	return nil
}

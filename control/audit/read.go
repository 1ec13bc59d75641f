package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Newest returns up to limit records that match takes, newest first, among those before the sequence number given (0 means
// all). It goes through at most maxLook records; next is where to go on, 0 if nothing is left.
func (l *Log) Newest(before uint64, limit int, match func(*Record) bool) (page []Record, next uint64, err error) {
	l.mu.Lock()
	segments := slices.Clone(l.segments)
	if before == 0 || before > l.last {
		before = l.last + 1
	}
	l.mu.Unlock()
	looked := 0
	for i := len(segments) - 1; i >= 0; i-- {
		if segments[i].first >= before {
			continue
		}
		records, err := readSegment(segments[i].path)
		if errors.Is(err, fs.ErrNotExist) {
			return page, 0, nil // dropped meanwhile, and all before it
		}
		if err != nil {
			return nil, 0, unavailable("audit.Newest", err)
		}
		for j := len(records) - 1; j >= 0; j-- {
			r := &records[j]
			if r.Seq >= before {
				continue
			}
			if len(page) == limit || looked == maxLook {
				return page, r.Seq + 1, nil
			}
			if looked++; match(r) {
				page = append(page, *r)
			}
		}
	}
	return page, 0, nil
}

// maxLook bounds the work for one page of a filtered list.
const maxLook = 100_000

// readSegment reads one file. A line that is no record is passed over: one bad sector must not hide the rest.
func readSegment(path string) ([]Record, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Record
	for line := range bytes.Lines(raw) {
		var r Record
		if bytes.HasSuffix(line, []byte("\n")) && len(line) <= maxRecord && json.Unmarshal(line, &r) == nil && r.Seq > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}

package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"edged/internal/disk"
	"edged/internal/fault"
)

// Options says where a log lives and how much of it is kept.
type Options struct {
	Dir          string // required
	MaxBytes     int64  // 0 means 64 MiB: about 200,000 records; the oldest go first
	SegmentBytes int64  // 0 means a sixteenth of MaxBytes; what goes, goes by the segment
}

// maxRecord bounds one line, so that a damaged file is not read whole as one.
const maxRecord = 64 << 10

// segment is one file of a log: the records from first on.
type segment struct {
	first uint64
	path  string
	size  int64
}

// Log is an append-only list of records in the files of one directory. All methods but Close are safe for concurrent use.
// Errors are Unavailable.
type Log struct {
	opt Options

	mu       sync.Mutex
	segments []segment // oldest first, at least one
	file     *os.File  // of the last one
	last     uint64    // sequence number of the last record, 0 before the first
	broken   bool      // a write left half a line behind, which could not be cut
}

// Open opens or makes the log in opt.Dir, which no other process may have open.
func Open(opt Options) (*Log, error) {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = 64 << 20
	}
	if opt.SegmentBytes == 0 {
		opt.SegmentBytes = max(opt.MaxBytes/16, 1)
	}
	if err := disk.Prepare(opt.Dir); err != nil {
		return nil, err
	}
	l := &Log{opt: opt}
	if err := l.load(); err != nil {
		return nil, unavailable("audit.Open", err)
	}
	return l, nil
}

func unavailable(op string, err error) error { return fault.Wrap(fault.Unavailable, op, err) }

func (l *Log) load() error {
	entries, err := os.ReadDir(l.opt.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		first, err := strconv.ParseUint(strings.TrimSuffix(e.Name(), ".jsonl"), 16, 64)
		info, ierr := e.Info()
		if err != nil || ierr != nil || !strings.HasSuffix(e.Name(), ".jsonl") {
			continue // not ours
		}
		l.segments = append(l.segments, segment{first, filepath.Join(l.opt.Dir, e.Name()), info.Size()})
	}
	slices.SortFunc(l.segments, func(a, b segment) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	if len(l.segments) == 0 {
		return l.addSegment(1)
	}
	if err := l.openLast(); err != nil {
		return err
	}
	for i := len(l.segments) - 1; i >= 0 && l.last == 0; i-- {
		records, err := readSegment(l.segments[i].path)
		if err != nil {
			return err
		}
		for j := range records {
			l.last = max(l.last, records[j].Seq)
		}
	}
	l.last = max(l.last, l.segments[len(l.segments)-1].first-1)
	return nil
}

// openLast opens the newest segment and cuts what a crash left of an unfinished line.
func (l *Log) openLast() error {
	s := &l.segments[len(l.segments)-1]
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(s.path)
	if whole := int64(bytes.LastIndexByte(raw, '\n') + 1); err == nil && whole < s.size {
		s.size = whole
		err = f.Truncate(whole)
	}
	if err != nil {
		f.Close()
		return err
	}
	l.file = f
	return nil
}

func (l *Log) addSegment(first uint64) error {
	path := filepath.Join(l.opt.Dir, fmt.Sprintf("%016x.jsonl", first))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := disk.SyncDir(l.opt.Dir); err != nil {
		f.Close()
		return err
	}
	l.segments, l.file = append(l.segments, segment{first: first, path: path}), f
	return nil
}

// Index returns the command index of the newest record that has one, 0 if none has. It reads back to that record.
func (l *Log) Index() (uint64, error) {
	for before := uint64(0); ; {
		page, next, err := l.Newest(before, 1, func(r *Record) bool { return r.Index != 0 })
		if len(page) > 0 {
			return page[0].Index, nil
		}
		if err != nil || next == 0 {
			return 0, err
		}
		before = next
	}
}

// Append gives r its sequence number and writes it. A crash of the process loses nothing of it, one of the machine what
// was not synced yet.
func (l *Log) Append(r Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Seq = l.last + 1
	line, err := json.Marshal(r)
	if err != nil || len(line) >= maxRecord {
		return fault.New(fault.Internal, "audit.Append", "the record does not render, or is too large")
	}
	line = append(line, '\n')
	s := &l.segments[len(l.segments)-1]
	if l.broken || s.size > 0 && s.size+int64(len(line)) > l.opt.SegmentBytes {
		if err := l.rollLocked(); err != nil {
			return unavailable("audit.Append", err)
		}
		s = &l.segments[len(l.segments)-1]
	}
	if _, err := l.file.Write(line); err != nil {
		l.broken = l.file.Truncate(s.size) != nil
		return unavailable("audit.Append", err)
	}
	s.size += int64(len(line))
	l.last = r.Seq
	return nil
}

// rollLocked starts a new segment and drops the oldest ones that are too many.
func (l *Log) rollLocked() error {
	err := l.file.Sync()
	if err = errors.Join(err, l.file.Close()); err != nil {
		return err
	}
	if err := l.addSegment(l.last + 1); err != nil {
		return err
	}
	l.broken = false
	var total int64
	for i := len(l.segments) - 1; i >= 0; i-- {
		if total += max(l.segments[i].size, l.opt.SegmentBytes); total <= l.opt.MaxBytes || i == len(l.segments)-1 {
			continue
		}
		for _, old := range l.segments[:i+1] {
			if err := os.Remove(old.path); err != nil {
				return err
			}
		}
		l.segments = slices.Clone(l.segments[i+1:])
		return nil
	}
	return nil
}

// Sync makes all that was appended durable.
func (l *Log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return unavailable("audit.Sync", l.file.Sync())
}

// Close syncs and frees the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return unavailable("audit.Close", errors.Join(l.file.Sync(), l.file.Close()))
}

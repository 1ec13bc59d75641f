package state

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"runtime"
	"sync"

	"edged/control/form"
)

// batchLines is how many lines of a snapshot are decoded at one go.
const batchLines = 256

// decoded is a run of a snapshot's entries in their order, up to the first one that cannot be read.
type decoded struct {
	entries []entry
	err     error
}

// decodeAll gives the entries of a snapshot in their order. Decoding takes most of the time of a restart, so it is done on
// every core at once, a bounded number of batches ahead. After an error, and after the reader's end, nothing follows.
func decodeAll(r io.Reader, drivers form.Table) iter.Seq[decoded] {
	return func(yield func(decoded) bool) {
		workers := runtime.GOMAXPROCS(0)
		work := make(chan func(), workers)                // capacity: a batch waiting for each worker
		results := make(chan (<-chan decoded), 2*workers) // in order; each gives one batch
		stop := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() { readBatches(r, drivers, work, results, stop) })
		for range workers {
			all.Go(func() { // ends with work, which the reader closes
				for do := range work {
					do()
				}
			})
		}
		defer func() {
			close(stop)
			all.Wait()
		}()
		for result := range results {
			if d := <-result; !yield(d) || d.err != nil {
				return
			}
		}
	}
}

// readBatches cuts the reader into batches and hands each to a worker until the end, an error or stop.
func readBatches(r io.Reader, drivers form.Table, work chan<- func(), results chan<- (<-chan decoded), stop <-chan struct{}) {
	defer close(work)
	defer close(results)
	buf := bufio.NewReaderSize(r, 1<<20)
	for more := true; more; {
		var lines [][]byte
		var failed error
		for len(lines) < batchLines {
			line, err := buf.ReadBytes('\n')
			if len(line) > 0 {
				lines = append(lines, line)
			}
			if err != nil {
				more = false
				if !errors.Is(err, io.EOF) {
					failed = err
				}
				break
			}
		}
		out := make(chan decoded, 1)
		select {
		case results <- out:
		case <-stop:
			return
		}
		select {
		case work <- func() { out <- decodeBatch(lines, failed, drivers) }:
		case <-stop:
			return
		}
	}
}

// decodeBatch decodes lines; failed is why there are no more.
func decodeBatch(lines [][]byte, failed error, drivers form.Table) decoded {
	d := decoded{entries: make([]entry, len(lines))}
	for i, line := range lines {
		e := &d.entries[i]
		err := json.Unmarshal(line, e)
		if err == nil && e.Resource != nil {
			err = e.Resource.prepare(drivers)
		}
		if err != nil {
			return decoded{d.entries[:i], err}
		}
	}
	d.err = failed
	return d
}

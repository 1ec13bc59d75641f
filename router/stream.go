package router

import (
	"context"
	"io"
	"os"
	"sync"
	"time"

	"edged/router/h1"
	"edged/router/table"
)

const maxStreamPiece = 64 << 10

// stream sends the head in c.out at once and then the worker's stream as it is produced: every piece goes out before the
// next is asked for, so that a client that takes nothing stops the producer. The stream is closed exactly once, and early
// if the client leaves.
func (c *conn) stream(length int64, chunked bool) {
	source := c.res.Stream
	c.res.Stream = nil
	var once sync.Once
	closeSource := func() { once.Do(func() { _ = source.Close() }) }
	stop := context.AfterFunc(c.ctx, closeSource)
	defer stop()
	defer closeSource()
	c.pace()
	if !c.write(c.out) {
		return
	}
	defer c.outlast()()
	if !c.copyStream(source, length, chunked) {
		c.cut()
	}
}

// longStream is how long a streamed response holds its place of the admission, if there is room among the long ones then.
const longStream = time.Second

// outlast watches over a stream that begins; the returned func is called when it has ended.
func (c *conn) outlast() (ended func()) {
	over := make(chan struct{}) // closed when the timer's func has returned
	timer := time.AfterFunc(longStream, func() {
		defer close(over)
		c.detached = c.r.gate.detach(c.party)
	})
	return func() {
		if !timer.Stop() {
			<-over
		}
	}
}

// copyStream reports whether the body came to its proper end.
func (c *conn) copyStream(source io.Reader, length int64, chunked bool) (ended bool) {
	defer func() {
		if p := recover(); p != nil { // still inside the boundary of call
			c.caught(p)
			ended = false
		}
	}()
	buf := c.scratch()
	for sent := int64(0); ; {
		room := buf[h1.ChunkRoom : len(buf)-len("\r\n0\r\n\r\n")]
		n, err := source.Read(room)
		sent += int64(n)
		switch {
		case err != nil && err != io.EOF:
			return false
		case length >= 0 && (sent > length || err == io.EOF && sent != length):
			if over := sent - length; over > 0 {
				c.write(room[:max(0, int64(n)-over)])
			} else {
				c.write(room[:n])
			}
			return false // it has another length than was declared
		}
		piece := room[:n]
		if chunked {
			piece = frame(buf, n, err == io.EOF)
		}
		if !c.write(piece) {
			return false
		}
		if err == io.EOF {
			return true
		}
		if n == len(room) && len(buf) < maxStreamPiece {
			c.out = make([]byte, min(4*len(buf), maxStreamPiece))
			buf = c.out
		}
	}
}

// frame puts the chunk framing around the n bytes at ChunkRoom, and the body's end behind them if last.
func frame(buf []byte, n int, last bool) []byte {
	start, end := h1.ChunkRoom, h1.ChunkRoom+n
	if n > 0 {
		start = h1.PutChunkSize(buf[:h1.ChunkRoom], n)
		end += copy(buf[end:], "\r\n")
	}
	if last {
		end += copy(buf[end:], "0\r\n\r\n")
	}
	return buf[start:end]
}

// scratch returns the output buffer at full length, for when nothing in it is needed.
func (c *conn) scratch() []byte {
	if cap(c.out) < firstBuffer {
		c.out = make([]byte, firstBuffer)
	}
	c.out = c.out[:cap(c.out)]
	return c.out
}

// cut ends a response short of its body so that the client sees it: no last chunk, fewer bytes than declared, or, where
// the end of the connection is the end of the body, a reset.
func (c *conn) cut() {
	c.r.opt.Metrics.cut.Inc()
	c.keep, c.short = false, true
	if c.head.Minor == 0 && c.tcp != nil {
		_ = c.tcp.SetLinger(0) // if it fails the end looks regular, which nothing can help
		_ = c.tcp.Close()
	}
	c.broken = true
}

// respondAsset sends a file with status 200 (static-assets §3).
func (c *conn) respondAsset(a *table.Asset) *refusal {
	var file io.ReadCloser
	if !c.isHead() {
		var err error
		if file, err = a.Open(); err != nil {
			c.r.opt.Log.Error("asset cannot be opened", "err", err, "version", c.version.UID,
				"do", "check the disk of the data directory, and deploy the worker again if a file of artifacts is gone")
			return refNotServing
		}
		defer func() { _ = file.Close() }() // only read from
	}
	c.r.opt.Metrics.assets.Inc()
	c.res.Stream = nil
	c.settle()
	c.count(200)
	c.answer = answerAsset
	dst := h1.AppendStatus(c.out[:0], 200)
	dst = h1.AppendField(dst, "Content-Type", a.MediaType)
	dst = c.appendDate(dst)
	dst = c.diagnose(dst, answerAsset)
	dst = c.endHead(h1.AppendLength(dst, a.Size))
	c.out = dst
	switch {
	case file == nil:
		c.write(dst)
	case a.Size <= smallBody:
		c.sendSmall(file, int(a.Size))
	case c.write(dst) && !c.copyFile(file, a.Size):
		c.cut()
	}
	return nil
}

// sendSmall sends the head in c.out and a small file in one write.
func (c *conn) sendSmall(file io.Reader, size int) {
	head := len(c.out)
	c.out = append(c.out, make([]byte, size)...)
	n, err := io.ReadFull(file, c.out[head:])
	if c.write(c.out[:head+n]) && err != nil {
		c.cut()
	}
}

// copyFile sends size bytes in bounded pieces; from a file to a plain socket they do not pass through this process.
func (c *conn) copyFile(file io.Reader, size int64) bool {
	c.pace()
	if _, ok := file.(*os.File); ok && c.tcp != nil && c.tls == nil {
		piece := io.LimitedReader{R: file}
		for size > 0 {
			began := c.writeSoon()
			piece.N = min(size, maxPiece)
			n, err := c.tcp.ReadFrom(&piece)
			c.wrote(began, n)
			size -= n
			if err != nil || n == 0 {
				c.noteSlow(err)
				return false
			}
		}
		return true
	}
	buf := make([]byte, min(size, maxStreamPiece))
	for size > 0 {
		n, err := io.ReadFull(file, buf[:min(size, int64(len(buf)))])
		if !c.write(buf[:n]) || err != nil {
			return false
		}
		size -= int64(n)
	}
	return true
}

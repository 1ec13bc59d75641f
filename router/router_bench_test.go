package router

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"edged/sandbox/event"
)

const benchRequest = "GET /api/items/42?page=1 HTTP/1.1\r\nHost: a.test\r\nUser-Agent: bench/1.0\r\nAccept: application/json\r\nAccept-Encoding: gzip, br\r\nCookie: session=0123456789abcdef\r\n\r\n"

// BenchmarkHello is the front alone: a trivial handler behind kept connections, ours against bare fasthttp. Client and
// server share the cores, so the ratio is what counts.
func BenchmarkHello(b *testing.B) {
	b.Run("impl=ours", func(b *testing.B) {
		f := start(b, Options{}, serving(hello))
		drive(b, f.addr, benchRequest)
	})
	b.Run("impl=fasthttp", func(b *testing.B) {
		drive(b, startFasthttp(b, func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("text/plain")
			ctx.SetBodyString("hello")
		}), benchRequest)
	})
}

// BenchmarkUpload reads a body of known length to its end.
func BenchmarkUpload(b *testing.B) {
	const size = 256 << 10
	request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n%s", size, bytes.Repeat([]byte("x"), size))
	b.Run("impl=ours", func(b *testing.B) {
		f := start(b, Options{}, serving(func(_ context.Context, req *event.Request, res *event.Response) error {
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return err
			}
			return answer(res, 200, "hello")
		}))
		b.SetBytes(size)
		drive(b, f.addr, request)
	})
	b.Run("impl=fasthttp", func(b *testing.B) {
		addr := startFasthttp(b, func(ctx *fasthttp.RequestCtx) {
			if _, err := io.Copy(io.Discard, ctx.RequestBodyStream()); err != nil {
				b.Error(err)
			}
			ctx.SetBodyString("hello")
		})
		b.SetBytes(size)
		drive(b, addr, request)
	})
}

func startFasthttp(b *testing.B, h fasthttp.RequestHandler) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &fasthttp.Server{Handler: h, NoDefaultServerHeader: true, StreamRequestBody: true}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }() // ends with the cleanup
	b.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			b.Error(err)
		}
		<-done
	})
	return l.Addr().String()
}

// drive sends the request over kept connections, 16 per core, and reads small responses.
func drive(b *testing.B, addr, request string) {
	b.Helper()
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = nc.Close() }()
		out, in := []byte(request), make([]byte, 1024)
		for pb.Next() {
			if _, err := nc.Write(out); err != nil {
				b.Error(err)
				return
			}
			for have := 0; !bytes.HasSuffix(in[:have], []byte("hello")); {
				n, err := nc.Read(in[have:])
				if have += n; err != nil {
					b.Error(err)
					return
				}
			}
		}
	})
	b.StopTimer()
}

// BenchmarkStream produces a response in pieces.
func BenchmarkStream(b *testing.B) {
	f := start(b, Options{}, serving(func(_ context.Context, _ *event.Request, res *event.Response) error {
		res.Status, res.Stream = 200, io.NopCloser(bytes.NewReader([]byte("hello")))
		return nil
	}))
	b.Run("impl=ours", func(b *testing.B) {
		c := f.dial(b)
		b.ReportAllocs()
		for b.Loop() {
			c.send(benchRequest)
			if _, body := c.response("GET"); body != "hello" {
				b.Fatal(body)
			}
		}
	})
}

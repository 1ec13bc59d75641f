//go:build !race

package router

import (
	"io"
	"net"
	"testing"
)

// A kept connection's request costs no allocation in the router, from the head to the answer.
func TestHotPathAllocations(t *testing.T) {
	f := start(t, Options{}, serving(hello))
	nc, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	request, response := []byte(benchRequest), make([]byte, 0)
	exchange := func() {
		if _, err := nc.Write(request); err != nil {
			t.Fatal(err)
		}
		if len(response) == 0 {
			b := make([]byte, 1024)
			n, err := nc.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			response = b[:n] // every further one is as long
		} else if _, err := io.ReadFull(nc, response); err != nil {
			t.Fatal(err)
		}
	}
	exchange()
	if n := testing.AllocsPerRun(1000, exchange); n >= 1 {
		t.Errorf("%v allocations per request", n)
	}
}

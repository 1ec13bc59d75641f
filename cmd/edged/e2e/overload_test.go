package e2e

import (
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A node that has no file descriptor left goes on: clients that wait for nothing make room, and the stores, the control listener and
// new clients have what they need.
func TestWithoutDescriptors(t *testing.T) {
	n := start(t, t.TempDir(), "--supervise=false")
	worker := n.served("hello", `export default { fetch() { return new Response("hello") } }`, object{"handlers": []string{"fetch"}})
	host := strings.TrimPrefix(n.address("hello", worker), "http://")
	open, err := os.ReadDir("/proc/" + strconv.Itoa(n.info.PID) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	few := unix.Rlimit{Cur: uint64(len(open)) + 30}
	if err := unix.Prlimit(n.info.PID, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	few.Max = was.Max
	if err := unix.Prlimit(n.info.PID, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 100)
	for range cap(closed) {
		c, err := net.Dial("tcp", n.info.HTTP)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() { // ends with the connection
			_, err := c.Read(make([]byte, 1))
			closed <- err
		}()
	}
	for range 3 {
		select {
		case err := <-closed:
			if err == nil {
				t.Error("an idle client was told something")
			}
		case <-time.After(limit):
			t.Fatal("no idle client makes room")
		}
	}
	n.made("EdgeKVNamespace/0.2.0/", "cache", object{})
	n.made("SQLiteDatabase/0.2.0/", "db", object{})
	req, err := http.NewRequest("GET", "http://"+n.info.HTTP, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	client := http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "hello" {
		t.Errorf("%d %q %v", res.StatusCode, body, err)
	}
}

package control

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"edged/control/form"
)

// host-api §6.5: a DELETE whose body was announced and broke off is refused, not carried out.
func TestDeleteWithBrokenBody(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	uid := n.made(form.ModuleWorkerURL, "web", spec{})
	req := httptest.NewRequest("DELETE", root+"/resources/"+uid, iotest.ErrReader(errors.New("malformed chunk")))
	req.Header.Set("Authorization", "Bearer "+n.token)
	req.Header.Set("Idempotency-Key", freshKey())
	req.Header.Set("Takoform-Expected-Generation", "1")
	rec := httptest.NewRecorder()
	n.c.Handler().ServeHTTP(rec, req)
	answer{rec.Code, rec.Header(), rec.Body.Bytes()}.is(t, 400, "invalid_request")
	n.get(uid).is(t, 200, "")
}

// A client that sends all of a body before it reads gets the refusal, not a connection that breaks under it.
func TestRefusedBodyIsRead(t *testing.T) {
	n := startNode(t, t.TempDir(), nil)
	srv := httptest.NewServer(n.c.Handler())
	defer srv.Close()
	for _, row := range []struct {
		name, method, path, mediaType string
		size, status                  int
	}{
		{"over the limit", "POST", root + "/resources", "application/json", 12 << 20, 413},
		{"media type", "POST", root + "/resources", "text/plain", 6 << 20, 415},
		{"query", "POST", root + "/resources?x=1", "application/json", 6 << 20, 400},
		{"artifact", "PUT", "/artifacts/sha256/" + strings.Repeat("0", 64), "text/plain", 20 << 20, 413},
	} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nIdempotency-Key: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
			row.method, row.path, n.token, freshKey(), row.mediaType, row.size)
		if err == nil {
			_, err = io.CopyN(conn, zeros{}, int64(row.size))
		}
		if err != nil {
			t.Errorf("%s: the connection broke while the body was sent: %v", row.name, err)
		} else if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != row.status {
			t.Errorf("%s: %v %v, want %d", row.name, res, err, row.status)
		}
		conn.Close()
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

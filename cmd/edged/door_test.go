package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The door answers what it does not understand, reads no more than a request may have, and passes on what it does; also where the data
// directory's name is longer than a socket's may be.
func TestDoor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, doorFile), nil, 0o600); err != nil { // left behind by one that was killed
		t.Fatal(err)
	}
	d, err := openDoor(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"{}\n", "nonsense\n", strings.Repeat("x", 2*doorRequest) + "\n"} {
		path, done, err := doorPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("unix", path)
		done()
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(doorPatient))
		fmt.Fprint(conn, q)
		var r reply
		line, err := bufio.NewReader(conn).ReadBytes('\n')
		if len(q) < doorRequest && (err != nil || json.Unmarshal(line, &r) != nil || !strings.Contains(r.Error, "does not understand")) {
			t.Errorf("%.10q: %s, %v", q, line, err)
		}
		conn.Close()
	}
	go func() { // ends with the answer below
		w := <-d.requests()
		w.tell("first " + w.Binary)
		w.done(7, "v2", time.Second)
	}()
	var said string
	r, err := askSupervisor(dir, request{Upgrade: true, Binary: "/b"}, func(text string) { said = text })
	if err != nil || said != "first /b" || r.PID != 7 || r.Version != "v2" || r.Waited != time.Second {
		t.Errorf("%q, %+v, %v", said, r, err)
	}
	d.close()
	if _, err := os.Stat(filepath.Join(dir, doorFile)); err == nil {
		t.Error("the socket is left")
	}
	if _, err := askSupervisor(dir, request{Upgrade: true}, nil); err == nil || !strings.Contains(err.Error(), "no supervised node serves on") {
		t.Errorf("nobody there: %v", err)
	}
}

// A link keeps messages apart and carries descriptors; one that is longer than a packet is refused and harms nothing.
func TestLink(t *testing.T) {
	a, b, err := linkPair()
	if err != nil {
		t.Skip(err)
	}
	from, err := newLink(a)
	if err != nil {
		t.Fatal(err)
	}
	to, err := newLink(b)
	if err != nil {
		t.Fatal(err)
	}
	defer to.close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := from.send(message{Say: sayFailed, Text: strings.Repeat("x", maxPacket)}); err == nil {
		t.Error("a packet over the limit was sent")
	}
	unread := make([]byte, 70<<10) // a head, and what was read behind it
	if err := from.sendSocket(message{Say: sayConn, Conn: &linkedConn{Unread: unread, Peer: "192.0.2.1"}}, l); err != nil {
		t.Fatal(err)
	}
	if err := from.send(message{Say: sayGo}); err != nil {
		t.Fatal(err)
	}
	from.close()
	buffer := make([]byte, maxPacket)
	m, files, err := to.receive(buffer)
	if err != nil || m.Say != sayConn || len(m.Conn.Unread) != len(unread) || m.Conn.Peer != "192.0.2.1" || len(files) != 1 {
		t.Fatalf("%s, %d files, %v", m.Say, len(files), err)
	}
	again, err := net.FileListener(files[0])
	closeFiles(files)
	if err != nil || again.Addr().String() != l.Addr().String() {
		t.Errorf("%v, %v", again, err)
	}
	again.Close()
	if m, _, err = to.receive(buffer); err != nil || m.Say != sayGo {
		t.Errorf("%+v, %v", m, err)
	}
	if _, _, err = to.receive(buffer); err == nil {
		t.Error("a link whose other end is closed goes on")
	}
}

// A socket of a service manager is told by its name, else by its address, else refused.
func TestSocketName(t *testing.T) {
	want := map[string]string{"http": "127.0.0.1:80", "admin": "127.0.0.1:82", "peer": ""}
	for _, tt := range []struct{ name, addr, is string }{
		{"https", "127.0.0.1:80", "https"}, {"edged.socket", "127.0.0.1:82", "admin"}, {"", "127.0.0.1:81", ""},
	} {
		if got := socketName(tt.name, tt.addr, want); got != tt.is {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

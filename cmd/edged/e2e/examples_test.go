package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// example returns the folder of one example, whose npm packages `make examples` has installed.
func example(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "examples", name)
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
		if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
			t.Fatalf("the packages of %s are not installed: run make examples", name)
		}
	}
	return dir
}

// Every example, deployed to a real node and driven over sockets; then again after an orderly restart, and after kill -9.
func TestExamples(t *testing.T) {
	t.Parallel()
	for name, drive := range map[string]func(*testing.T, *node, string){
		"guestbook": driveGuestbook, "hello": driveHello, "hono-api": driveHono, "libraries": driveLibraries, "qoi": driveQOI, "react-ssr": driveReact, "spa": driveSPA,
		"stream-echo": driveStreams,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			n := start(t, dir)
			var flags []string
			if name == "guestbook" { // it calls hello, and has a secret
				n.deploy(example(t, "hello"))
				secrets := write(t, map[string]string{"secrets.toml": "SIGNING_KEY = \"the key of this test\"\n"})
				flags = []string{"--secrets-file", filepath.Join(secrets, "secrets.toml")}
			}
			url := n.deploy(example(t, name), flags...)
			drive(t, n, url)
			if code := n.stop(); code != 0 {
				t.Fatalf("exit %d after SIGTERM", code)
			}
			if raceFlag != nil { // for the detector once is enough
				return
			}
			n = start(t, dir)
			drive(t, n, url)
			n.kill()
			n = start(t, dir)
			drive(t, n, url)
			if again := n.deploy(example(t, name), flags...); again != url {
				t.Errorf("the address moved from %s to %s", url, again)
			}
		})
	}
}

func expect(t *testing.T, what string, a answer, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("%s: %d %.300q, want %d %.300q", what, a.status, a.body, status, body)
	}
}

func driveHello(t *testing.T, n *node, url string) {
	expect(t, "default", n.get(url+"/"), 200, "Hello, world!\n")
	expect(t, "named", n.get(url+"/?name=J%C3%BCrgen"), 200, "Hello, Jürgen!\n")
}

// An npm package that is WebAssembly, bundled unmodified (module-worker §2.1).
func driveQOI(t *testing.T, n *node, url string) {
	a := n.get(url + "/?width=100&height=50")
	if a.status != 200 || a.header.Get("Content-Type") != "image/qoi" || !strings.HasPrefix(a.body, "qoif\x00\x00\x00\x64\x00\x00\x00\x32") {
		t.Fatalf("encoded: %d %.60q", a.status, a.body)
	}
	b := n.do("POST", url+"/", strings.NewReader(a.body))
	expect(t, "decoded", b, 200, `{"width":100,"height":50,"first":[0,0,128,255],"last":[252,250,128,255]}`)
}

func driveHono(t *testing.T, n *node, url string) {
	a := n.get(url + "/hello/ada?lang=fr")
	expect(t, "parameter and query", a, 200, `{"hello":"ada","lang":"fr"}`)
	if a.header.Get("x-api") != "notes" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		t.Errorf("headers: %v", a.header)
	}
	if a := n.get(url + "/"); a.status != 200 || !strings.Contains(a.body, "POST /notes") {
		t.Errorf("text module: %+v", a)
	}
	a = n.do("POST", url+"/notes", strings.NewReader(`{"title":"naïve","body":"text"}`), "Content-Type", "application/json")
	var note struct{ ID, Title, Body string }
	if err := json.Unmarshal([]byte(a.body), &note); err != nil || a.status != 201 || note.Title != "naïve" {
		t.Errorf("created: %v %+v", err, a)
	}
	if want := "/notes/" + note.ID; len(note.ID) != 64 || a.header.Get("Location") != want {
		t.Errorf("location %q, want %q", a.header.Get("Location"), want)
	}
	expect(t, "broken JSON", n.do("POST", url+"/notes", strings.NewReader(`{`)), 400, `{"error":"the body is not JSON"}`)
	expect(t, "wrong JSON", n.do("POST", url+"/notes", strings.NewReader(`{"title":""}`)), 422, `{"error":"title must have 1 to 80 characters"}`)
	expect(t, "no route", n.do("DELETE", url+"/notes", nil), 404, `{"error":"no such route"}`)
}

// static-assets: exact bytes and media types, the application for every searchable path, nothing for the others.
func driveSPA(t *testing.T, n *node, url string) {
	dist := filepath.Join(example(t, "spa"), "dist")
	index, err := os.ReadFile(filepath.Join(dist, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/index.html", "/about", "/items/1", "/items/1?q=2"} {
		a := n.get(url + path)
		expect(t, path, a, 200, string(index))
		if a.header.Get("Content-Type") != "text/html" {
			t.Errorf("%s: media type %q", path, a.header.Get("Content-Type"))
		}
	}
	scripts := regexp.MustCompile(`/assets/[^"]+`).FindAllString(string(index), -1)
	if len(scripts) == 0 {
		t.Fatal("the built page names no assets")
	}
	for _, path := range append(scripts, "/icon.svg") {
		want, err := os.ReadFile(filepath.Join(dist, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, path, n.get(url+path), 200, string(want))
		head := n.do("HEAD", url+path, nil)
		if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(want)) {
			t.Errorf("HEAD %s: %+v", path, head)
		}
	}
	for _, path := range []string{"/a//b", "/%2e%2E%2fx", "/a%2Fb", "/%ff"} {
		if a := n.get(url + path); a.status != 404 || a.header.Get("Edged-Error") != "not_found" {
			t.Errorf("%s: %d %v, want a miss without fallback", path, a.status, a.header)
		}
	}
	if a := n.do("POST", url+"/", strings.NewReader("x")); a.status != 404 {
		t.Errorf("POST: %d, want 404", a.status)
	}
}

func driveStreams(t *testing.T, n *node, url string) {
	big := bytes.Repeat([]byte("abcdefgh"), 128<<10) // 1 MiB
	expect(t, "echo", n.do("POST", url+"/echo", bytes.NewReader(big)), 200, string(big))
	expect(t, "echo of nothing", n.do("POST", url+"/echo", nil), 200, "")
	expect(t, "transform", n.do("POST", url+"/upper", strings.NewReader("straße")), 200, "STRAßE")
	expect(t, "count", n.get(url+"/count?to=3"), 200, "1\n2\n3\n")
	expect(t, "size of unknown length", n.do("POST", url+"/size", io.MultiReader(bytes.NewReader(big), strings.NewReader("x"))), 200, "1048577\n")
	driveBothWays(t, n, url)
}

// module-worker §3.1: the first chunk comes back before the second is sent.
func driveBothWays(t *testing.T, n *node, url string) {
	pr, pw := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/echo", pr)
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1) // one value
	go func() {                 // ends with the write: the response is read, or the pipe closed, below
		_, err := pw.Write([]byte("first"))
		sent <- err
	}()
	res, err := n.client(n.info.HTTP, nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer pw.Close()
	buf := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != "first" {
		t.Fatalf("first chunk: %q %v", buf, err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if _, err := pw.Write([]byte("second")); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	rest, err := io.ReadAll(res.Body)
	if err != nil || string(rest) != "second" {
		t.Fatalf("the rest: %q %v", rest, err)
	}
}

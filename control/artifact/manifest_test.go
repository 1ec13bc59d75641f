package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"edged/internal/fault"
)

const sha = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func fileJSON(path, mediaType string) string {
	p, _ := json.Marshal(path)
	return fmt.Sprintf(`{"path":%s,"url":"https://a.example/x","sha256":"%s","mediaType":%q}`, p, sha, mediaType)
}

// worker-bundle §2: every rule of the manifest, one broken at a time.
func TestParseManifest(t *testing.T) {
	module := fileJSON("main.js", typeModule)
	worker := func(files ...string) string {
		return `{"entrypoint":"main.js","files":[` + strings.Join(append([]string{module}, files...), ",") + `]}`
	}
	list := func(files ...string) string { return `{"files":[` + strings.Join(files, ",") + `]}` }
	many := func(n int) string {
		var files []string
		for i := range n {
			files = append(files, fileJSON(fmt.Sprintf("f%d", i), "a/b"))
		}
		return list(files...)
	}
	swap := func(old, repl string) string { return strings.Replace(worker(), old, repl, 1) }

	good := []struct {
		kind Kind
		text string
	}{
		{Worker, worker()},
		{Worker, worker(fileJSON("a/b.txt", "text/plain"), fileJSON("x.bin", "application/octet-stream"),
			fileJSON("y.wasm", "application/wasm"), fileJSON("main.js.map", "application/source-map+json"))},
		{Worker, worker(fileJSON("MAIN.js", typeModule), fileJSON("é/😀 %2F..x/...", typeModule))},
		{Worker, worker(fileJSON(strings.Repeat("p", 1024), "text/plain"))},
		{Assets, list(fileJSON("index.html", "text/html"), fileJSON("x", "image/svg+xml"), fileJSON("y", "!#$%&'*+-.^_`|~/X9"))},
		{Assets, many(512)},
		{Migrations, list(fileJSON("1.sql", typeSQL))},
		{Worker, swap("https://a.example/x", "https://a.example/"+strings.Repeat("u", 8192-len("https://a.example/")))},
	}
	for _, tt := range good {
		if _, err := ParseManifest([]byte(tt.text), tt.kind); err != nil {
			t.Errorf("%d %.80s: %v", tt.kind, tt.text, err)
		}
	}

	bad := []struct {
		kind Kind
		text string
		want string // part of the sentence
	}{
		{Worker, ``, "not valid JSON"},
		{Worker, `{"entrypoint":"main.js"} x`, "not valid JSON"},
		{Worker, "{\"a\":\"\xff\"}", "not valid JSON"},
		{Worker, `{"files":[],"files":[]}`, "twice"},
		{Worker, `[]`, "not a JSON object"},
		{Worker, `{}`, "no entrypoint"},
		{Worker, list(module), "no entrypoint"},
		{Worker, `{"entrypoint":1,"files":[` + module + `]}`, "not a string"},
		{Worker, `{"entrypoint":"main.js"}`, "no files array"},
		{Worker, `{"entrypoint":"main.js","files":{}}`, "no files array"},
		{Worker, `{"entrypoint":"main.js","files":[]}`, "no files"},
		{Worker, `{"entrypoint":"other.js","files":[` + module + `]}`, "not the path of a file"},
		{Worker, `{"entrypoint":"a.txt","files":[` + fileJSON("a.txt", "text/plain") + `]}`, "media type"},
		{Worker, swap(`"files"`, `"x":1,"files"`), "unknown member"},
		{Worker, swap(`"entrypoint"`, `"Entrypoint"`), "unknown member"},
		{Assets, worker(), "unknown member"},
		{Migrations, worker(), "unknown member"},
		{Worker, worker(module), "twice"},
		{Worker, worker(`"x"`), "is not an object"},
		{Worker, worker(`null`), "is not an object"},
		{Worker, swap(`"path":"main.js",`, ``), "all required"},
		{Worker, swap(`"mediaType"`, `"size":1,"mediaType"`), "unknown member"},
		{Worker, swap(`"mediaType"`, `"mediatype"`), "unknown member"},
		{Worker, swap(`"https://a.example/x"`, `null`), "url is not a string"},
		{Worker, swap(sha, strings.ToUpper(sha)), "sha256"},
		{Worker, swap(sha, sha[1:]), "sha256"},
		{Worker, swap(sha, "sha256:"+sha), "sha256"},
		{Worker, swap("https:", "http:"), "url"},
		{Worker, swap("https://a.example/x", "https://a.example/x?y"), "query"},
		{Worker, swap("https://a.example/x", "https://a.example/x#"), "query or a fragment"},
		{Worker, swap("https://a.example/x", "https://u@a.example/x"), "user information"},
		{Worker, swap("https://a.example/x", "https://@a.example/x"), "user information"},
		{Worker, swap("https://a.example/x", "https:///x"), "absolute"},
		{Worker, swap("https://a.example/x", "/x"), "absolute"},
		{Worker, swap("https://a.example/x", "https:x"), "absolute"},
		{Worker, swap("https://a.example/x", "https://é.example/x"), "ASCII"},
		{Worker, swap("https://a.example/x", "https://a.example/ x"), "ASCII"},
		{Worker, swap("https://a.example/x", `https://a.example\\x`), "backslash"},
		{Worker, swap("https://a.example/x", "https://a.example/"+strings.Repeat("u", 8193-len("https://a.example/"))), "8192"},
		{Worker, worker(fileJSON("x.html", "text/html")), "mediaType"},
		{Worker, worker(fileJSON("x.js", "application/javascript")), "mediaType"},
		{Worker, worker(fileJSON("x.txt", "Text/plain")), "mediaType"},
		{Migrations, list(fileJSON("1.sql", "text/plain")), "mediaType"},
		{Assets, list(fileJSON("x", "text/html; charset=utf-8")), "mediaType"},
		{Assets, list(fileJSON("x", "text")), "mediaType"},
		{Assets, list(fileJSON("x", "/html")), "mediaType"},
		{Assets, list(fileJSON("x", "a/b/c")), "mediaType"},
		{Assets, list(fileJSON("x", "a/b ")), "mediaType"},
		{Assets, many(513), "more than 512"},
		{Assets, list(fileJSON("x", "a/b")) + strings.Repeat(" ", MaxManifestBytes), "over 1048576 bytes"},
		{Kind(9), list(fileJSON("x", "a/b")), "mediaType"},
	}
	for _, path := range []string{
		"", "/a", "a/", "a//b", "./a", "a/./b", "..", "a/../b", "a\\b", "a?b", "a#b", "a\x00b", "a\x1fb", "a\x7fb", "a\nb",
		strings.Repeat("p", 1025), strings.Repeat("é", 513),
	} {
		bad = append(bad, struct {
			kind Kind
			text string
			want string
		}{Worker, worker(fileJSON(path, "text/plain")), "path"})
	}
	for _, tt := range bad {
		_, err := ParseManifest([]byte(tt.text), tt.kind)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(fault.Detail(err), tt.want) {
			t.Errorf("%d %.120s: got %v, want artifact_invalid with %q", tt.kind, tt.text, err, tt.want)
		}
	}
}

// What a manifest says is kept in its order and to the letter.
func TestParseManifestKeepsOrder(t *testing.T) {
	m, err := ParseManifest([]byte(`{"files":[`+fileJSON("b", "a/b")+`,`+fileJSON("a", "a/c")+`]}`), Assets)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := ParseDigest(sha)
	want := []ManifestFile{{"b", "https://a.example/x", "a/b", d}, {"a", "https://a.example/x", "a/c", d}}
	if len(m.Files) != 2 || m.Files[0] != want[0] || m.Files[1] != want[1] || m.Entrypoint != "" {
		t.Errorf("got %+v", m)
	}
}

// Whatever a manifest holds, what is accepted keeps the limits and survives being written again.
func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"entrypoint":"main.js","files":[`+fileJSON("main.js", typeModule)+`]}`), uint8(Worker))
	f.Add([]byte(`{"files":[`+fileJSON("a/b", "a/b")+`,`+fileJSON("..", "a/b")+`]}`), uint8(Assets))
	f.Add([]byte(`{"files":[`+fileJSON("1", typeSQL)+`]}`), uint8(Migrations))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		m, err := ParseManifest(b, Kind(kind))
		if err != nil {
			if !errors.Is(err, ErrInvalid) || fault.Detail(err) == "" {
				t.Fatalf("%v is not artifact_invalid with a sentence", err)
			}
			return
		}
		if len(m.Files) < 1 || len(m.Files) > MaxFiles {
			t.Fatalf("%d files", len(m.Files))
		}
		var files []wireFile
		for _, file := range m.Files {
			if strings.HasPrefix(file.Path, "/") || strings.Contains("/"+file.Path+"/", "/../") || !strings.HasPrefix(file.URL, "https://") {
				t.Fatalf("accepted %+v", file)
			}
			files = append(files, wireFile{file.Path, file.URL, file.Digest.String(), file.MediaType})
		}
		if _, err := ParseManifest(manifestOf(m.Entrypoint, files...), Kind(kind)); err != nil {
			t.Fatalf("written again: %v", err)
		}
	})
}

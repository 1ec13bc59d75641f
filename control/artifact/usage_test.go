package artifact

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
)

// worker-bundle §3 (3): a Host-held credential goes to the origin that it is for, and to no other, not by a redirect
// either; nothing shows it.
func TestCredentials(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	record := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen = append(seen, name+" "+r.URL.Path+" "+r.Header.Get("X-Token"))
			mu.Unlock()
			switch {
			case r.URL.Path == "/away":
				http.Redirect(w, r, "https://"+r.Host+"/there", http.StatusFound)
			case r.Header.Get("X-Token") != "the secret":
				w.WriteHeader(http.StatusUnauthorized)
			default:
				w.Write([]byte("bytes"))
			}
		}
	}
	private, public := newSource(t, record("private")), newSource(t, record("public"))
	opt := remote(t, private)
	opt.Origins = []string{private.URL}
	opt.Credentials = []Credential{{private.URL, "X-Token", "the secret"}}
	s := closing(t, opt)
	get := func(url string) error {
		d := digestOf([]byte("bytes"))
		m := manifestOf("", wireFile{"f", url, d.String(), "a/b"})
		md := put(t, s, "acme", m)
		_, err := s.Acquire(t.Context(), Request{Tenant: "acme", UID: "u" + url, URL: ownURL(md), Digest: md, Kind: Assets})
		return err
	}
	if err := get(private.URL + "/f"); err != nil {
		t.Error(err)
	}
	for _, url := range []string{public.URL + "/f", private.URL + "/away"} {
		err := get(url)
		if !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "the secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(seen); got != "[private /f the secret public /f  private /away the secret]" {
		t.Errorf("the sources saw %s", got)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "c", opt.Credentials[0])
	if text := fmt.Sprintf("%v %+v %#v %s", opt.Credentials, opt.Credentials[0], opt.Credentials, log.String()); strings.Contains(text, "the secret") {
		t.Errorf("it prints as %s", text)
	}
}

// Credentials for anything but a configured origin, or that say something else than who asks, stop the start.
func TestCredentialsAreChecked(t *testing.T) {
	for _, c := range []Credential{
		{"https://other.test", "X", "v"}, {"http://ok.test", "X", "v"}, {"https://ok.test/p", "X", "v"}, {"https://ok.test", "Host", "v"},
		{"https://ok.test", "a b", "v"}, {"https://ok.test", "X", "a\nb"}, {"https://ok.test", "X", ""}, {"https://ok.test", "range", "v"},
	} {
		s, err := Open(Options{Dir: t.TempDir(), Origins: []string{"https://ok.test"}, Credentials: []Credential{c}})
		if err == nil {
			s.Close()
		}
		if fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%v: %v", c, err)
		}
	}
	path := filepath.Join(t.TempDir(), "credentials")
	for _, row := range []struct {
		text string
		mode os.FileMode
		want int
		word string
	}{
		{"# comment\n\nhttps://a.test Authorization: Bearer x y\n  https://b.test X-K:v\n", 0o600, 2, ""},
		{"https://a.test X: hush", 0o640, 0, "0600"},
		{"https://a.test hush\nnothing\n", 0o600, 0, ":2: want"},
		{strings.Repeat("#", maxCredentials+1), 0o600, 0, "more than"},
	} {
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, row.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadCredentials(path)
		if len(got) != row.want || (err == nil) != (row.word == "") || err != nil && (!strings.Contains(err.Error(), row.word) || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%.30q: %v %v", row.text, got, err)
		}
		if row.want == 2 && got[0] != (Credential{"https://a.test", "Authorization", "Bearer x y"}) {
			t.Errorf("read %s %q", got[0], got[0].Value)
		}
	}
	if _, err := ReadCredentials(path + ".none"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no file: %v", err)
	}
}

// What one tenant may hold is bounded: uploads and fetched bytes count once each, collected ones no more, and a restart
// counts the same.
func TestHeldBytesAreBounded(t *testing.T) {
	content := []byte("0123456789")
	var m []byte
	src := newSource(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write(map[string][]byte{"/f": content, "/m": m}[r.URL.Path])
	})
	m = manifestOf("", wireFile{"f", src.URL + "/f", digestOf(content).String(), "a/b"})
	opt := remote(t, src)
	opt.Dir, opt.MaxHeldBytes = t.TempDir(), 100 // the manifest is larger
	s := open(t, opt)
	upload := func(tenant, content string) error {
		_, err := s.Put(t.Context(), tenant, digestOf([]byte(content)), strings.NewReader(content))
		return err
	}
	forty := func(ch string) string { return strings.Repeat(ch, 40) }
	for _, content := range []string{forty("a"), forty("b"), forty("a")} {
		if err := upload("acme", content); err != nil {
			t.Fatal(err)
		}
	}
	if err := upload("acme", forty("c")); !errors.Is(err, ErrQuota) || fault.CodeOf(err) != fault.Conflict {
		t.Errorf("the third is kept: %v", err)
	}
	if holds(t, s, "acme", digestOf([]byte(forty("c")))) {
		t.Error("what was refused is held")
	}
	if err := upload("other", forty("a")); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	s.Close()
	s = open(t, opt)
	t.Cleanup(func() { s.Close() })
	if err := upload("acme", forty("c")); !errors.Is(err, ErrQuota) {
		t.Errorf("after a restart: %v", err)
	}
	if err := upload("acme", strings.Repeat("d", 20)); err != nil {
		t.Errorf("what fits: %v", err)
	}
	fetch := func(tenant string) error {
		_, err := s.Acquire(t.Context(), Request{Tenant: tenant, UID: "u" + tenant, URL: src.URL + "/m", Digest: digestOf(m), Kind: Assets})
		return err
	}
	if err := fetch("acme"); !errors.Is(err, ErrInvalid) || !strings.Contains(fault.Detail(err), "may hold 100 bytes") {
		t.Errorf("fetched beyond it: %v", err)
	}
	if _, err := s.Sweep(t.Context(), time.Now().Add(2*Grace)); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{forty("c"), forty("e")} {
		if err := upload("acme", content); err != nil {
			t.Errorf("after a sweep: %v", err)
		}
	}
}

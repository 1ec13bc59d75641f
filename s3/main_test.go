package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Wrong usage exits with 2, says what to do and tells no secret.
func TestWrongUsageExitsTwo(t *testing.T) {
	const secret = "a-secret-that-nobody-sees"
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	for name, content := range map[string]string{keys: "access " + secret + " more\n", filepath.Join(dir, "token"): "t\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair := map[string]string{"EDGED_S3_ACCESS_KEY": "access", "EDGED_S3_SECRET_KEY": secret}
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		want string
	}{
		{"no keys", nil, nil, "--keys-file"},
		{"half a pair", nil, map[string]string{"EDGED_S3_SECRET_KEY": secret}, "--keys-file"},
		{"malformed keys", []string{"--keys-file", keys}, nil, "two lines"},
		{"unknown flag", []string{"--bucket", "x"}, pair, "bucket"},
		{"argument", []string{"here"}, pair, `"here"`},
		{"bad value", nil, map[string]string{"EDGED_MAX_CONNECTIONS": "many"}, "EDGED_MAX_CONNECTIONS"},
		{"no node", []string{"--data-dir", dir}, pair, "no node runs"},
		{"no https", []string{"--control-url", "http://127.0.0.1:1", "--token-file", filepath.Join(dir, "token")}, pair, "https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			code := run(t.Context(), tt.args, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }, &out)
			if code != 2 || !strings.Contains(out.String(), tt.want) || strings.Contains(out.String(), secret) {
				t.Errorf("exit %d, output %q; want 2 and %q", code, out.String(), tt.want)
			}
		})
	}
}

// Flags win over the environment, which wins over the defaults.
func TestConfigure(t *testing.T) {
	env := map[string]string{"EDGED_S3_ACCESS_KEY": "access", "EDGED_S3_SECRET_KEY": "secret", "EDGED_SPACE": "red", "EDGED_LISTEN": "127.0.0.1:1"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	opt, where, err := configure([]string{"--listen", "127.0.0.1:2"}, lookup, os.Stderr)
	if err != nil || opt.Listen != "127.0.0.1:2" || opt.Space != "red" || where.DataDir != "./data" || opt.Access != "access" || opt.Secret != "secret" {
		t.Errorf("%+v %+v %v", opt, where, err)
	}
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("of-file\nits-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if opt, _, err = configure([]string{"--keys-file", keys}, lookup, os.Stderr); err != nil || opt.Access != "of-file" || opt.Secret != "its-secret" {
		t.Errorf("%q %q %v", opt.Access, opt.Secret, err)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/term"

	"edged/control/client"
	"edged/control/operator"
	"edged/internal/fault"
)

// fakeSQL is a room of databases that answers every statement with itself.
var fakeSQL = operator.Room{Name: "sql", Routes: []operator.Route{
	{Name: "inspect", Method: "POST", Path: "databases/{db}/inspect", Body: operator.JSONBody, Serve: echoSQL},
	{Name: "tables", Method: "GET", Path: "databases/{db}/tables", Serve: func(c *operator.Call) error {
		return c.JSON(map[string][]string{"tables": {"a", "b c\x1b"}})
	}},
	{Name: "schema", Method: "GET", Path: "databases/{db}/schema", Query: []string{"name"}, Serve: func(c *operator.Call) error {
		return c.JSON(map[string][]string{"statements": {"CREATE " + c.Query.Get("name")}})
	}},
	{Name: "check", Method: "GET", Path: "databases/{db}/check", Serve: func(c *operator.Call) error {
		return c.JSON(map[string]int{"bytes": 4096, "migrations": 2, "milliseconds": 1})
	}},
}}

func echoSQL(c *operator.Call) error {
	var in struct {
		SQL    string            `json:"sql"`
		Params []json.RawMessage `json:"params"`
	}
	if err := c.Decode(&in); err != nil {
		return err
	}
	if strings.Contains(in.SQL, "wrong") {
		return fault.New(fault.Invalid, "test", "sql_error: near wrong")
	}
	return c.JSON(json.RawMessage(fmt.Sprintf(`{"rows":[{"text":{"type":"text","value":%q}}],"rowsWritten":0}`, in.SQL)))
}

func testShell(t *testing.T, out io.Writer) *shell {
	t.Helper()
	opt, err := client.Find(client.Where{DataDir: startControl(t)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &shell{store: &store{c, "app", "sql/databases/x"}, out: out}
}

// The shell on a terminal: statements over several lines, its own commands, failures that end nothing, its end.
func TestShellConverses(t *testing.T) {
	var screen strings.Builder
	sh := testShell(t, nil)
	keys := strings.NewReader("select\r1;\rwrong;\r.tables\r.schema x\r.mode tagged\rselect 2;\r.check\r.nothing\r.quit\rselect 3;\r")
	tty := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, &screen}, "")
	sh.out = tty
	if err := sh.converse(t.Context(), tty); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(screen.String(), "\r\n", "\n")
	for _, want := range []string{"app, reading only", "\"select\\n1;\"\n", "error: 400", "near wrong", "a\n\"b c\\x1b\"\n", "CREATE x;\n", "text \"select 2;\"\n",
		"sound: 4096 bytes, 2 migrations applied, checked in 1 ms", "error: \".nothing\" is not known here"} {
		if !strings.Contains(text, want) {
			t.Errorf("the screen lacks %q:\n%q", want, text)
		}
	}
	if strings.Contains(text, "select 3;\"") {
		t.Error("it goes on after .quit")
	}
}

// A script ends at the first failure; the end of the input ends its last statement.
func TestShellScript(t *testing.T) {
	for _, c := range []struct{ in, out, fails string }{
		{"select 1;\nselect 2", "text\nselect 1;\ntext\nselect 2\n", ""},
		{"\n\n.tables\n", "a\n\"b c\\x1b\"\n", ""},
		{"select 1;\nwrong;\nselect 2;\n", "text\nselect 1;\n", "near wrong"},
		{".quit\nwrong;\n", "", ""},
		{"select '" + strings.Repeat("x", maxStatementText), "", "too long"},
	} {
		var out strings.Builder
		err := testShell(t, &out).script(t.Context(), strings.NewReader(c.in))
		if out.String() != c.out || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%.40q: %q, %v", c.in, out.String(), err)
		}
	}
}

// sql §3: every storage class is shown exactly, the columns in their order.
func TestShowResult(t *testing.T) {
	const raw = `{"rows":[{"z":{"type":"integer","value":"9223372036854775807"},"a":{"type":"real","value":1.5},"m":{"type":"text","value":"a\tb"},"b":{"type":"blob","base64":"AP8="},"n":{"type":"null"},"e":{"type":"text","value":""}}],"rowsWritten":3,"lastInsertRowId":"7"}`
	for tagged, want := range map[bool]string{
		false: "z                    a    m       b        n     e\n9223372036854775807  1.5  \"a\\tb\"  x'00ff'  NULL  \n3 rows written, last rowid 7\n",
		true:  "z                            a         m            b             n     e\ninteger 9223372036854775807  real 1.5  text \"a\\tb\"  blob x'00ff'  NULL  text \"\"\n3 rows written, last rowid 7\n",
	} {
		r, err := readResult([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := r.show(&out, tagged, false); err != nil || out.String() != want {
			t.Errorf("tagged %t: %v\n%s\nwant\n%s", tagged, err, out.String(), want)
		}
	}
	for raw, want := range map[string]string{`{"rows":[],"rowsWritten":0}`: "no rows\n", `{"rows":[],"rowsWritten":2}`: "2 rows written\n"} {
		r, err := readResult([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := r.show(&out, false, strings.Contains(want, "written")); err != nil || out.String() != want {
			t.Errorf("%s: %q, %v", raw, out.String(), err)
		}
	}
	for _, raw := range []string{"", "[]", `{"rows":[1]}`, `{"rows":[{"a":1}]}`, `{"rows":["x"]}`} {
		if r, err := readResult([]byte(raw)); err == nil && len(r.rows) > 0 && len(r.rows[0]) > 0 {
			t.Errorf("%s: %+v", raw, r)
		}
	}
}

// What a terminal could make something else of is quoted.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{"abc": "abc", "a b": "a b", "": `""`, "a\nb": `"a\nb"`, "\x1b[1m": `"\x1b[1m"`, `a"b`: `"a\"b"`, "é": "é", "\u202e": `"\u202e"`} {
		if got := printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

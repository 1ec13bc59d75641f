package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"pgregory.net/rapid"

	"edged/sqlstore/codec"
)

// Our instr, replace, trim and unhex answer as SQLite's own, for every class of argument.
func TestFunctionsAgreeWithSQLite(t *testing.T) {
	c := open(t, Options{}, "")
	raw, err := sqlite3.Open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	theirs := &Conn{db: raw}
	alphabet := rapid.RuneFrom([]rune("aab0Fé😀 \x00"))
	arg := rapid.OneOf(rapid.Just(codec.Null()), rapid.Map(rapid.Int64Range(-20, 2000), codec.Integer), rapid.Just(codec.Real(1.5)),
		rapid.Map(rapid.StringOfN(alphabet, 0, 6, -1), codec.Text), rapid.Map(rapid.StringOfN(alphabet, 30, 80, -1), codec.Text),
		rapid.Map(rapid.StringOfN(alphabet, 0, 6, -1), func(s string) codec.Value { return codec.Blob([]byte(s)) }))
	run := func(c *Conn, sql string, args []codec.Value) string {
		out := ""
		err := c.scan(t.Context(), Host, sql, args, func(row []codec.Value) error {
			out = fmt.Sprint(row[0].Kind(), row[0])
			return nil
		})
		return fmt.Sprint(out, err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		fn := rapid.SampledFrom([]string{"instr(?1,?2)", "replace(?1,?2,?3)", "trim(?1,?2)", "ltrim(?1,?2)", "rtrim(?1,?2)", "unhex(?1,?2)", "trim(?1)", "unhex(?1)"}).Draw(rt, "function")
		args := rapid.SliceOfN(arg, 3, 3).Draw(rt, "arguments")
		if rapid.Bool().Draw(rt, "doubled") && args[0].Kind() == codec.KindText {
			args[0] = codec.Text(args[0].Bytes() + args[1].Bytes() + args[0].Bytes() + args[1].Bytes())
		}
		n := 2
		switch fn[:3] {
		case "rep":
			n = 3
		case "tri", "unh":
			if fn[len(fn)-4:] == "(?1)" {
				n = 1
			}
		}
		sql := "SELECT " + fn
		if got, want := run(c, sql, args[:n]), run(theirs, sql, args[:n]); got != want {
			rt.Fatalf("%s of %v: %s, SQLite says %s", fn, args[:n], got, want)
		}
	})
}

// A function on large arguments does not keep a statement from ending: each of these takes SQLite's own minutes.
func TestFunctionsAreLinear(t *testing.T) {
	c := open(t, Options{}, "")
	const big, half = "replace(hex(zeroblob(1900000)),'00','a')", "replace(hex(zeroblob(900000)),'00','a')"
	for _, sql := range []string{
		"SELECT instr(" + big + ", " + half + "||'b') AS x",
		"SELECT length(replace(" + big + ", " + half + "||'b','c')) AS x",
		"SELECT length(trim(" + big + ", replace(" + half + ",'a','b')||'a')) AS x",
		"SELECT length(unhex(replace(" + big + ",'a','x'), replace(" + half + ",'a','b')||'x')) AS x",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // noticed after the function, as nothing can be inside
		if _, err := c.Query(ctx, Read, codec.Statement{SQL: sql}, &codec.Meter{}); err != nil {
			t.Errorf("%.50s: %v", sql, err)
		}
		cancel()
	}
	if _, err := query(c, "SELECT replace("+half+", 'a', "+half+") AS x"); err == nil {
		t.Error("a result of 800 GB is not refused")
	}
}

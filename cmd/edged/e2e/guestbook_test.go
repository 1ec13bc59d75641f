package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// driveGuestbook signs the book and waits until the consumer has written the entry; all before it are still there. The
// schedule copies the book.
func driveGuestbook(t *testing.T, n *node, url string) {
	type entry struct{ Name, Text, At, Signature string }
	read := func() (book []entry) {
		t.Helper()
		if a := n.get(url + "/entries"); a.status != 200 || json.Unmarshal([]byte(a.body), &book) != nil {
			t.Fatalf("the book: %+v", a)
		}
		return book
	}
	before := read()
	text := fmt.Sprintf("entry %d", len(before)+1)
	a := n.do("POST", url+"/entries", strings.NewReader(`{"name":"Ada","text":"`+text+`"}`))
	if a.status != 202 || !strings.Contains(a.body, `"greeting":"Hello, Ada!"`) {
		t.Fatalf("sign: %+v", a)
	}
	var signed struct{ ID string }
	if err := json.Unmarshal([]byte(a.body), &signed); err != nil {
		t.Fatal(err)
	}
	n.waits(func() bool { return len(read()) == len(before)+1 }, "the entry is not written")
	after := read()
	if keys := n.edged("kv", "list", "guestbook-entries", "--prefix", "entry/"); !strings.Contains(keys, after[len(before)].At+" "+signed.ID) {
		t.Errorf("the entry of message %s is not among\n%s", signed.ID, keys)
	}
	if last := after[len(before)]; last.Name != "Ada" || last.Text != text || len(last.Signature) != 64 {
		t.Errorf("the entry is %+v", last)
	}
	for i, e := range before {
		if after[i] != e {
			t.Errorf("entry %d was %+v, is %+v", i, e, after[i])
		}
	}
	expect(t, "wrong", n.do("POST", url+"/entries", strings.NewReader(`{}`)), 422, `{"error":"an entry has a name and a text of at most 1000 characters"}`)
	expect(t, "title", n.get(url+"/"), 200, fmt.Sprintf("Guestbook: %d entries of 1 people\n", len(after)))
	n.prints(fmt.Sprintf("name  n\nAda   %d\n", len(after)), "sql", "guestbook-db", "-e", "select name, count(*) as n from signatures group by name")
	copyBook(t, n, url)
}

// copyBook fires the schedule, if this minute did not fire already, and waits for the copy.
func copyBook(t *testing.T, n *node, url string) {
	t.Helper()
	var schedules []struct{ Name, Worker, Cron, Ready string }
	if err := json.Unmarshal([]byte(n.edged("cron", "list", "--json")), &schedules); err != nil || len(schedules) != 1 || schedules[0].Cron != "0 3 * * *" || schedules[0].Ready != "yes" {
		t.Fatalf("schedules %+v, %v", schedules, err)
	}
	if out, code := n.try("cron", "trigger", schedules[0].Name); code != 0 && !strings.Contains(out, "on record already") && !strings.Contains(out, "is not over") {
		t.Errorf("trigger: exit %d, %s", code, out)
	}
	n.waits(func() bool { return strings.Contains(n.get(url+"/copies").body, ":00.000Z.json") }, "the book is not copied")
}

package sqlstore

import (
	"bufio"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"edged/internal/fault"
	"edged/sqlstore/codec"
	"edged/sqlstore/engine"
)

// The environment that TestSQLLogic reads.
const (
	sltDirEnv    = "SLT_DIR"    // a local copy of the corpus: the folder with test/select1.test, or that test folder
	sltSampleEnv = "SLT_SAMPLE" // every how many files of test/random are run, "" is 10
)

// TestSQLLogic runs SQLite's public sqllogictest corpus through the door: schema records as migration files, other statements
// through Execute, queries through Query. All of select1-5, index and evidence, and of random every SLT_SAMPLE-th file.
//
// A query whose columns have the same name or a name over the limit is refused by sql §6; it is run again with other names
// and counted as renamed. What another rule forbids is counted as excluded.
func TestSQLLogic(t *testing.T) {
	root := os.Getenv(sltDirEnv)
	if root == "" {
		t.Skipf("set %s to a local copy of the sqllogictest corpus", sltDirEnv)
	}
	if _, err := os.Stat(filepath.Join(root, "test")); err == nil {
		root = filepath.Join(root, "test")
	}
	files := sltFiles(t, root)
	s := openStore(t, Options{MaxTime: 2 * time.Minute, MaxOpen: 4})
	var mu sync.Mutex
	total := map[string]*sltCounts{}
	next := make(chan string)
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			n := 0
			for name := range next {
				n++
				run := &sltRun{t: t, s: s, uid: fmt.Sprintf("w%d-%d", w, n), name: name, labels: map[string]string{}}
				run.file(filepath.Join(root, name))
				group := strings.Join(strings.Split(name, string(filepath.Separator))[:min(2, strings.Count(name, string(filepath.Separator)))], "/")
				mu.Lock()
				if total[group] == nil {
					total[group] = &sltCounts{}
				}
				total[group].add(run.counts)
				mu.Unlock()
			}
		})
	}
	for _, f := range files {
		next <- f
	}
	close(next)
	wg.Wait()
	all := sltCounts{}
	for _, group := range slices.Sorted(maps(total)) {
		t.Logf("%-20s %v", group, total[group])
		all.add(*total[group])
	}
	t.Logf("%-20s %v", "all", &all)
}

func maps(m map[string]*sltCounts) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func sltFiles(t *testing.T, root string) (files []string) {
	every, random := 10, 0
	if n, err := strconv.Atoi(os.Getenv(sltSampleEnv)); err == nil && n > 0 {
		every = n
	}
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".test" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if strings.HasPrefix(name, "random") {
			if random++; random%every != 0 {
				return err
			}
		}
		files = append(files, name)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no files below %s: %v", root, err)
	}
	return files
}

type sltCounts struct{ files, schema, statements, queries, renamed, skipped, excluded, failed int }

func (c *sltCounts) add(d sltCounts) {
	c.files += d.files
	c.schema += d.schema
	c.statements += d.statements
	c.queries += d.queries
	c.renamed += d.renamed
	c.skipped += d.skipped
	c.excluded += d.excluded
	c.failed += d.failed
}

func (c *sltCounts) String() string {
	return fmt.Sprintf("files %d, passed: schema %d, statements %d, queries %d of them renamed %d; skipped for SQLite %d, excluded by rule %d, failed %d",
		c.files, c.schema, c.statements, c.queries, c.renamed, c.skipped, c.excluded, c.failed)
}

// An sltRun is one file of the corpus on a database of its own.
type sltRun struct {
	t         *testing.T
	s         *Store
	d         *Database
	uid, name string
	applied   []MigrationFile
	threshold int
	labels    map[string]string
	temporary []string // names of temporary tables and views
	counts    sltCounts
}

type sltRecord struct {
	line     int
	head     []string
	sql      string
	expected []string
	skip     bool
}

func (r *sltRun) file(path string) {
	f, err := os.Open(path)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer f.Close()
	r.d = r.s.newTestDatabase(r.t, r.uid, "")
	defer r.s.Delete(context.Background(), r.uid)
	r.counts.files = 1
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 4<<20)
	for line := 0; ; {
		rec, ok := nextRecord(scan, &line)
		if !ok {
			break
		}
		if rec.skip {
			r.counts.skipped++
			continue
		}
		switch rec.head[0] {
		case "halt":
			return
		case "hash-threshold":
			r.threshold, _ = strconv.Atoi(rec.head[1])
		case "statement":
			r.statement(rec)
		case "query":
			r.query(rec)
		default:
			r.fail(rec, "unknown record %v", rec.head)
		}
	}
	if err := scan.Err(); err != nil {
		r.t.Errorf("%s: %v", r.name, err)
	}
}

// nextRecord reads the lines up to the next empty one.
func nextRecord(scan *bufio.Scanner, line *int) (rec sltRecord, ok bool) {
	var sql []string
	results := false
	for scan.Scan() {
		*line++
		text := strings.TrimSuffix(scan.Text(), "\r")
		switch {
		case text == "" && rec.head == nil:
		case text == "":
			rec.sql = strings.Join(sql, "\n")
			return rec, true
		case strings.HasPrefix(text, "#") && !results:
		case rec.head == nil:
			head := strings.Fields(text)
			if head[0] == "skipif" || head[0] == "onlyif" {
				rec.skip = rec.skip || (strings.EqualFold(head[1], "sqlite") == (head[0] == "skipif"))
				continue
			}
			rec.head, rec.line = head, *line
		case text == "----" && !results:
			results = true
		case results:
			rec.expected = append(rec.expected, text)
		default:
			sql = append(sql, text)
		}
	}
	rec.sql = strings.Join(sql, "\n")
	return rec, rec.head != nil
}

func (r *sltRun) fail(rec sltRecord, format string, args ...any) {
	if r.counts.failed++; r.counts.failed <= 5 {
		r.t.Errorf("%s:%d: %s\n%.300s", r.name, rec.line, fmt.Sprintf(format, args...), rec.sql)
	}
}

func (r *sltRun) statement(rec sltRecord) {
	first, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(rec.sql)), " ")
	var err error
	schema := slices.Contains([]string{"CREATE", "DROP", "ALTER", "REINDEX", "ANALYZE"}, first)
	if schema {
		err = r.migrate(rec)
	} else {
		_, err = r.d.Execute(context.Background(), stmt(rec.sql))
		if strings.Contains(fault.Detail(err), "more than one statement") { // only a migration may hold several
			schema, err = true, r.migrate(rec)
		}
	}
	if strings.Contains(strings.ToUpper(rec.sql), "CREATE TEMP") {
		r.temporary = append(r.temporary, strings.Fields(rec.sql)[3])
	}
	if err != nil && slices.ContainsFunc(r.temporary, func(name string) bool { return strings.Contains(rec.sql, name) }) {
		r.counts.excluded++ // what a migration file makes temporary ends with the file
		return
	}
	if err != nil && ruled(err) {
		r.counts.excluded++
		return
	}
	if (err == nil) != (rec.head[1] == "ok") {
		r.fail(rec, "want %s, got %v", rec.head[1], err)
		return
	}
	if schema {
		r.counts.schema++
	} else {
		r.counts.statements++
	}
}

// migrate applies one schema record as a migration file. A ledger that has no more room is emptied first: files of the
// corpus have more schema records than a migration set has files.
func (r *sltRun) migrate(rec sltRecord) error {
	if len(r.applied) == MaxMigrationFiles {
		db, err := r.s.acquire(context.Background(), r.uid)
		if err != nil {
			return err
		}
		err = db.writer.Scan(context.Background(), engine.Host, "DELETE FROM "+engine.Ledger, nil, func([]codec.Value) error { return nil })
		r.s.release(db)
		if err != nil {
			return err
		}
		r.applied = nil
	}
	files := append(r.applied, file(fmt.Sprintf("%05d.sql", len(r.applied)), rec.sql))
	_, err := r.d.Apply(context.Background(), files)
	if err == nil {
		r.applied = files
	}
	return err
}

// ruled reports whether a rule of this project, not SQLite, refused a statement.
func ruled(err error) bool {
	detail := fault.Detail(err)
	for _, s := range []string{"not allowed here", "two columns have the name", "the name of column", "more than 10000 rows", "columns, at most", "bytes of JSON"} {
		if strings.Contains(detail, s) {
			return true
		}
	}
	return false
}

func (r *sltRun) query(rec sltRecord) {
	types := rec.head[1]
	result, err := r.d.Query(context.Background(), stmt(rec.sql))
	renamed := false
	if err != nil && (strings.Contains(fault.Detail(err), "two columns have") || strings.Contains(fault.Detail(err), "name of column")) {
		renamed = true
		result, err = r.d.Query(context.Background(), stmt("WITH renamed("+commas("c%d", len(types))+") AS ("+rec.sql+"\n) SELECT * FROM renamed"))
	}
	if err != nil && ruled(err) {
		r.counts.excluded++
		return
	}
	if err != nil && len(rec.expected) == 0 {
		r.counts.queries++ // the corpus writes an error while running as an empty result
		return
	}
	if err != nil {
		r.fail(rec, "%v", err)
		return
	}
	if len(result.Columns) != len(types) {
		r.fail(rec, "%d columns, want %d", len(result.Columns), len(types))
		return
	}
	got := sltValues(result, types, rec.head)
	sum := md5.New()
	for _, v := range got {
		sum.Write([]byte(v + "\n"))
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	if len(rec.head) > 3 {
		if old := r.labels[rec.head[3]]; old != "" && old != hash {
			r.fail(rec, "label %s had another result before", rec.head[3])
			return
		}
		r.labels[rec.head[3]] = hash
	}
	if r.threshold > 0 && len(got) > r.threshold || len(rec.expected) == 1 && strings.Contains(rec.expected[0], " values hashing to ") {
		got = []string{fmt.Sprintf("%d values hashing to %s", len(got), hash)}
	}
	if !slices.Equal(got, rec.expected) {
		r.fail(rec, "got %.200q, want %.200q", got, rec.expected)
		return
	}
	r.counts.queries++
	if renamed {
		r.counts.renamed++
	}
}

// sltValues renders a result as the corpus does, in the order the record asks for.
func sltValues(result codec.Result, types string, head []string) (out []string) {
	mode := "nosort"
	if len(head) > 2 {
		mode = head[2]
	}
	rows := make([][]string, len(result.Rows))
	for i, row := range result.Rows {
		for j, v := range row {
			rows[i] = append(rows[i], sltValue(v, types[j]))
		}
	}
	if mode == "rowsort" {
		sort.SliceStable(rows, func(a, b int) bool { return slices.Compare(rows[a], rows[b]) < 0 })
	}
	for _, row := range rows {
		out = append(out, row...)
	}
	if mode == "valuesort" {
		sort.Strings(out)
	}
	return out
}

func sltValue(v codec.Value, form byte) string {
	if v.Kind() == codec.KindNull {
		return "NULL"
	}
	number := float64(v.Int64()) + v.Float64()
	if v.Kind() == codec.KindText {
		number, _ = strconv.ParseFloat(strings.TrimSpace(v.Bytes()), 64)
	}
	switch form {
	case 'I':
		if v.Kind() == codec.KindInteger {
			return strconv.Itoa(int(int32(v.Int64())))
		}
		return strconv.Itoa(int(number))
	case 'R':
		if math.Abs(number) >= 1e16 { // SQLite's printf writes 16 digits, then zeros
			mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(number, 'e', 15, 64), "e+")
			zeros, _ := strconv.Atoi(exponent)
			return strings.Replace(mantissa, ".", "", 1) + strings.Repeat("0", zeros-15) + ".000"
		}
		return strconv.FormatFloat(number, 'f', 3, 64)
	}
	text := v.Bytes()
	switch v.Kind() {
	case codec.KindInteger:
		text = strconv.FormatInt(v.Int64(), 10)
	case codec.KindReal:
		text = strconv.FormatFloat(v.Float64(), 'g', 15, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
	}
	if text == "" {
		return "(empty)"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '@'
		}
		return r
	}, text)
}

package sourcemap

import (
	"strconv"
	"strings"
)

// Rewrite replaces the positions in the lines of stacks in text ("    at name (file:line:column)") by those that the maps
// give: find is asked for the map of a file, nil if it has none. Lines that are not understood stay as they are.
func Rewrite(text string, find func(file string) *Map) string {
	if !strings.Contains(text, "at ") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(rewriteLine(line, find))
	}
	return b.String()
}

func rewriteLine(line string, find func(string) *Map) string {
	body := strings.TrimRight(line, "\r\n")
	if !strings.HasPrefix(strings.TrimLeft(body, " \t"), "at ") {
		return line
	}
	end := len(body)
	if strings.HasSuffix(body, ")") {
		end--
	}
	head, column, ok1 := cutNumber(body[:end])
	head, row, ok2 := cutNumber(head)
	if !ok1 || !ok2 {
		return line
	}
	start := strings.LastIndexAny(head, "( ") + 1
	if open := strings.LastIndexByte(head, '('); open >= 0 && end < len(body) {
		start = open + 1 // a file's name may hold spaces
	}
	m := find(head[start:])
	if m == nil {
		return line
	}
	p, ok := m.Find(row, column)
	if !ok {
		return line
	}
	return head[:start] + p.Source + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column) + line[end:]
}

// cutNumber cuts ":123" off the end of s.
func cutNumber(s string) (head string, n int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0, false
	}
	n, err := strconv.Atoi(s[i+1:])
	return s[:i], n, err == nil && n > 0
}

package form

import (
	"bytes"
	"encoding/json"
	"io"
	"sort"

	"edged/control/jsonraw"
	"edged/control/rules"
)

const shapeRule = "spec"

// invalid refuses a spec at a place.
func invalid(pointer, format string, args ...any) *rules.Verdict {
	return rules.Refuse(rules.InvalidArgument, shapeRule, pointer, nil, format, args...)
}

// decode reads one JSON value and keeps numbers as they are written.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return tree, nil
}

// closed refuses the first member, in ascending order, that the field table does not know.
func closed(pointer string, obj map[string]any, fields []Field) *rules.Verdict {
	var unknown []string
next:
	for name := range obj {
		for i := range fields {
			if fields[i].Name == name {
				continue next
			}
		}
		unknown = append(unknown, name)
	}
	if len(unknown) == 0 {
		return nil
	}
	sort.Strings(unknown)
	p := pointer + "/" + escape(unknown[0])
	return invalid(p, "%s is not a member of this Form", p)
}

// exactly wants an object with exactly the members given.
func exactly(pointer string, val any, members ...string) (map[string]any, *rules.Verdict) {
	obj, ok := val.(map[string]any)
	if !ok {
		return nil, invalid(pointer, "%s must be an object", pointer)
	}
	fields := make([]Field, len(members))
	for i, m := range members {
		fields[i].Name = m
	}
	if v := closed(pointer, obj, fields); v != nil {
		return nil, v
	}
	for _, m := range members {
		if _, ok := obj[m]; !ok {
			return nil, invalid(pointer+"/"+m, "%s/%s is required", pointer, m)
		}
	}
	return obj, nil
}

func list(pointer string, val any, min, max int) ([]any, *rules.Verdict) {
	items, ok := val.([]any)
	if !ok {
		return nil, invalid(pointer, "%s must be an array", pointer)
	}
	if len(items) < min || len(items) > max {
		return nil, invalid(pointer, "%s has %d entries, allowed are %d to %d", pointer, len(items), min, max)
	}
	return items, nil
}

func text(pointer string, val any) (string, *rules.Verdict) {
	s, ok := val.(string)
	if !ok {
		return "", invalid(pointer, "%s must be a string", pointer)
	}
	return s, nil
}

func boolean(pointer string, val any) (bool, *rules.Verdict) {
	b, ok := val.(bool)
	if !ok {
		return false, invalid(pointer, "%s must be true or false", pointer)
	}
	return b, nil
}

// integer reads an integral number within bounds, however it is spelled (1, 1.0, 1e0).
func integer(pointer string, val any, min, max int) (int, *rules.Verdict) {
	n, ok := val.(json.Number)
	if !ok {
		return 0, invalid(pointer, "%s must be an integer", pointer)
	}
	i, ok := jsonraw.Integer([]byte(n))
	if !ok || i < int64(min) || i > int64(max) {
		return 0, invalid(pointer, "%s must be an integer from %d to %d", pointer, min, max)
	}
	return int(i), nil
}

// escape writes one step of a JSON pointer.
func escape(name string) string {
	var b []byte
	for i := 0; i < len(name) && i < 256; i++ {
		switch name[i] {
		case '~':
			b = append(b, "~0"...)
		case '/':
			b = append(b, "~1"...)
		default:
			b = append(b, name[i])
		}
	}
	return string(bytes.ToValidUTF8(b, nil))
}

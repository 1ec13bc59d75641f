package kv

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"edged/internal/fault"
)

const (
	maxMetaEntries   = 64
	maxMetaKeyBytes  = 256
	maxMetaValueRune = 8192
)

// CanonicalMetadata renders metadata as canonical JSON (RFC 8785) and checks the limits of kv §3. nil stays nil: no metadata,
// which is not the same as an empty map. A limit that is passed gives metadata_too_large, text that is not UTF-8 an Invalid.
func CanonicalMetadata(m map[string]string) ([]byte, error) {
	const op = "kv.CanonicalMetadata"
	if m == nil {
		return nil, nil
	}
	if len(m) > maxMetaEntries {
		return nil, ErrMetadataTooLarge.New(op, "metadata has over 64 entries")
	}
	for k, v := range m {
		switch {
		case !utf8.ValidString(k) || !utf8.ValidString(v):
			return nil, fault.New(fault.Invalid, op, "metadata is not UTF-8")
		case len(k) > maxMetaKeyBytes:
			return nil, ErrMetadataTooLarge.New(op, "a metadata key is over 256 bytes")
		case len(v) > 4*maxMetaValueRune || utf8.RuneCountInString(v) > maxMetaValueRune:
			return nil, ErrMetadataTooLarge.New(op, "a metadata value is over 8192 characters")
		}
	}
	out := []byte{'{'}
	for i, k := range slices.SortedFunc(maps.Keys(m), compareUTF16) {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendJSONString(out, k)
		out = append(out, ':')
		if out = appendJSONString(out, m[k]); len(out) >= MaxMetadataBytes {
			return nil, ErrMetadataTooLarge.New(op, "metadata is over 1024 bytes of canonical JSON")
		}
	}
	return append(out, '}'), nil
}

// ParseMetadata reads what CanonicalMetadata wrote; nil gives nil.
func ParseMetadata(b []byte) (map[string]string, error) {
	if b == nil {
		return nil, nil
	}
	var m map[string]string
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fault.Wrap(fault.Internal, "kv.ParseMetadata", err)
	}
	return m, nil
}

// compareUTF16 orders as RFC 8785 orders members: by UTF-16 code units.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func appendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, '"')
}

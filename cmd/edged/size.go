package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a count of bytes that is written like 100MiB, 64KiB, 2GiB or a plain number. It implements pflag.Value.
type byteSize int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// Set parses text.
func (b *byteSize) Set(text string) error {
	digits, unit := text, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			digits, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is not a size like 128MiB, 64KiB or 1024", text)
	}
	*b = byteSize(n * unit)
	return nil
}

// String renders the size with the largest unit that divides it.
func (b *byteSize) String() string {
	for _, u := range sizeUnits {
		if n := int64(*b); n != 0 && n%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type names the value in help texts.
func (b *byteSize) Type() string { return "size" }

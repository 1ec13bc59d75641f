package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// share is a flag for a part of a whole, more than 0 and at most 1: "1%" or "0.01".
type share float64

// String, Set and Type are pflag.Value's.
func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	n, err := strconv.ParseFloat(number, 64)
	if percent {
		n /= 100
	}
	if err != nil || !(n > 0 && n <= 1) {
		return fmt.Errorf("%q is no share like 1%% or 0.01, more than 0 and at most 100%%", text)
	}
	*s = share(n)
	return nil
}

func (s *share) Type() string { return "share" }

// shareVar adds a share to f; without the flag it is the whole.
func shareVar(f *pflag.FlagSet, p *float64, name, usage string) {
	*p = 1
	f.Var((*share)(p), name, usage)
}

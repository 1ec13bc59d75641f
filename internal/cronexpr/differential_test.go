package cronexpr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"edged/internal/testkit"
)

// randomTerm writes a term that the grammar allows.
func randomTerm(rng *rand.Rand, d domain) string {
	n := func() int { return d.min + rng.IntN(d.max-d.min+1) }
	low, high := n(), n()
	low, high = min(low, high), max(low, high)
	step := 1 + rng.IntN(d.span())
	switch rng.IntN(5) {
	case 0:
		return "*"
	case 1:
		return fmt.Sprintf("%0*d", 1+rng.IntN(2), n())
	case 2:
		return fmt.Sprintf("%d-%d", low, high)
	case 3:
		return fmt.Sprintf("*/%d", step)
	}
	return fmt.Sprintf("%d-%d/%d", low, high, step)
}

func randomField(rng *rand.Rand, d domain) string {
	terms := []string{randomTerm(rng, d)}
	for rng.IntN(4) == 0 && len(terms) < 3 {
		terms = append(terms, randomTerm(rng, d))
	}
	return strings.Join(terms, ",")
}

// spelled reports whether a day field holds its whole domain without a star: there D-28 goes by the value set, the other
// library by the spelling.
func spelled(field string, set uint64, d domain) bool {
	if set != d.full() {
		return false
	}
	for term := range strings.SplitSeq(field, ",") {
		if term == "*" || term == "*/1" {
			return false
		}
	}
	return true
}

// Random expressions of the grammar that both know: Next agrees with an independent implementation.
func TestAgreesWithAnotherImplementation(t *testing.T) {
	rng := testkit.Rand(t)
	compared := 0
	for compared < 200_000 {
		var fields [fieldCount]string
		for f, d := range domains {
			fields[f] = randomField(rng, d)
		}
		text := strings.Join(fields[:], " ")
		if len(text) > MaxLen {
			continue
		}
		e := parse(t, text)
		if spelled(fields[day], e.sets[day], domains[day]) || spelled(fields[weekday], e.sets[weekday], domains[weekday]) {
			continue
		}
		other, err := cron.ParseStandard(text)
		if err != nil {
			t.Fatalf("%q: the other library says %v", text, err)
		}
		compared++
		after := time.Unix(rng.Int64N(3_000_000_000), 0).UTC()
		got, ok := e.Next(after)
		want := other.Next(after) // the zero time when nothing follows within five years
		if want.IsZero() && ok && got.Sub(after) < 5*366*24*time.Hour || !want.IsZero() && !got.Equal(want) {
			t.Fatalf("%q after %v gives %v, the other library %v", text, after, got, want)
		}
	}
}

// What a step of the scheduler costs, for a common and for a rare expression, beside the other library.
func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"*/5 * * * *", "0 0 29 2 *"} {
		after := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		b.Run("expr="+text+"/impl=ours", func(b *testing.B) {
			e := parse(b, text)
			b.ReportAllocs()
			for b.Loop() {
				e.Next(after)
			}
		})
		b.Run("expr="+text+"/impl=robfig", func(b *testing.B) {
			e, err := cron.ParseStandard(text)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				e.Next(after)
			}
		})
	}
}

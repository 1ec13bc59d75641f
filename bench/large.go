package main

import "context"

const (
	largePairs   = 6   // comparisons of large puts that count
	largeRepeats = 6   // more of them at most
	steadySwing  = 2.0 // the fastest probe of a disk by its slowest, that are those of one disk
)

// largePair is one comparison of large puts with a file; BenchmarkPutLarge in objects says what is measured. All but ratio is MB/s.
type largePair struct{ ratio, ours, file, slowest, fastest float64 }

func (p largePair) steady() bool { return p.fastest <= steadySwing*p.slowest }

// pairsOf measures until largePairs comparisons met a disk that stayed as it was. The others are repeated, largeRepeats times together;
// what still met a disk that changed then counts as it is. Each is printed, also those that do not count. The side that begins takes turns.
func (r *report) pairsOf(measure func(first string) (largePair, error)) (counted []largePair, repeated int, err error) {
	for len(counted) < largePairs {
		first := []string{"file", "ours"}[len(counted)%2]
		p, err := measure(first)
		if err != nil {
			return nil, repeated, err
		}
		verdict := ""
		switch {
		case p.steady():
			counted = append(counted, p)
		case repeated < largeRepeats:
			repeated++
			verdict = "; the disk changed meanwhile: repeated"
		default:
			counted = append(counted, p)
			verdict = "; the disk changed meanwhile, but there were repeats enough: counted"
		}
		r.line("    %s first: %.0f MB/s, a file %.0f MB/s, ratio %.2f; the disk alone %.0f to %.0f MB/s%s", first, p.ours, p.file, p.ratio,
			p.slowest, p.fastest, verdict)
	}
	return counted, repeated, nil
}

// largePuts compares puts of 512 MiB with a file, each comparison in a process of its own.
func (r *report) largePuts(ctx context.Context, binary string) error {
	r.line("  puts of 512 MiB and a file in the order A, B, B, A, the disk at rest before each; the disk alone is probed with 64 MiB between them")
	all, repeated, err := r.pairsOf(func(first string) (largePair, error) {
		one := results{}
		name := "PutLarge/first=" + first
		err := one.run(ctx, binary, 1, "^BenchmarkPutLarge$/^first="+first+"$", "1x")
		return largePair{one.of(name, "ratio"), one.of(name, "ours-MB/s"), one.of(name, "file-MB/s"), one.of(name, "probe-low-MB/s"),
			one.of(name, "probe-high-MB/s")}, err
	})
	if err != nil {
		return err
	}
	var ratio, ours, file []float64
	for _, p := range all {
		ratio, ours, file = append(ratio, p.ratio), append(ours, p.ours), append(file, p.file)
	}
	r.line("  %-44s %8.0f MB/s, a file %.0f MB/s", "put 512MiB", spreadOf(ours).median, spreadOf(file).median)
	r.reach("put 512MiB / a file", spreadOf(ratio), 0.85, false, "")
	r.value("comparisons of 512 MiB that were repeated", once(float64(repeated)), "")
	return nil
}

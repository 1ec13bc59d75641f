package main

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// runAll runs the cases that cfg asks for and are not left out, cfg.parallel at a time.
func runAll(ctx context.Context, cfg *config, s suite, rules *list) (*report, error) {
	all, err := s.cases()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c testCase) bool { return !wanted(cfg.only, c.name) || !wanted(rules.scope, c.name) })
	if cfg.every > 1 {
		some := all[:0]
		for i := 0; i < len(all); i += cfg.every {
			some = append(some, all[i])
		}
		all = some
	}
	rep := &report{results: make([]result, len(all)), rules: rules, partial: cfg.every > 1}
	next := make(chan int) // indexes into all; closed by this function
	var workers sync.WaitGroup
	for range cfg.parallel {
		workers.Go(func() {
			for i := range next {
				rep.results[i] = s.run(ctx, all[i])
			}
		})
	}
	for i, c := range all {
		if c.skip != "" {
			rep.results[i] = result{Name: c.name, Status: skipped, Reason: c.skip}
			continue
		}
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	return rep, context.Cause(ctx)
}

func wanted(only []string, name string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

#!/usr/bin/env bash
# Runs every fuzz target of the tree for a while each: fuzz.sh 3s
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz # where go test -fuzz keeps what it has found
# A package is built once for all of its targets, and one without targets not at all.
go list -f '{{.ImportPath}} {{.Dir}}' ./... | while read -r pkg dir; do
  targets=$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go 2>/dev/null || true)
  [ -n "$targets" ] || continue
  go test -c -fuzz=Fuzz -ldflags "-s -w" -o "$work/fuzz.test" "$pkg"
  for target in $targets; do
    echo "fuzz $pkg $target"
    if (cd "$dir" && "$work/fuzz.test" -test.paniconexit0 -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$1" -test.fuzzcachedir "$cache/$pkg") \
      >"$work/out" 2>&1 </dev/null; then
      # A target that the build leaves out would pass without having run.
      grep -q '^fuzz: elapsed' "$work/out" && continue
    # The fuzzing engine now and then reports the end of its own time as a failure of the target. A real one leaves its input.
    elif grep -q 'context deadline exceeded' "$work/out" && ! grep -q 'Failing input written' "$work/out"; then
      continue
    fi
    cat "$work/out"
    exit 1
  done
done

// Package prelude holds the JavaScript half of the runtime: the web classes, timers and events that the engine lacks,
// and the functions by which the host enters an invocation.
//
//	00-core.js       captured built-ins, pending host operations
//	20…78-*.js       events, streams, web classes; each file one matter
//	80-timers.js     setTimeout and its kin
//	85-global.js     the global object: errors and rejections that belong to nobody, navigator, performance
//	85-bindings.js … 89-fetch.js  the objects in env, and what a worker sends
//	90-dispatch.js   the host's entries
//	prelude.go       all of it as one script
//
// Invariants: the files share one function scope and run in the order of their names, once per version and before the
// user's modules; what they leave is part of the version's snapshot. Nothing internal hangs on a user-visible object by
// a string key.
//
// Not here: the host functions that the files call (packages sandbox and sandbox/hostapi).
package prelude

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"sync"
)

//go:embed *.js
var files embed.FS

// The one parameter is the object with the host functions; the result is the list of the host's entries.
const (
	head = "(function (host) { 'use strict';\n"
	tail = "})"
)

var load = sync.OnceValues(func() (string, string) {
	names, err := fs.Glob(files, "*.js") // sorted
	if err != nil {
		panic(err) // the pattern is constant
	}
	src := []byte(head)
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the file is embedded
		}
		src = append(append(src, b...), '\n')
	}
	src = append(src, tail...)
	sum := sha256.Sum256(src)
	return string(src), hex.EncodeToString(sum[:])
})

// Source returns the script: an expression whose value is a function of the host object.
func Source() string {
	src, _ := load()
	return src
}

// Digest names the script in hexadecimal: images made with another one are not usable.
func Digest() string {
	_, digest := load()
	return digest
}

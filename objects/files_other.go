//go:build !linux

package objects

import "github.com/cockroachdb/pebble/v2/vfs"

// openFiles returns the door to the real files below root.
func openFiles(root string) (files, error) { return openNamedFiles(vfs.Default, root) }

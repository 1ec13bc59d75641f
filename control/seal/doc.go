// Package seal keeps secrets unreadable wherever they are stored: AES-256-GCM under keys of one file, and marks by which
// values are compared without being kept.
//
//	ring.go      Ring: the key file, its keys, rotation
//	box.go       Box: one sealed value, Seal and Open
//	marker.go    Marker: keyed digests of values
//
// Invariants: a key is in the key file (mode 0600) and in memory, nowhere else. A Box opens only under the context that it
// was sealed for, so that one value cannot be put in the place of another. Nothing here logs, and no error holds a value.
//
// Not here: which values there are, and where boxes and marks are stored (package state).
package seal

package kv

import "edged/kv/replica"

// PeerOptions say how this store reaches and knows the other members.
type PeerOptions struct{}

func (o *PeerOptions) fill(node string) error { return nil }

func (s *Store) caughtUpMs(now int64) int64 { return now }

var _ = replica.MaxSkew

package kv

// PeerOptions say how this store reaches and knows the other members.
type PeerOptions struct{}

func (o *PeerOptions) fill(node string) error { return nil }

// kick wakes what waits for a change of the members.
func (s *Store) kick() {}

package replica

// Feeder is the serving half of a session. It turns what the store holds into units; the caller hands it only what is
// durable, in order of LSeq. Not safe for concurrent use.
type Feeder struct {
	client Origin
	knows  Vector // what the client has, or will have once it has read what was sent
	pos    uint64 // where the last unit ended
	count  uint32
	bytes  int
}

// NewFeeder starts a session for a client that has read this feed up to from and has the vector knows.
func NewFeeder(client Origin, from uint64, knows Vector) *Feeder {
	return &Feeder{client: client, pos: from, knows: knows.Clone()}
}

// Pos returns where the last unit ended.
func (f *Feeder) Pos() uint64 { return f.pos }

// Wants reports whether the client needs a record: not what it wrote itself, nor what its vector covers.
func (f *Feeder) Wants(v Version) bool {
	return v.Origin != f.client && !f.knows.Covers(v.Origin, v.Seq)
}

// Sent counts one record frame of n bytes and reports whether the unit is full and must be ended with Pause.
func (f *Feeder) Sent(n int) (full bool) {
	f.count++
	f.bytes += n
	return f.count >= MaxChunkRecords/2 || f.bytes >= MaxChunkBytes/2
}

// Pause ends the unit at lseq.
func (f *Feeder) Pause(lseq uint64) Mark {
	m := Mark{Prev: f.pos, Next: lseq, Count: f.count}
	f.pos, f.count, f.bytes = lseq, 0, 0
	return m
}

// End ends the unit at the end of the feed; vector is the server's, from the instant at which end was the end. The client
// has all of it once it has read this far, so it need not be sent again.
func (f *Feeder) End(end uint64, vector Vector) Mark {
	m := f.Pause(end)
	m.Live, m.Vector = true, vector
	f.knows.Merge(vector)
	return m
}

// Package peer is a member's door to the other members of its fleet: one listener and one way to call, both with mutual TLS
// by certificates of the fleet's own authority.
//
//	options.go   Options, Open: what a member needs to know
//	files.go     DATA/fleet: the root, the leaf with its key, what a join under way keeps
//	join.go      Join: an invite becomes a certificate
//	serve.go     Run: accepts, shakes hands, hands connections on by protocol, ends them
//	mux.go       Handle, Caller, and the calls about membership
//	conns.go     every open connection, and how those of a removed member are cut
//	removed.go   how a member that was removed is told so, and what it then does
//	dial.go      Client, DialRaft: calls to a member by its ID
//	anyone.go    ClientAt: a call to whoever answers at an address
//	raft.go      RaftListener: raft's streams
//	renew.go     a new leaf before the old one ends
//
// Invariants: nothing but PathJoin is answered to who shows no certificate of a member, and to who was removed nothing but that. Allowed is asked in every handshake, at
// every request and for every stream, on both sides. A caller knows whom it calls: the server's certificate must be that of
// the very member that was meant. Bytes of a peer are bounded before they are kept: handshakes in number and time, headers in
// size, connections without certificate in number and life. TLS 1.3 alone, no session tickets: who is removed cannot resume.
//
// Not here: who is a member and who may join (control), and what is served below which path (node).
package peer

// Package fleetwire is what members of a fleet, and a node that wants to become one, say to each other about membership:
// plain types, and how they are read with bounds.
//
//	join.go     JoinRequest, JoinAnswer, RenewRequest, RenewAnswer and their paths
//	invite.go   Invite: the text that an operator carries from the fleet to a new node (fuzzed)
//	json.go     one JSON document of a request or an answer, bounded; errors as a document
//
// Invariants: nothing is allocated by a length that a peer claims. A secret is in no error, and Invite prints without its own.
//
// Not here: who answers (control), and over which connections (node/peer).
package fleetwire

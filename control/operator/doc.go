// Package operator is the operators' door: everything below /operator/v1/{room}/ on the control listener (node-surface §4).
//
//	door.go     Door: rooms, routes, matching, serving
//	room.go     Room, Route, Caller, Target: what a room declares and what it is told
//	call.go     Call: one request, and how it is answered
//	bytes.go    Bytes: bytes inside JSON documents
//	problem.go  errors as Problem documents
//
// How a room adds a call: package node makes an operator.Room with the room's name and its routes and puts it into
// control.Options.Rooms. A route names its method, its path below the room ("databases/{uid}/dump"), the query parameters
// that it takes, which body, whether it changes anything, and the function that serves it. Authentication, the role
// operator, the tenant of {uid}, unknown parameters, body limits, audit and errors are the door's, so that a route only does
// its work: it reads Call.Value, Call.Query, Call.Decode or Call.Body, and answers with Call.JSON or Call.Stream. A route
// that fails returns an error with a fault.Code, before it has answered anything; after that the connection is cut, so that
// a stream that is not whole never looks whole.
//
// Invariants: only the role operator comes in. What lies outside the caller's tenant looks as if it did not exist; whoever
// works on the whole node (the operators of the home tenant for every Space) sees every tenant. Every route that changes
// something leaves an audit record.
//
// Not here: who the caller is (package api), and what the calls do.
package operator

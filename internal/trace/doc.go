// Package trace follows a piece of work through the node and beyond: W3C trace context in and out, spans in the forms of
// OpenTelemetry, sent by OTLP over HTTP.
//
//	context.go   Context: the fields traceparent and tracestate (fuzzed)
//	tracer.go    Tracer: Options, New; which requests are recorded
//	span.go      Span: one step of the work, and what is known of it
//	carry.go     spans in a context.Context, in a packed header and in net/http's
//	export.go    Run: the queue of ended spans, batches, retries, the flush at the end
//	otlp.go      a batch as OTLP's JSON
//	settings.go  the endpoint's URL and the file of headers
//	metrics.go   Metrics
//
// Invariants: a nil *Tracer and a nil *Span are valid and do nothing, so that a node without an endpoint pays for one
// comparison. What is not sampled is a Span too, of 64 bytes, which carries its trace on and records nothing. Memory is
// bounded: attributes of a span, spans of one piece of work, spans that wait to be sent. Nothing waits for the
// collector: what does not fit is dropped and counted.
//
// The encoding is JSON, which OTLP specifies beside protobuf, and every receiver of OTLP over HTTP reads: it is a page of
// code here. The libraries that write protobuf would bring gRPC and some ten modules into a program that sends one
// kind of message.
//
// Not here: what is worth a span. The rooms begin them where the work is done.
package trace

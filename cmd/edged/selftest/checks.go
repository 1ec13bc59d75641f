package selftest

import "context"

// check is one rule, or a few that go together.
type check struct {
	name    string // stable; subject.what
	section string // of the contract
	run     func(context.Context, *run) error
}

// deployed is the check that all others but those of the control plane need.
const deployed = "deploy"

// checks are all, in the order in which they run: what takes most of the node comes last.
var checks = []check{
	{deployed, "node-surface §6", func(ctx context.Context, r *run) error { return r.deploy(ctx) }},
	{"routing.host", "node-surface §7", routingHost},
	{"routing.weights", "worker-deployment §3", routingWeights},
	{"isolation.requests", "module-worker §7", isolationRequests},
	{"isolation.workers", "module-worker §7", isolationWorkers},
	{"env.exact", "module-worker §4", envExact},
	{"errors.host", "module-worker §3.1", errorsHost},
	{"headers.trusted", "node-surface §7", headersTrusted},
	{"stream.duplex", "module-worker §3.1", streamDuplex},
	{"stream.cut", "module-worker §3.1", streamCut},
	{"stream.download", "module-worker §3.1", streamDownload},
	{"stream.upload", "module-worker §3.1", streamUpload},
	{"smuggling.refused", "node-surface §7", smugglingRefused},
	{"smuggling.leftover", "node-surface §7", smugglingLeftover},
	{"kv", "kv §3", keyValues},
	{"sql", "sql §3", sqlValues},
	{"objects", "objects §5", objects},
	{"queue", "queue §4", queueRoundTrip},
	{"cron", "attachments §4", cronRules},
	{"service", "service-binding §2", serviceCall},
	{"assets", "static-assets §1", assets},
	{"limit.body", "module-worker §6", limitBody},
	{"limit.head", "module-worker §6", limitHead},
	{"limit.memory", "module-worker §6", limitMemory},
	{"limit.cpu", "module-worker §6", limitCPU},
}

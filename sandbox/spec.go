package sandbox

import (
	"edged/sandbox/binding"
	"edged/sandbox/modgraph"
)

// Module is one file of a bundle. Bytes must stay unchanged while a Version or Inspect uses it.
type Module = modgraph.Module

// Graph is a bundle: its modules in manifest order and the path of the main one.
type Graph struct {
	Entrypoint string
	Modules    []Module
}

// Spec is what a version is made of. The sandbox keeps it and the bytes it refers to.
type Spec struct {
	UID      string // of the WorkerVersion; images are never shared between UIDs, since a snapshot may hold random values
	Tenant   string
	Worker   string // its worker, in logs and as a metric's label: never anything a request says
	Graph    Graph
	Handlers []string // declared: of fetch, scheduled, queue
	Vars     []byte   // the JSON object of plain variables, nil for none; checked by control
	// Secrets are the sensitive variables. They are in no image; the sandbox keeps them in memory.
	Secrets  map[string]string
	Bindings []binding.Binding // what else is in env
	// SourceDigest names the graph's bytes, so that they need not be hashed at every start; "" hashes them.
	SourceDigest string
}

package form

import "edged/control/rules"

// moduleWorker is ModuleWorker 0.3.0: an identity with an empty spec (module-worker §1).
func moduleWorker() *Driver {
	return &Driver{
		URL: ModuleWorkerURL, Kind: "ModuleWorker", Role: rules.Worker,
		Outside: inside,
		Observe: observeWorker,
	}
}

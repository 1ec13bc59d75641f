package form

import (
	"strconv"

	"edged/control/rules"
)

// workerDeployment is WorkerDeployment 0.6.0.
func workerDeployment() *Driver {
	return &Driver{
		URL: WorkerDeploymentURL, Kind: "WorkerDeployment", Role: rules.Deployment,
		Fields: []Field{
			reference("worker", UseOwner, []string{ModuleWorkerURL}, func(s *Spec, uid string) { s.Worker = uid }),
			{Name: "versions", Required: true, Read: readWeights},
		},
		Frozen:  frozenField("worker"),
		Pure:    func(s *Spec) *rules.Verdict { return rules.Distribution(s.Weights) },
		Outside: func(a Action) bool { return a == Delete }, // contexts must have ended before it succeeds
		Observe: observeDeployment,
	}
}

func readWeights(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	items, v := list(pointer, val, 1, 8)
	if v != nil {
		return nil, v
	}
	set := make(map[string]any, len(items))
	for i, item := range items {
		at := pointer + "/" + strconv.Itoa(i)
		obj, v := exactly(at, item, "workerVersion", "weight")
		if v != nil {
			return nil, v
		}
		uid, v := readRef(s, at+"/workerVersion", obj["workerVersion"], Ref{Accept: []string{WorkerVersionURL}, Use: UseWeight})
		if v != nil {
			return nil, v
		}
		weight, v := integer(at+"/weight", obj["weight"], 1, rules.FullWeight)
		if v != nil {
			return nil, v
		}
		s.Weights = append(s.Weights, rules.Weight{Version: uid, Weight: weight})
		set[uid] = weight // a repeated UID is refused by WA-2.1 before anything is compared
	}
	return set, nil
}

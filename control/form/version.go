package form

import (
	"encoding/json"
	"sort"
	"strconv"

	"edged/control/rules"
)

// Handlers are the handlers a version may declare, in the order in which they are listed.
var Handlers = [...]string{"fetch", "scheduled", "queue"}

// workerVersion is WorkerVersion 0.7.0.
func workerVersion() *Driver {
	return &Driver{
		URL: WorkerVersionURL, Kind: "WorkerVersion", Role: rules.Version, Private: true,
		Fields: []Field{
			reference("worker", UseOwner, []string{ModuleWorkerURL}, func(s *Spec, uid string) { s.Worker = uid }),
			optional(reference("bundle", UseBundle, []string{WorkerBundleURL}, func(s *Spec, uid string) { s.Bundle = uid })),
			{Name: "handlers", Required: true, Read: readHandlers},
			{Name: "vars", Default: map[string]any{}, Read: readVarsField},
			{Name: "requiredSensitiveVars", Default: []any{}, Read: readSensitive},
			bindings("kvBindings", StoreKV, UseData, KVNamespaceURL),
			bindings("sqliteBindings", StoreSQL, UseData, SQLiteDatabaseURL),
			bindings("bucketBindings", StoreObjects, UseData, ObjectBucket2URL, ObjectBucket3URL),
			bindings("queueProducerBindings", StoreQueue, UseData, QueueURL),
			bindings("serviceBindings", "service", UseService, ModuleWorkerURL),
			bindings("actorBindings", "actor", UseData, actorURL),
			bindings("workflowBindings", "workflow", UseData, workflowURL),
			bindings("containerBindings", "container", UseData, containURL),
			{Name: "assets", Read: readAssets},
		},
		Check:   checkVersion,
		Frozen:  frozenAll,
		Outside: inside,
		Observe: observeVersion,
	}
}

func readHandlers(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	items, v := list(pointer, val, 0, len(Handlers))
	if v != nil {
		return nil, v
	}
	declared := map[string]bool{}
	for i, item := range items {
		at := pointer + "/" + strconv.Itoa(i)
		name, v := text(at, item)
		if v != nil {
			return nil, v
		}
		if name != "fetch" && name != "scheduled" && name != "queue" {
			return nil, invalid(at, "%s must be fetch, scheduled or queue", at)
		}
		if declared[name] {
			return nil, invalid(at, "%s repeats %s", at, name)
		}
		declared[name] = true
	}
	for _, h := range Handlers {
		if declared[h] {
			s.Handlers = append(s.Handlers, h)
		}
	}
	return s.Handlers, nil
}

func readVarsField(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	norm, v := readVars(s, pointer, val)
	if v == nil && len(norm.(map[string]any)) > 0 {
		s.Vars = marshal(norm)
	}
	return norm, v
}

func readSensitive(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	items, v := list(pointer, val, 0, maxList)
	if v != nil {
		return nil, v
	}
	names := make([]string, 0, len(items)) // a repeated one is refused by rule 6, which names both places
	for i, item := range items {
		at := pointer + "/" + strconv.Itoa(i)
		name, v := text(at, item)
		if v != nil {
			return nil, v
		}
		if !isSensitiveName(name) {
			return nil, invalid(at, "%s must match [A-Z][A-Z0-9_]{0,63}", at)
		}
		names = append(names, name)
		s.Names = append(s.Names, rules.EnvName{Name: name, Pointer: at})
	}
	sort.Strings(names)
	s.Sensitive = names
	return names, nil
}

func readAssets(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	obj, v := exactly(pointer, val, "bundle", "runWorkerFirst", "notFoundHandling")
	if v != nil {
		return nil, v
	}
	uid, v := readRef(s, pointer+"/bundle", obj["bundle"], Ref{Accept: []string{StaticAssetBundleURL}, Use: UseAssets})
	if v != nil {
		return nil, v
	}
	first, v := boolean(pointer+"/runWorkerFirst", obj["runWorkerFirst"])
	if v != nil {
		return nil, v
	}
	handling, v := text(pointer+"/notFoundHandling", obj["notFoundHandling"])
	if v != nil {
		return nil, v
	}
	if handling != "none" && handling != "single_page_application" {
		return nil, invalid(pointer+"/notFoundHandling", "%s/notFoundHandling must be none or single_page_application", pointer)
	}
	s.Assets, s.RunWorkerFirst, s.SPA = uid, first, handling == "single_page_application"
	return obj, nil
}

// checkVersion judges which shapes are legal (worker-version §3), then rule 6.
func checkVersion(s *Spec) *rules.Verdict {
	const rule = "worker-version §3"
	refuse := func(pointer, format string, args ...any) *rules.Verdict {
		return rules.Refuse(rules.InvalidArgument, rule, pointer, nil, format, args...)
	}
	switch {
	case s.Bundle == "" && len(s.Handlers) > 0:
		return refuse("/handlers", "/handlers need /bundle")
	case s.Bundle == "" && s.Assets == "":
		return refuse("/bundle", "a version needs /bundle or /assets")
	case s.Assets != "" && s.RunWorkerFirst && !declares(s, "fetch"):
		return refuse("/assets/runWorkerFirst", "/assets/runWorkerFirst needs fetch in /handlers")
	case s.Bundle == "" && len(s.Names) > 0:
		return refuse(s.Names[0].Pointer, "a static-only version has no env, but %s declares %s", s.Names[0].Pointer, s.Names[0].Name)
	}
	return rules.Environment(s.Names)
}

func declares(s *Spec, handler string) bool {
	for _, h := range s.Handlers {
		if h == handler {
			return true
		}
	}
	return false
}

// CheckVersionAssets refuses a fallback document that the verified asset bundle does not have.
func CheckVersionAssets(s *Spec, assets *Index) *rules.Verdict {
	if s.SPA && assets != nil && !assets.Has("index.html") {
		return rules.Refuse(rules.InvalidArgument, "worker-version §3", "/assets/notFoundHandling", []string{s.Assets},
			"single_page_application needs index.html in the root of %s", s.Assets)
	}
	return nil
}

// CheckExports compares the handlers that a version declares with those that its main module exports; both are in the
// order of Handlers.
func CheckExports(s *Spec, exported []string) *rules.Verdict {
	for _, h := range s.Handlers {
		if !has(exported, h) {
			return rules.Refuse(rules.InvalidArgument, "D-20", "/handlers", []string{s.Bundle},
				"handler_not_exported: handler %s is declared, but the default export of %s has no such function", h, s.Bundle)
		}
	}
	for _, h := range exported {
		if !declares(s, h) {
			return rules.Refuse(rules.InvalidArgument, "D-20", "/handlers", []string{s.Bundle},
				"handler %s is exported by %s, but not declared", h, s.Bundle)
		}
	}
	return nil
}

func has(list []string, want string) bool {
	for _, s := range list {
		if s == want {
			return true
		}
	}
	return false
}

// marshal renders a value that cannot fail to render: strings, numbers as written, booleans and containers of them.
func marshal(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("form: " + err.Error())
	}
	return raw
}

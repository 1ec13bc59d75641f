package form

import "edged/control/rules"

// workerEndpoint is WorkerEndpoint 0.3.0 (attachments §2).
func workerEndpoint() *Driver {
	return &Driver{
		URL: WorkerEndpointURL, Kind: "WorkerEndpoint", Role: rules.Attachment, Need: rules.NeedHTTP, Gate: "WA-3.2",
		Assigns: true,
		Fields:  []Field{reference("worker", UseOwner, []string{ModuleWorkerURL}, func(s *Spec, uid string) { s.Worker = uid })},
		Frozen:  frozenAll,
		Outside: inside,
		Claims: func(s *Spec) []rules.Claim {
			return []rules.Claim{{Class: rules.ClaimEndpoint, Value: s.Worker}}
		},
		Observe: observeEndpoint,
		Output:  func(_ *Spec, address string) any { return route(address) },
	}
}

// customDomain is WorkerCustomDomain 0.3.0 (attachments §3).
func customDomain() *Driver {
	return &Driver{
		URL: CustomDomainURL, Kind: "WorkerCustomDomain", Role: rules.Attachment, Need: rules.NeedHTTP, Gate: "WA-3.1",
		Proof: true,
		Fields: []Field{
			{Name: "hostname", Required: true, Read: readHostname},
			reference("worker", UseOwner, []string{ModuleWorkerURL}, func(s *Spec, uid string) { s.Worker = uid }),
		},
		Check:   echoHostname,
		Frozen:  frozenAll,
		Outside: inside,
		Claims: func(s *Spec) []rules.Claim {
			return []rules.Claim{{Class: rules.ClaimHostname, Value: s.Hostname}}
		},
		Observe: observeDomain,
		Output:  func(s *Spec, _ string) any { return route(s.Hostname) },
	}
}

func readHostname(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	name, v := text(pointer, val)
	if v != nil {
		return nil, v
	}
	host, reason := CanonicalHost(name)
	if reason != "" {
		return nil, rules.Refuse(rules.InvalidArgument, "CL-2", pointer, nil, "%s %s", pointer, reason)
	}
	s.Hostname = host
	return host, nil
}

// echoHostname makes the spec show the canonical name (D-40); it never refuses.
func echoHostname(s *Spec) *rules.Verdict {
	s.Echo = marshal(struct {
		Hostname string  `json:"hostname"`
		Worker   refJSON `json:"worker"`
	}{s.Hostname, refJSON{s.Worker}})
	return nil
}

type refJSON struct {
	UID string `json:"resourceUid"`
}

type routeJSON struct {
	Hostname string `json:"hostname"`
	URL      string `json:"url"`
}

func route(host string) routeJSON { return routeJSON{host, "https://" + host + "/"} }

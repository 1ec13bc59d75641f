package form

import "edged/control/rules"

// workerBundle is WorkerBundle 0.2.0.
func workerBundle() *Driver { return artifact(WorkerBundleURL, "WorkerBundle") }

// staticAssets is StaticAssetBundle 0.2.0.
func staticAssets() *Driver { return artifact(StaticAssetBundleURL, "StaticAssetBundle") }

// migrationSet is SQLiteMigrationSet 0.2.0 (sql §7): its files are kept, not parsed and not run.
func migrationSet() *Driver { return artifact(SQLiteMigrationsURL, "SQLiteMigrationSet") }

// artifact makes the driver of a verified file set (worker-bundle §§1, 4, 5): bytes are obtained and given up by the
// runner, nothing of the spec may ever change.
func artifact(url, kind string) *Driver {
	return &Driver{
		URL: url, Kind: kind, Role: rules.Artifact, ArtifactKind: kind,
		Fields:  []Field{{Name: "artifact", Required: true, Read: readArtifact}},
		Frozen:  frozenAll,
		Outside: func(Action) bool { return true },
		Observe: observeArtifact,
	}
}

func readArtifact(s *Spec, pointer string, val any) (any, *rules.Verdict) {
	obj, v := exactly(pointer, val, "url", "sha256")
	if v != nil {
		return nil, v
	}
	url, v := text(pointer+"/url", obj["url"])
	if v != nil {
		return nil, v
	}
	if !isArtifactURL(url) {
		return nil, invalid(pointer+"/url", "%s/url must be an absolute ASCII https URL without userinfo, query and fragment, of at most 8192 characters", pointer)
	}
	sum, v := text(pointer+"/sha256", obj["sha256"])
	if v != nil {
		return nil, v
	}
	if !isHex256(sum) {
		return nil, invalid(pointer+"/sha256", "%s/sha256 must be 64 lower-case hexadecimal digits", pointer)
	}
	s.Artifact = Artifact{URL: url, SHA256: sum}
	return obj, nil
}

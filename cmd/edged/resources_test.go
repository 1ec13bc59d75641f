package main

import (
	"testing"

	"edged/control/form"
)

// A short name stands for one Form; where two Forms have one kind, the name says which.
func TestFormURL(t *testing.T) {
	for name, want := range map[string]string{
		"WorkerCronTrigger": form.CronTriggerURL, "ObjectBucket/0.2.0": form.ObjectBucket2URL, "ObjectBucket/0.3.0": form.ObjectBucket3URL,
		"ObjectBucket": "", "Nothing": "", "https://x.test/": "https://x.test/", "": "",
	} {
		got, err := formURL(name)
		if got != want || (err != nil) != (want == "" && name != "") {
			t.Errorf("%q: %q %v, want %q", name, got, err, want)
		}
	}
}

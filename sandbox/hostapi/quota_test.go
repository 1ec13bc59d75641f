package hostapi

import "testing"

// WebIDL: what a QuotaExceededError says beside its name.
func TestQuotaExceededError(t *testing.T) {
	scripts(t, []struct{ script, want string }{
		{`const e = new QuotaExceededError('m', { quota: 1, requested: 2 }); return [e.name, e.message, e.code, e.quota, e.requested, e instanceof DOMException, String(e)].join()`,
			"QuotaExceededError,m,22,1,2,true,QuotaExceededError: m"},
		{`const e = new QuotaExceededError(); return [e.quota, e.requested].join('|')`, "|"},
		{`new QuotaExceededError('', { quota: -1 })`, "throws RangeError: QuotaExceededError: quota is negative"},
		{`new QuotaExceededError('', { quota: 2, requested: 1 })`, "throws RangeError: QuotaExceededError: less was requested than there is"},
		{`crypto.getRandomValues(new Uint8Array(65537))`, "throws QuotaExceededError: 65537 random bytes were asked for; the most is 65536"},
	})
}

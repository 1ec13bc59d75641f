package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"edged/control/rfc9457"
	"edged/control/rules"
	"edged/internal/fault"
)

// problem is one refusal on its way to the wire.
type problem struct {
	status int
	code   string
	detail string
	allow  string // of a 405
	retry  int    // seconds, 0 for none

	operation string // id of an accepted Operation that the caller may read
}

// wire maps the seeds' codes to the API's (README §4).
var wire = map[rules.Seed]struct {
	status int
	code   string
}{
	rules.InvalidArgument:       {http.StatusUnprocessableEntity, "invalid_spec"},
	rules.UnsupportedCapability: {http.StatusUnprocessableEntity, "capability_required"},
	rules.DependencyInUse:       {http.StatusConflict, "dependency_conflict"},
	rules.ResourceNotFound:      {http.StatusNotFound, "not_found"},
	rules.ResourceBusy:          {http.StatusConflict, "resource_busy"},
	rules.PermissionDenied:      {http.StatusForbidden, "forbidden"},
	rules.Malformed:             {http.StatusBadRequest, "invalid_request"},
	rules.FormUnknown:           {http.StatusUnprocessableEntity, "unsupported_form"},
	rules.NameConflict:          {http.StatusConflict, "name_conflict"},
	rules.GenerationConflict:    {http.StatusConflict, "generation_conflict"},
	rules.IdempotencyConflict:   {http.StatusConflict, "idempotency_conflict"},
	rules.Gone:                  {http.StatusGone, "gone"},
	rules.ArtifactInvalid:       {http.StatusUnprocessableEntity, "artifact_invalid"}, // only ever inside an Operation
	rules.MigrationHistory:      {http.StatusConflict, "migration_history_conflict"},  // as are these four
	rules.MigrationSQL:          {http.StatusUnprocessableEntity, "migration_sql_error"},
	rules.DatabaseBusy:          {http.StatusServiceUnavailable, "database_busy"},
	rules.BackendUnavailable:    {http.StatusServiceUnavailable, "backend_unavailable"},
	rules.InputsConflict:        {http.StatusConflict, "private_inputs_conflict"},
	rules.InputsUnverifiable:    {http.StatusConflict, "private_inputs_unverifiable"},
	rules.OperationTerminal:     {http.StatusConflict, "operation_terminal"},
}

// wireCode returns the code under which a seed's code is served.
func wireCode(seed rules.Seed) string {
	if row, ok := wire[seed]; ok {
		return row.code
	}
	return "internal_error"
}

func fromVerdict(v *rules.Verdict) *problem {
	row, ok := wire[v.Seed]
	if !ok {
		return &problem{status: http.StatusInternalServerError, code: "internal_error"}
	}
	return &problem{status: row.status, code: row.code, detail: v.Detail(), operation: v.Operation}
}

// fromError renders what the room could not do. Acceptance may be unknown then, so that the caller keeps its key.
func fromError(err error) *problem {
	if code := fault.CodeOf(err); code.Retryable() || code == fault.Canceled {
		return &problem{status: http.StatusServiceUnavailable, code: "temporarily_unavailable", detail: fault.Detail(err), retry: 1}
	}
	return &problem{status: http.StatusInternalServerError, code: "internal_error"}
}

func malformed(detail string) *problem {
	return &problem{status: http.StatusBadRequest, code: "invalid_request", detail: detail}
}

var (
	noRoute        = &problem{status: http.StatusNotFound, code: "not_found", detail: "no such route"}
	notOffered     = &problem{status: http.StatusNotFound, code: "capability_unavailable", detail: "this node does not offer the route"}
	unknownCaller  = &problem{status: http.StatusUnauthorized, code: "unauthenticated", detail: "a bearer token is needed"}
	notReady       = &problem{status: http.StatusServiceUnavailable, code: "temporarily_unavailable", detail: "the control room is starting", retry: 1}
	operatorsOnly  = &problem{status: http.StatusForbidden, code: "forbidden", detail: "the role operator is needed"}
	internalFailed = &problem{status: http.StatusInternalServerError, code: "internal_error"}
)

// Unavailable answers a request that cannot be served now; detail says what became of it.
func Unavailable(w http.ResponseWriter, detail string) {
	w.Header().Set("Cache-Control", "no-store")
	(&problem{status: http.StatusServiceUnavailable, code: "temporarily_unavailable", detail: detail, retry: 1}).write(w)
}

func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retry))
	}
	if p.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="edged"`)
	}
	rfc9457.Problem{Status: p.status, Code: p.code, Detail: p.detail, Operation: p.operation}.Write(w)
}

// writeJSON sends one document of ours; it cannot fail to render.
func writeJSON(w http.ResponseWriter, status int, doc any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		panic("api: " + err.Error())
	}
	writeBytes(w, status, "application/json", b.Bytes())
}

func writeBytes(w http.ResponseWriter, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left is told nothing
}

package node

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// tasks is what runs besides the requests of clients, for who asks what holds the node. None of it is on the way of a request.
type tasks struct {
	mu   sync.Mutex // guards open
	open map[*task]struct{}
}

type task struct {
	kind, name, worker string
	since              time.Time
}

// begin notes a task; the returned func ends it.
func (t *tasks) begin(kind, name, worker string) (end func()) {
	one := &task{kind: kind, name: name, worker: worker, since: time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[*task]struct{}{}
	}
	t.open[one] = struct{}{}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, one)
	}
}

func (t *tasks) list() []*task {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]*task, 0, len(t.open))
	for one := range t.open {
		out = append(out, one)
	}
	return out
}

// counted notes each request of the control listener: its method and the part of the path that names no Resource.
func (t *tasks) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := "control request"
		if strings.HasPrefix(r.URL.Path, "/artifacts/") && r.Method == http.MethodPut {
			kind = "upload"
		}
		defer t.begin(kind, r.Method+" "+area(r.URL.Path), "")()
		next.ServeHTTP(w, r)
	})
}

// area is the beginning of a path, as far as it is the same for every caller.
func area(path string) string {
	for _, known := range []string{"/artifacts/", "/operator/v1/", "/apis/forms.takoform.com/v2/"} {
		if strings.HasPrefix(path, known) {
			return known
		}
	}
	return "/"
}

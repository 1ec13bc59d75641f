package binding

import (
	"context"

	"edged/sandbox/event"
)

// Fetcher sends requests to the outside (module-worker §5). The sandbox tells the worker nothing about an error but
// that there was one.
type Fetcher interface {
	// Fetch sends a request, follows redirects as asked, and fills res; it sets URL and Redirected of o. A response body
	// comes as res.Stream. The response's stream ends when ctx is done.
	Fetch(ctx context.Context, o *Outbound, res *event.Response) error
}

// Outbound is one request to the outside.
type Outbound struct {
	Request  *event.Request
	Redirect string // "follow", "error" or "manual"
	Whole    []byte // the body, if it is all there and not Request.Body: it can be sent again to where a redirect leads

	URL        string // set by Fetch: of the last request
	Redirected bool   // set by Fetch
}

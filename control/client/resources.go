package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"edged/internal/fault"
)

// Resource is a management record (host-api §6).
type Resource struct {
	UID                string          `json:"uid"`
	Form               string          `json:"form"`
	Space              string          `json:"space"`
	Name               string          `json:"name"`
	Generation         int64           `json:"generation"`
	ObservedGeneration int64           `json:"observedGeneration"`
	ObservedAt         *string         `json:"observedAt"`
	Phase              string          `json:"phase"`
	Spec               json.RawMessage `json:"spec"`
	Observed           json.RawMessage `json:"observed"`
	Output             json.RawMessage `json:"output"`
	LastOperation      string          `json:"lastOperation"`
	HostConditions     json.RawMessage `json:"hostConditions,omitempty"`
}

// Create is the body of a create.
type Create struct {
	Form          string            `json:"form"`
	Space         string            `json:"space"`
	Name          string            `json:"name"`
	Spec          any               `json:"spec"`
	PrivateInputs map[string]string `json:"privateInputs,omitempty"`
}

// NewKey returns a fresh idempotency key. A caller that may have to send one mutation again, perhaps after its own
// restart, keeps the key.
func NewKey() string { return "edged-" + rand.Text() }

// Create asks for a new Resource under the idempotency key and returns the Operation, which may not be terminal.
func (c *Client) Create(ctx context.Context, in Create, key string) (*Operation, error) {
	return c.mutate(ctx, http.MethodPost, "/resources", in, key, 0)
}

// Update replaces the spec of the Resource at the given generation. private nil keeps its secrets.
func (c *Client) Update(ctx context.Context, uid string, generation int64, spec any, private map[string]string, key string) (*Operation, error) {
	return c.mutate(ctx, http.MethodPut, "/resources/"+url.PathEscape(uid), Update{spec, private}, key, generation)
}

// Delete asks for the end of the Resource at the given generation.
func (c *Client) Delete(ctx context.Context, uid string, generation int64, key string) (*Operation, error) {
	return c.mutate(ctx, http.MethodDelete, "/resources/"+url.PathEscape(uid), nil, key, generation)
}

// mutate sends a mutation. generation 0 sends none.
func (c *Client) mutate(ctx context.Context, method, path string, in any, key string, generation int64) (*Operation, error) {
	root, err := c.root(ctx)
	if err != nil {
		return nil, err
	}
	req := request{method: method, url: root + path, header: map[string]string{"Idempotency-Key": key}, repeat: true}
	if generation != 0 {
		req.header["Takoform-Expected-Generation"] = strconv.FormatInt(generation, 10)
	}
	if in != nil {
		if req.body, err = json.Marshal(in); err != nil {
			return nil, fault.Wrap(fault.Invalid, "client.mutate", err)
		}
		req.mediaType = "application/json"
	}
	op := new(Operation)
	r, err := c.call(ctx, req, op)
	if err != nil {
		return nil, err
	}
	op.retryAfter = r.retryAfter
	return op, op.check()
}

// Read returns the Resource; NotFound if it does not exist, or not any more, or not for this credential.
func (c *Client) Read(ctx context.Context, uid string) (*Resource, error) {
	res := new(Resource)
	return res, c.get(ctx, "/resources/"+url.PathEscape(uid), res)
}

func (c *Client) get(ctx context.Context, path string, out any) error {
	root, err := c.root(ctx)
	if err != nil {
		return err
	}
	_, err = c.call(ctx, request{method: http.MethodGet, url: root + path, repeat: true}, out)
	return err
}

// Filter narrows a list; empty members do not.
type Filter struct{ Space, Name, Form string }

// List ranges over the Resources that the credential may read, in order of UID, page by page. After an error, which
// comes with a nil Resource, the range ends. Every range starts anew.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[*Resource, error] {
	return func(yield func(*Resource, error) bool) {
		query := url.Values{}
		for name, value := range map[string]string{"space": f.Space, "name": f.Name, "form": f.Form} {
			if value != "" {
				query.Set(name, value)
			}
		}
		for {
			var page struct {
				Items      []*Resource `json:"items"`
				NextCursor *string     `json:"nextCursor"`
			}
			path := "/resources"
			if len(query) > 0 {
				path += "?" + query.Encode()
			}
			if err := c.get(ctx, path, &page); err != nil {
				yield(nil, err)
				return
			}
			for _, res := range page.Items {
				if res == nil {
					yield(nil, fault.New(fault.Internal, "client.List", "a page holds null"))
					return
				}
				if !yield(res, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			if *page.NextCursor == query.Get("cursor") {
				yield(nil, fault.New(fault.Internal, "client.List", "the list does not get on"))
				return
			}
			query.Set("cursor", *page.NextCursor)
		}
	}
}

// Lookup returns the Resource with this name in the Space, whatever its Form; ok false if there is none.
func (c *Client) Lookup(ctx context.Context, space, name string) (res *Resource, ok bool, err error) {
	for res, err := range c.List(ctx, Filter{Space: space, Name: name}) {
		return res, err == nil, err
	}
	return nil, false, nil
}

// Support says what the node can do with a Form (host-api §5.1).
type Support struct {
	Form          string   `json:"form"`
	Supported     bool     `json:"supported"`
	Operations    []string `json:"operations"`
	PrivateInputs bool     `json:"privateInputs"`
}

// Support asks whether the node implements the Form with this URL.
func (c *Client) Support(ctx context.Context, form string) (*Support, error) {
	s := new(Support)
	return s, c.get(ctx, "/support?"+url.Values{"form": {form}}.Encode(), s)
}

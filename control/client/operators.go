package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

const operatorPath = "/operator/v1/control/"

// AuditRecord is one mutation that somebody asked for.
type AuditRecord struct {
	Seq         uint64 `json:"seq,omitempty"`
	At          string `json:"at"`
	Index       uint64 `json:"index,omitempty"`
	ByTenant    string `json:"byTenant"`
	ByPrincipal string `json:"byPrincipal"` // "" is the node itself
	ByToken     string `json:"byToken,omitempty"`
	Action      string `json:"action"`
	Tenant      string `json:"tenant"`
	UID         string `json:"uid,omitempty"`
	Space       string `json:"space,omitempty"`
	Name        string `json:"name,omitempty"`
	Form        string `json:"form,omitempty"`
	Operation   string `json:"operation,omitempty"`
	Outcome     string `json:"outcome"`
	Code        string `json:"code,omitempty"`

	Versions []AuditShare `json:"versions,omitempty"` // of a deployment that was created or updated
}

// AuditShare is a version's part of a distribution, in basis points.
type AuditShare struct {
	Version string `json:"version"` // UID
	Weight  int    `json:"weight"`
}

// AuditFilter narrows the audit; empty members do not.
type AuditFilter struct {
	Principal string // who asked
	Target    string // UID or name of what was to change
	Outcome   string // accepted, refused or unknown
}

// Audit returns the newest records, at most limit of them.
func (c *Client) Audit(ctx context.Context, f AuditFilter, limit int) ([]AuditRecord, error) {
	var all []AuditRecord
	for cursor := ""; len(all) < limit; {
		q := url.Values{"limit": {strconv.Itoa(min(limit-len(all), 1000))}}
		for name, value := range map[string]string{"principal": f.Principal, "target": f.Target, "outcome": f.Outcome, "cursor": cursor} {
			if value != "" {
				q.Set(name, value)
			}
		}
		var page struct {
			Items []AuditRecord `json:"items"`
			Next  string        `json:"nextCursor"`
		}
		if _, err := c.call(ctx, request{method: http.MethodGet, url: c.origin + operatorPath + "audit?" + q.Encode(), repeat: true}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	return all, nil
}

// RotateKey makes the node seal everything with a fresh key and returns how many records were sealed anew, and the key's
// id. It may be repeated.
func (c *Client) RotateKey(ctx context.Context) (resealed int, key string, err error) {
	var out struct {
		Resealed int    `json:"resealed"`
		Key      string `json:"key"`
	}
	_, err = c.call(ctx, request{method: http.MethodPost, url: c.origin + operatorPath + "rotate-key"}, &out)
	return out.Resealed, out.Key, err
}

// Backup writes a backup of a room of the node to w: control, kv, sql or queue. After an error what was written is not whole.
// ctx bounds it.
func (c *Client) Backup(ctx context.Context, room string, w io.Writer) error {
	return c.Fetch(ctx, Call{Method: http.MethodGet, Path: room + "/backup"}, w)
}

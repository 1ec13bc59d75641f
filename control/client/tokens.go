package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"edged/internal/fault"
)

// Token is one credential as an operator sees it. Secret is set only in the answer to its creation.
type Token struct {
	ID        string   `json:"id,omitempty"`
	Tenant    string   `json:"tenant"`
	Principal string   `json:"principal"`
	Role      string   `json:"role"`
	Spaces    []string `json:"spaces,omitempty"` // empty means every Space of the tenant
	CreatedAt string   `json:"createdAt,omitempty"`
	UsedAt    *string  `json:"usedAt,omitempty"` // to a few minutes; nil before the first use
	Secret    string   `json:"token,omitempty"`
}

const tokensPath = "/operator/v1/control/tokens"

// CreateToken makes a token for a principal and returns it with its secret, which the node does not keep. It is not
// repeated when the connection is lost: an answer that did not arrive leaves a token that nobody knows, to be revoked.
func (c *Client) CreateToken(ctx context.Context, in Token) (*Token, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "client.CreateToken", err)
	}
	out := new(Token)
	_, err = c.call(ctx, request{method: http.MethodPost, url: c.origin + tokensPath, body: body, mediaType: "application/json"}, out)
	return out, err
}

// Tokens lists the tokens, without secrets.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	var out struct {
		Items []Token `json:"items"`
	}
	_, err := c.call(ctx, request{method: http.MethodGet, url: c.origin + tokensPath, repeat: true}, &out)
	return out.Items, err
}

// RevokeToken ends a token at once; NotFound if there is none with this id.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	_, err := c.call(ctx, request{method: http.MethodDelete, url: c.origin + tokensPath + "/" + url.PathEscape(id), repeat: true}, nil)
	return err
}

package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"edged/internal/fault"
)

// Artifact is where uploaded bytes are, in the words of an artifact reference.
type Artifact struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
}

// ArtifactOf returns the reference by which content is known on this node, uploaded or not.
func (c *Client) ArtifactOf(content []byte) Artifact {
	sum := sha256.Sum256(content)
	return c.ArtifactAt(hex.EncodeToString(sum[:]))
}

// ArtifactAt is ArtifactOf for content that is known by its digest, 64 lower-case hexadecimal digits.
func (c *Client) ArtifactAt(digest string) Artifact {
	return Artifact{URL: c.origin + "/artifacts/sha256/" + digest, SHA256: digest}
}

// Upload makes the tenant hold content (node-surface §4), which is sent only if the tenant does not hold it yet, and
// says whether it was.
func (c *Client) Upload(ctx context.Context, content []byte) (a Artifact, sent bool, err error) {
	// The side channel is on the origin that discovery vouches for.
	if _, err := c.Discover(ctx); err != nil {
		return Artifact{}, false, err
	}
	a = c.ArtifactOf(content)
	_, err = c.call(ctx, request{method: http.MethodHead, url: a.URL, repeat: true}, nil)
	if fault.CodeOf(err) != fault.NotFound {
		return a, false, err
	}
	_, err = c.call(ctx, request{
		method: http.MethodPut, url: a.URL, body: content, mediaType: "application/octet-stream", repeat: true,
	}, nil)
	return a, err == nil, err
}

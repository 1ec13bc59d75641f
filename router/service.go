package router

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"

	"edged/router/table"
	"edged/sandbox/event"
)

// Call runs the HTTP route of a worker for a request that came through no listener (service-binding §1): version by
// weight, assets, fetch, by the rules of a public entrance. It takes no place of the admission: its root request has
// one, and waiting for another could lock both. res is filled as a Handler fills it; an asset comes as res.Stream.
// Errors are the Handler's; event.ErrNotServing says that nothing has happened, event.ErrBodyTooBig that the request is
// larger than this node accepts.
func (r *Router) Call(ctx context.Context, w *table.Worker, req *event.Request, res *event.Response) error {
	if req.Length > r.opt.MaxRequestBodyBytes {
		return event.ErrBodyTooBig
	}
	v := w.Pick(rand.Uint32N(table.FullWeight))
	if v == nil {
		return event.ErrNotServing
	}
	if !v.RunWorkerFirst {
		if a := assetFor(v, req); a != nil {
			return serveAsset(a, req, res)
		}
	}
	switch {
	case !v.HasFetch:
		hosted(res, http.StatusNotFound, "not_found")
		return nil
	case v.Handler == nil:
		return event.ErrNotServing
	}
	if err := v.Handler.Serve(ctx, req, res); err != nil {
		return err
	}
	if res.Status == http.StatusNotFound && v.RunWorkerFirst {
		if a := assetFor(v, req); a != nil {
			if res.Stream != nil {
				_ = res.Stream.Close() // cancelling is all we want of it
			}
			res.Reset()
			return serveAsset(a, req, res)
		}
	}
	return nil
}

// assetFor runs the asset stage of a version for a request that has an absolute URL.
func assetFor(v *table.Version, req *event.Request) *table.Asset {
	if v.Assets == nil || string(req.Method) != "GET" && string(req.Method) != "HEAD" {
		return nil
	}
	_, rest, _ := bytes.Cut(req.URL, []byte("://"))
	path := []byte("/")
	if i := bytes.IndexByte(rest, '/'); i >= 0 {
		path, _, _ = bytes.Cut(rest[i:], []byte{'?'})
	}
	path, _, _ = bytes.Cut(path, []byte{'#'})
	a, _ := v.Asset(path, nil)
	return a
}

func serveAsset(a *table.Asset, req *event.Request, res *event.Response) error {
	res.Status = http.StatusOK
	res.Header = append(res.Header[:0], "content-type\n"+a.MediaType+"\ncontent-length\n"+strconv.FormatInt(a.Size, 10)+"\n"...)
	if string(req.Method) == "HEAD" {
		res.Null = true
		return nil
	}
	file, err := a.Open()
	if err != nil {
		return event.ErrNotServing
	}
	res.Stream, res.Length = file, a.Size
	return nil
}

// hosted makes the node's own answer; a service call shows no Edged-* of it.
func hosted(res *event.Response, status int, code string) {
	res.Status, res.Header = status, append(res.Header[:0], "content-type\ntext/plain; charset=utf-8\n"...)
	res.Body = append(append(res.Body[:0], code...), '\n')
	res.Length = int64(len(res.Body))
}

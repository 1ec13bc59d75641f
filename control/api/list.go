package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"edged/control/state"
)

// cursorLife is how long a list may be gone on with.
const cursorLife = 24 * time.Hour

func (c *call) list() *problem {
	values, p := c.query("space", "name", "form", "limit", "cursor")
	if p != nil {
		return p
	}
	var f state.Filter
	if f.Space, p = nameParam(values, "space"); p != nil {
		return p
	}
	if f.Name, p = nameParam(values, "name"); p != nil {
		return p
	}
	if f.Form, p = formParam(values); p != nil {
		return p
	}
	limit := c.opt.MaxPageSize
	if values.Has("limit") {
		text := values.Get("limit")
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > c.opt.MaxPageSize || text[0] == '+' {
			return malformed("limit must be from 1 to " + strconv.Itoa(c.opt.MaxPageSize))
		}
		limit = n
	}
	after := ""
	now := time.Now()
	if values.Has("cursor") {
		var fresh bool
		if after, fresh, p = c.openCursor(values.Get("cursor"), f, now); p != nil {
			return p
		}
		if !fresh {
			return &problem{status: http.StatusConflict, code: "cursor_expired", detail: "start the list again"}
		}
	}
	if f.Space != "" {
		if v := c.actor.May(f.Space, state.Reader); v != nil {
			return fromVerdict(v)
		}
	}
	page, more := c.opt.State.List(&c.actor, f, after, limit)
	out := struct {
		Items []json.RawMessage `json:"items"`
		Next  *string           `json:"nextCursor"`
	}{Items: make([]json.RawMessage, 0, len(page))}
	size := 0
	for i, r := range page {
		item := state.Representation(r)
		if size += len(item); i > 0 && size > c.pageBytes {
			page, more = page[:i], true
			break
		}
		out.Items = append(out.Items, item)
	}
	if more {
		next := c.makeCursor(page[len(page)-1].UID, f, now)
		out.Next = &next
	}
	writeJSON(c.w, http.StatusOK, out)
	return nil
}

// A cursor is mac, issue time and last UID. The mac binds it to caller and filters, so that it goes on with nothing else.
const macBytes = 16

func (c *call) makeCursor(after string, f state.Filter, now time.Time) string {
	body := binary.BigEndian.AppendUint64(nil, uint64(now.UnixMilli()))
	body = append(body, after...)
	return base64.RawURLEncoding.EncodeToString(append(c.mac(body, f), body...))
}

func (c *call) openCursor(text string, f state.Filter, now time.Time) (after string, fresh bool, p *problem) {
	bad := malformed("the cursor does not belong to this list")
	if len(text) > 512 {
		return "", false, bad
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < macBytes+8 {
		return "", false, bad
	}
	body := raw[macBytes:]
	if !hmac.Equal(raw[:macBytes], c.mac(body, f)) {
		return "", false, bad
	}
	issued := time.UnixMilli(int64(binary.BigEndian.Uint64(body)))
	return string(body[8:]), now.Sub(issued) < cursorLife, nil
}

func (c *call) mac(body []byte, f state.Filter) []byte {
	h := hmac.New(sha256.New, c.opt.State.Secret())
	for _, part := range [...]string{lane, c.actor.Tenant, c.actor.Principal, f.Space, f.Name, f.Form, string(body)} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:macBytes]
}

package api

import (
	"bytes"
	"cmp"
	"embed"
	"net/http"
	"slices"
	"text/template"
	"time"

	"edged/control/form"
)

//go:embed pages/*.md
var pages embed.FS

// Profile is what the page about this node's limits and choices says besides what Options holds. Texts are shown as they
// are.
type Profile struct {
	Settle           time.Duration // how long a mutation is waited for
	TransferLife     time.Duration
	EndpointDomain   string
	MaxInputs        int
	MaxManifestBytes int64
	MaxFiles         int
	MaxBlobBytes     int64
	MaxBundleBytes   int64
	MaxHeldBytes     int64
	Grace            time.Duration // of bytes that nothing uses
	Rows             []ProfileRow  // limits of other rooms
}

// ProfileRow is one limit.
type ProfileRow struct{ Name, Value string }

// profilePage is everything that a page may speak of.
type profilePage struct {
	Profile
	Forms                     []*form.Driver
	MaxRequestBytes           int64
	MaxPageSize, PageBytes    int
	ReplayWindow, CursorLife  time.Duration
	RequestRate, RequestBurst int
}

// render makes every page, once. A page that does not render is a bug of the program.
func (h *Handler) render() {
	p := profilePage{
		Profile: h.opt.Profile, MaxRequestBytes: h.opt.MaxRequestBytes, MaxPageSize: h.opt.MaxPageSize, PageBytes: h.pageBytes,
		ReplayWindow: h.opt.ReplayWindow, CursorLife: cursorLife, RequestRate: h.opt.RequestRate, RequestBurst: h.opt.RequestBurst,
	}
	for _, d := range h.opt.Drivers {
		p.Forms = append(p.Forms, d)
	}
	slices.SortFunc(p.Forms, func(a, b *form.Driver) int { return cmp.Compare(a.URL, b.URL) })
	h.pages = map[string][]byte{}
	for _, t := range template.Must(template.ParseFS(pages, "pages/*.md")).Templates() {
		var b bytes.Buffer
		if err := t.Execute(&b, p); err != nil {
			panic("api: " + err.Error())
		}
		h.pages[t.Name()] = b.Bytes()
	}
}

func pageFile(name string) string {
	if name == "" {
		name = "index"
	}
	return name + ".md"
}

func (h *Handler) hasPage(name string) bool { return h.pages[pageFile(name)] != nil }

func (c *call) page() *problem {
	writeBytes(c.w, http.StatusOK, "text/markdown; charset=utf-8", c.pages[pageFile(c.id)])
	return nil
}

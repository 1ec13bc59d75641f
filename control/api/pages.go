package api

import (
	"embed"
	"net/http"
)

//go:embed pages/*.md
var pages embed.FS

func pageFile(name string) string {
	if name == "" {
		name = "index"
	}
	return "pages/" + name + ".md"
}

// hasPage reports whether a documentation page of this name exists. embed refuses anything that is no plain name.
func hasPage(name string) bool {
	_, err := pages.ReadFile(pageFile(name))
	return err == nil
}

func (c *call) page() *problem {
	text, err := pages.ReadFile(pageFile(c.id))
	if err != nil {
		return noRoute
	}
	writeBytes(c.w, http.StatusOK, "text/markdown; charset=utf-8", text)
	return nil
}

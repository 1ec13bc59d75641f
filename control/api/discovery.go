package api

import "net/http"

type discoveryJSON struct {
	API            string `json:"api"`
	BaseURL        string `json:"baseUrl"`
	Documentation  string `json:"documentation"`
	Authentication struct {
		Schemes       []string `json:"schemes"`
		Documentation string   `json:"documentation"`
	} `json:"authentication"`
	Capabilities struct {
		Offerings     bool `json:"offerings"`
		Previews      bool `json:"previews"`
		PrivateInputs bool `json:"privateInputs"`
	} `json:"capabilities"`
	Limits struct {
		MaxRequestBytes     int64 `json:"maxRequestBytes"`
		MaxPageSize         int   `json:"maxPageSize"`
		ReplayWindowSeconds int64 `json:"replayWindowSeconds"`
	} `json:"limits"`
}

func (c *call) discovery() *problem {
	if _, p := c.query(); p != nil {
		return p
	}
	var d discoveryJSON
	d.API, d.BaseURL, d.Documentation = apiID, c.opt.Origin+Root, c.opt.Origin+docsPath
	d.Authentication.Schemes = []string{"Bearer"}
	d.Authentication.Documentation = c.opt.Origin + docsPath + "authentication"
	d.Capabilities.Offerings, d.Capabilities.Previews = !offeringsRoute.disabled, !previewsRoute.disabled
	d.Capabilities.PrivateInputs = !privateRoute.disabled
	d.Limits.MaxRequestBytes, d.Limits.MaxPageSize = c.opt.MaxRequestBytes, c.opt.MaxPageSize
	d.Limits.ReplayWindowSeconds = int64(c.opt.ReplayWindow.Seconds())
	writeJSON(c.w, http.StatusOK, d)
	return nil
}

func (c *call) support() *problem {
	values, p := c.query("form")
	if p != nil {
		return p
	}
	form, p := formParam(values)
	if p != nil {
		return p
	}
	if form == "" {
		return malformed("query parameter form is needed")
	}
	out := struct {
		Form          string   `json:"form"`
		Supported     bool     `json:"supported"`
		Operations    []string `json:"operations"`
		PrivateInputs bool     `json:"privateInputs"`
	}{Form: form, Operations: []string{}}
	if d := c.opt.Drivers[form]; d != nil {
		out.Supported, out.PrivateInputs = true, d.Private
		out.Operations = []string{"create", "read", "update", "delete"}
	}
	writeJSON(c.w, http.StatusOK, out)
	return nil
}

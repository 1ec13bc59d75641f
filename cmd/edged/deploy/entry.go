package deploy

import (
	"fmt"
	"strconv"
	"strings"
)

// entryName is what messages and source maps call the generated entry.
const entryName = "edged-entry.js"

// entrySource returns the module that stands in front of the worker's own: its default export is a plain object with
// exactly the declared handlers, each called on the source's default export, so that instances of classes and routers
// keep their this. A handler that the source does not have is left out, for the node to name.
func entrySource(specifier string, handlers []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "import source from %s;\nconst handlers = {};\n", strconv.Quote(specifier))
	for _, h := range handlers {
		fmt.Fprintf(&b, "if (typeof source?.%s === \"function\") handlers.%s = (event, env, ctx) => source.%s(event, env, ctx);\n", h, h, h)
	}
	if len(handlers) == 0 {
		b.WriteString("void source;\n")
	}
	b.WriteString("export default handlers;\n")
	return b.String()
}

package manifest

import (
	"path"
	"strings"
)

// mediaTypes is our own table: the system's differs from machine to machine, and with it every digest would.
var mediaTypes = map[string]string{
	".avif": "image/avif", ".bmp": "image/bmp", ".gif": "image/gif", ".ico": "image/vnd.microsoft.icon", ".jpeg": "image/jpeg",
	".jpg": "image/jpeg", ".png": "image/png", ".svg": "image/svg+xml", ".tif": "image/tiff", ".tiff": "image/tiff", ".webp": "image/webp",

	".aac": "audio/aac", ".flac": "audio/flac", ".m4a": "audio/mp4", ".mp3": "audio/mpeg", ".oga": "audio/ogg", ".ogg": "audio/ogg",
	".opus": "audio/ogg", ".wav": "audio/wav", ".weba": "audio/webm",

	".m4v": "video/mp4", ".mov": "video/quicktime", ".mp4": "video/mp4", ".mpeg": "video/mpeg", ".ogv": "video/ogg", ".webm": "video/webm",

	".otf": "font/otf", ".ttf": "font/ttf", ".woff": "font/woff", ".woff2": "font/woff2",

	".css": "text/css", ".csv": "text/csv", ".htm": "text/html", ".html": "text/html", ".ics": "text/calendar", ".js": "text/javascript",
	".md": "text/markdown", ".mjs": "text/javascript", ".txt": "text/plain", ".vtt": "text/vtt",

	".atom": "application/atom+xml", ".gz": "application/gzip", ".json": "application/json", ".jsonld": "application/ld+json",
	".map": "application/json", ".pdf": "application/pdf", ".rss": "application/rss+xml", ".rtf": "application/rtf",
	".tar": "application/x-tar", ".wasm": "application/wasm", ".webmanifest": "application/manifest+json",
	".xhtml": "application/xhtml+xml", ".xml": "application/xml", ".zip": "application/zip",
}

// mediaType returns the media type of a file by its name, application/octet-stream where the name does not tell.
func mediaType(name string) string {
	if t, ok := mediaTypes[strings.ToLower(path.Ext(name))]; ok {
		return t
	}
	return "application/octet-stream"
}

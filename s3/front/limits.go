package front

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
)

// Limits of objects §4.
const (
	maxKeyBytes    = 979
	maxObjectBytes = 5 << 30
	maxPutBytes    = 300 << 20
	maxParts       = 10000
)

// Limits of this front.
const (
	maxDocumentBytes = 8 << 20            // what the library reads whole: XML
	maxFramedBytes   = maxObjectBytes * 2 // a body in signed chunks is longer than what it carries
)

// documents are the queries of a PUT of an object that carries no object.
var documents = []string{"acl", "legal-hold", "retention", "tagging"}

// limits refuses requests by their head: bodies that are too long for what they are, and headers that ask for what no bucket has. The
// library would read documents of any length and pass over such headers.
func limits(ctx fiber.Ctx) error {
	if err := tooLong(ctx); err != nil {
		return refuse(ctx, err)
	}
	if m := ctx.Method(); m == http.MethodPut || m == http.MethodPost {
		if err := promises(ctx); err != nil {
			return refuse(ctx, err)
		}
	}
	return ctx.Next()
}

// promises is nil for a request without a header that the library passes over and that asks for more than a bucket does.
func promises(ctx fiber.Ctx) s3err.S3Error {
	_, key, _ := strings.Cut(strings.TrimPrefix(ctx.Path(), "/"), "/")
	for raw, value := range ctx.Request().Header.All() {
		switch name := strings.ToLower(string(raw)); {
		case strings.HasPrefix(name, "x-amz-server-side-encryption"):
			return unmapped("server-side encryption is")
		case name == "x-amz-storage-class" && string(value) != "STANDARD":
			return unmapped("storage classes are")
		case key == "" || ctx.Request().URI().QueryArgs().Has("acl"): // the library judges these
		case strings.HasPrefix(name, "x-amz-grant-"), name == "x-amz-acl" && !slices.Contains(ownersACL, string(value)):
			return unmapped("access control lists are")
		}
	}
	return nil
}

// ownersACL are the ACLs that say what is so: the one account owns every object.
var ownersACL = []string{"private", "bucket-owner-full-control"}

// tooLong is nil for a request whose body has a length that is allowed.
func tooLong(ctx fiber.Ctx) s3err.S3Error {
	most, length := int64(maxDocumentBytes), int64(ctx.Request().Header.ContentLength())
	if carriesObject(ctx) {
		most = maxFramedBytes
		if text := ctx.Get("X-Amz-Decoded-Content-Length"); text != "" && length < 0 {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 0 {
				return s3err.GetAPIError(s3err.ErrInvalidRequest)
			}
			length = n // what comes is held to it
		}
	}
	switch {
	case length == -1: // in chunks of HTTP, so of any length
		return s3err.GetAPIError(s3err.ErrMissingContentLength)
	case length > most:
		return s3err.GetEntityTooLargeErr(length, most)
	}
	return nil
}

// carriesObject reports whether the library hands the body on as it arrives.
func carriesObject(ctx fiber.Ctx) bool {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(ctx.Path(), "/"), "/")
	switch ctx.Method() {
	case http.MethodPost: // a form with a file
		return bucket != "" && key == "" && strings.HasPrefix(ctx.Get("Content-Type"), fiber.MIMEMultipartForm)
	case http.MethodPut:
		query := ctx.Request().URI().QueryArgs()
		for _, name := range documents {
			if query.Has(name) {
				return false
			}
		}
		return key != "" && ctx.Get("X-Amz-Copy-Source") == ""
	}
	return false
}

func refuse(ctx fiber.Ctx, err s3err.S3Error) error {
	request, host := utils.EnsureRequestIDs(ctx)
	ctx.Response().Header.SetContentType(fiber.MIMEApplicationXML)
	return ctx.Status(err.StatusCode()).Send(err.XMLBody(request, host))
}

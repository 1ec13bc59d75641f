package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"edged/control/client"
	"edged/control/form"
	"edged/internal/fault"
)

func newObjectsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "objects", Short: "look into object buckets and change them (role operator)", Args: cobra.NoArgs, RunE: needSubcommand,
		Long: "Read and write what workers keep in object buckets. BUCKET is the name of an ObjectBucket in a Space, or a UID with --uid. The\n" +
			"token needs the role operator; every change leaves an audit record, without key and body.",
	}
	cmd.AddCommand(newObjectsList(), newObjectsGet(), newObjectsPut(), newObjectsRemove(), newObjectsStat(), newObjectsScrub())
	return cmd
}

func bucketTarget() storeTarget {
	return storeTarget{form: form.ObjectBucket3URL, or: form.ObjectBucket2URL, path: "objects/buckets"}
}

// objectInfo is an object without its body.
type objectInfo struct {
	Key         string `json:"key"`
	ETag        string `json:"etag"`
	Size        int64  `json:"size"`
	ContentType string `json:"contentType,omitempty"`
	Uploaded    string `json:"uploaded"`
}

func newObjectsList() *cobra.Command {
	t := bucketTarget()
	var recursive bool
	var limit int
	cmd := &cobra.Command{Use: "ls BUCKET [PREFIX]", Short: "list objects in the order of their keys", Args: cobra.RangeArgs(1, 2),
		Long: "List objects in the order of their UTF-8 bytes. Keys that share what stands before the next / after PREFIX are shown as one folder,\n" +
			"unless --recursive is given. The list is no snapshot."}
	t.storeFlags(cmd)
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "show every key, no folders")
	cmd.Flags().IntVar(&limit, "limit", 0, "how many lines at most (default: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return usagef("--limit: %d is negative", limit)
		}
		query := url.Values{"prefix": {strings.Join(args[1:], "")}}
		if !recursive {
			query.Set("delimiter", "/")
		}
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			all := struct {
				Objects  []objectInfo `json:"objects"`
				Prefixes []string     `json:"prefixes"`
			}{[]objectInfo{}, []string{}}
			tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			err := s.pages(ctx, "objects", query, limit, func(raw json.RawMessage) (int, error) {
				page := struct {
					Objects  []objectInfo
					Prefixes []string
				}{}
				if err := json.Unmarshal(raw, &page); err != nil {
					return 0, err
				}
				all.Objects, all.Prefixes = append(all.Objects, page.Objects...), append(all.Prefixes, page.Prefixes...)
				return len(page.Objects) + len(page.Prefixes), nil
			})
			if err != nil {
				return err
			}
			if t.json {
				return printJSON(cmd, all)
			}
			for _, p := range all.Prefixes {
				fmt.Fprintf(tab, "-\t-\t%s\n", printable(p))
			}
			for _, o := range all.Objects {
				fmt.Fprintf(tab, "%d\t%s\t%s\n", o.Size, o.Uploaded, printable(o.Key))
			}
			return tab.Flush()
		})
	}
	return cmd
}

func newObjectsGet() *cobra.Command {
	t := bucketTarget()
	cmd := &cobra.Command{Use: "get BUCKET KEY [FILE]", Short: "write an object to a file, or to standard output", Args: cobra.RangeArgs(2, 3),
		Long: "Write the body of an object, byte for byte, to FILE, which must not exist and is there only once it is whole, or to standard output."}
	t.storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			fetch := func(w io.Writer) error { return s.c.Fetch(ctx, s.call("GET", "object", ofKey(args[1]), nil), w) }
			if len(args) == 2 {
				return fetch(cmd.OutOrStdout())
			}
			size, err := saveFile(args[2], fetch)
			if err != nil {
				return err
			}
			return t.say(cmd, map[string]any{"file": args[2], "bytes": size}, "saved %s, %d bytes", args[2], size)
		})
	}
	return cmd
}

func newObjectsRemove() *cobra.Command {
	t := bucketTarget()
	cmd := &cobra.Command{Use: "rm BUCKET KEY", Short: "delete an object; one that is not there is deleted already", Args: cobra.ExactArgs(2)}
	t.storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			if err := s.c.Ask(ctx, s.call("DELETE", "object", ofKey(args[1]), nil), nil); err != nil {
				return err
			}
			return t.say(cmd, map[string]string{"deleted": args[1]}, "deleted %s", printable(args[1]))
		})
	}
	return cmd
}

func newObjectsStat() *cobra.Command {
	t := bucketTarget()
	cmd := &cobra.Command{Use: "stat BUCKET [KEY]", Short: "what a bucket holds, or what is known of one object", Args: cobra.RangeArgs(1, 2)}
	t.storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			if len(args) == 2 {
				var o objectInfo
				if err := s.c.Ask(ctx, s.call("GET", "head", ofKey(args[1]), nil), &o); err != nil {
					return err
				}
				return t.say(cmd, o, "%s: %d bytes, %s, etag %s, stored %s", printable(o.Key), o.Size, dash(o.ContentType), o.ETag, o.Uploaded)
			}
			var b struct {
				Objects int64 `json:"objects"`
				Uploads int64 `json:"uploads"`
				Bytes   int64 `json:"bytes"`
				Quota   int64 `json:"quota"`
			}
			if err := s.c.Ask(ctx, s.call("GET", "stat", nil, nil), &b); err != nil {
				return err
			}
			return t.say(cmd, b, "%d objects, %d open uploads, %d bytes", b.Objects, b.Uploads, b.Bytes)
		})
	}
	return cmd
}

func newObjectsScrub() *cobra.Command {
	var t target
	var rate int64
	cmd := &cobra.Command{Use: "scrub", Short: "read every object of the node and compare it with its checksums", Args: cobra.NoArgs,
		Long: "Read every object of the node and compare it with its checksums. Damage is named, counted and logged; nothing is removed or\n" +
			"repaired, and the command fails if there is any. It needs an operator of the whole node."}
	t.flags(cmd.Flags())
	cmd.Flags().Int64Var(&rate, "rate", 0, "bytes a second (default: as fast as the disk allows)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		if rate < 0 {
			return usagef("--rate: %d is negative", rate)
		}
		var r struct {
			Objects int64 `json:"objects"`
			Bytes   int64 `json:"bytes"`
			Damaged int64 `json:"damaged"`
			Damages []struct {
				Bucket string `json:"bucket"`
				Key    string `json:"key"`
				ETag   string `json:"etag"`
				Reason string `json:"reason"`
			} `json:"damages"`
		}
		call := client.Call{Method: "POST", Path: "objects/scrub", Query: url.Values{"rate": {strconv.FormatInt(rate, 10)}}}
		if err := c.Ask(cmd.Context(), call, &r); err != nil {
			return explain(err)
		}
		if !t.json {
			for _, d := range r.Damages {
				fmt.Fprintf(cmd.OutOrStdout(), "damaged: %s %s: %s\n", d.Bucket, printable(d.Key), d.Reason)
			}
		}
		if err := t.say(cmd, r, "read %d objects, %d bytes: %d damaged", r.Objects, r.Bytes, r.Damaged); err != nil || r.Damaged == 0 {
			return err
		}
		return fault.Newf(fault.Internal, "objects", "%d objects are damaged", r.Damaged)
	}
	return cmd
}

func newObjectsPut() *cobra.Command {
	t := bucketTarget()
	var contentType string
	var partSize int64
	cmd := &cobra.Command{Use: "put BUCKET KEY FILE", Short: "store a file, or standard input for -", Args: cobra.ExactArgs(3),
		Long: "Store a file under KEY, in place of what is there. A KEY that ends in / gets the file's name. Files over 300 MiB are sent in parts\n" +
			"and become visible at once; standard input may have up to 300 MiB."}
	t.storeFlags(cmd)
	cmd.Flags().StringVar(&contentType, "content-type", "", "content type of the object")
	cmd.Flags().Int64Var(&partSize, "part-size", 64<<20, "bytes of a part of a large file, at least 5 MiB")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		key := args[1]
		if strings.HasSuffix(key, "/") && args[2] != "-" {
			key += path.Base(args[2])
		}
		if partSize < 5<<20 {
			return usagef("--part-size: %d is less than 5 MiB", partSize)
		}
		file := args[2]
		if file == "-" {
			file = ""
		}
		body, size, done, err := valueOf(cmd, nil, file)
		if err != nil {
			return usageError{explain(err)}
		}
		defer done()
		query := ofKey(key)
		if contentType != "" {
			query.Set("content-type", contentType)
		}
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			if f, ok := body.(*os.File); ok && size > maxSinglePut {
				err = s.putParts(ctx, query, f, size, max(partSize, (size+9999)/10000))
			} else {
				err = s.c.Send(ctx, s.call("PUT", "object", query, nil), body, size)
			}
			if err != nil {
				return err
			}
			return t.say(cmd, map[string]string{"put": key}, "put %s", printable(key))
		})
	}
	return cmd
}

// maxSinglePut is what one put may have (objects §3).
const maxSinglePut = 300 << 20

// putParts stores a large file as a multipart upload, which is given up if anything fails.
func (s *store) putParts(ctx context.Context, query url.Values, f io.ReaderAt, size, partSize int64) error {
	var made struct {
		ID string `json:"uploadId"`
	}
	if err := s.c.Ask(ctx, s.call("POST", "uploads", query, nil), &made); err != nil {
		return err
	}
	upload := url.Values{"key": query["key"], "upload": {made.ID}}
	err := s.sendParts(ctx, upload, f, size, partSize)
	if err != nil {
		if aerr := s.c.Ask(context.WithoutCancel(ctx), s.call("DELETE", "upload", upload, nil), nil); aerr != nil {
			return fmt.Errorf("%w (and its upload %s is still open: %s)", err, made.ID, words(aerr))
		}
	}
	return err
}

func (s *store) sendParts(ctx context.Context, upload url.Values, f io.ReaderAt, size, partSize int64) error {
	type part struct {
		Number int    `json:"partNumber"`
		ETag   string `json:"etag"`
	}
	var parts []part
	for at := int64(0); at < size; at += partSize {
		length := min(partSize, size-at)
		query := url.Values{"key": upload["key"], "upload": upload["upload"], "number": {strconv.Itoa(len(parts) + 1)}}
		var stored part
		if err := s.c.SendFor(ctx, s.call("PUT", "part", query, nil), io.NewSectionReader(f, at, length), length, &stored); err != nil {
			return err
		}
		parts = append(parts, stored)
	}
	return s.c.Ask(ctx, s.call("POST", "complete", upload, map[string]any{"parts": parts}), nil)
}

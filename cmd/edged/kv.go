package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"edged/control/form"
	"edged/control/operator"
)

func newKVCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "kv", Short: "look into key-value namespaces and change them (role operator)", Args: cobra.NoArgs, RunE: needSubcommand,
		Long: "Read and write what workers keep in key-value namespaces. NAMESPACE is the name of an EdgeKVNamespace in a Space, or a UID with\n" +
			"--uid. The token needs the role operator; every change leaves an audit record, without key and value.",
	}
	cmd.AddCommand(newKVGet(), newKVPut(), newKVList(), newKVDelete(), newKVLag(), newKVPosition(), newKVWait())
	return cmd
}

func kvTarget() storeTarget { return storeTarget{form: form.KVNamespaceURL, path: "kv/namespaces"} }

func ofKey(key string) url.Values { return url.Values{"key": {key}} }

func newKVGet() *cobra.Command {
	t := kvTarget()
	cmd := &cobra.Command{Use: "get NAMESPACE KEY", Short: "write a value to standard output as it is", Args: cobra.ExactArgs(2),
		Long: "Write the value of a key to standard output, byte for byte. With --json write one document with the metadata and the value in\n" +
			"base64. A key without a value is a failure."}
	t.storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			if !t.json {
				return s.c.Fetch(ctx, s.call("GET", "value", ofKey(args[1]), nil), cmd.OutOrStdout())
			}
			var entry struct {
				Key      string            `json:"key"`
				Size     int64             `json:"size"`
				Metadata map[string]string `json:"metadata"`
				Value    operator.Bytes    `json:"value"`
			}
			if err := s.c.Ask(ctx, s.call("GET", "entry", ofKey(args[1]), nil), &entry); err != nil {
				return err
			}
			var value strings.Builder
			if err := s.c.Fetch(ctx, s.call("GET", "value", ofKey(args[1]), nil), &value); err != nil {
				return err
			}
			entry.Value, entry.Size = operator.Bytes(value.String()), int64(value.Len())
			return printJSON(cmd, entry)
		})
	}
	return cmd
}

func newKVPut() *cobra.Command {
	t := kvTarget()
	var file string
	var ttl time.Duration
	var metadata map[string]string
	cmd := &cobra.Command{Use: "put NAMESPACE KEY [VALUE]", Short: "store a value", Args: cobra.RangeArgs(2, 3),
		Long:    "Store VALUE, the bytes of --file, or else standard input, in place of what the key held, with its metadata and time to live.",
		Example: "  edged kv put cache greeting hello --ttl 1h\n  edged kv put cache logo --file logo.png --metadata type=image/png"}
	t.storeFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&file, "file", "", "file with the value")
	f.DurationVar(&ttl, "ttl", 0, "time to live, whole seconds from 1m0s (default: for ever)")
	f.StringToStringVar(&metadata, "metadata", nil, "metadata as name=value; may be given several times")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 3 && file != "" {
			return usagef("both VALUE and --file are given")
		}
		seconds, err := wholeSeconds("ttl", ttl)
		if err != nil {
			return err
		}
		query := ofKey(args[1])
		if seconds > 0 {
			query.Set("ttl", strconv.FormatInt(seconds, 10))
		}
		if len(metadata) > 0 {
			text, err := json.Marshal(metadata)
			if err != nil {
				return err
			}
			query.Set("metadata", string(text))
		}
		body, size, done, err := valueOf(cmd, args[2:], file)
		if err != nil {
			return usageError{explain(err)}
		}
		defer done()
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			if err := s.c.Send(ctx, s.call("PUT", "value", query, nil), body, size); err != nil {
				return err
			}
			return t.say(cmd, map[string]string{"put": args[1]}, "put %q", args[1])
		})
	}
	return cmd
}

// valueOf opens the value of a put; size is -1 for standard input.
func valueOf(cmd *cobra.Command, args []string, file string) (body io.Reader, size int64, done func() error, err error) {
	none := func() error { return nil }
	switch {
	case len(args) > 0:
		return strings.NewReader(args[0]), int64(len(args[0])), none, nil
	case file == "":
		return cmd.InOrStdin(), -1, none, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, none, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return f, -1, f.Close, err
	}
	return f, info.Size(), f.Close, nil
}

func newKVDelete() *cobra.Command {
	t := kvTarget()
	cmd := &cobra.Command{Use: "delete NAMESPACE KEY", Short: "delete a key; one that is not there is deleted already", Args: cobra.ExactArgs(2)}
	t.storeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			if err := s.c.Ask(ctx, s.call("DELETE", "value", ofKey(args[1]), nil), nil); err != nil {
				return err
			}
			return t.say(cmd, map[string]string{"deleted": args[1]}, "deleted %q", args[1])
		})
	}
	return cmd
}

func newKVList() *cobra.Command {
	t := kvTarget()
	var prefix string
	var limit int
	cmd := &cobra.Command{Use: "list NAMESPACE", Short: "list keys in the order of their bytes", Args: cobra.ExactArgs(1),
		Long: "List keys, one a line, in the order of their UTF-8 bytes. A key that is not printable is quoted. The list is no snapshot."}
	t.storeFlags(cmd)
	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with this")
	cmd.Flags().IntVar(&limit, "limit", 0, "how many keys at most (default: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if limit < 0 {
			return usagef("--limit: %d is negative", limit)
		}
		return t.with(cmd, args[0], func(ctx context.Context, s *store) error {
			keys := []string{}
			err := s.pages(ctx, "keys", url.Values{"prefix": {prefix}}, limit, func(raw json.RawMessage) (int, error) {
				var page struct{ Keys []string }
				if err := json.Unmarshal(raw, &page); err != nil {
					return 0, err
				}
				if t.json {
					keys = append(keys, page.Keys...)
					return len(page.Keys), nil
				}
				for _, k := range page.Keys {
					fmt.Fprintln(cmd.OutOrStdout(), printable(k))
				}
				return len(page.Keys), nil
			})
			if err != nil || !t.json {
				return err
			}
			return printJSON(cmd, keys)
		})
	}
	return cmd
}

// pages reads a list page by page until limit items (0: all) were taken; take says how many a page has.
func (s *store) pages(ctx context.Context, path string, query url.Values, limit int, take func(json.RawMessage) (int, error)) error {
	for got := 0; limit == 0 || got < limit; {
		size := 1000
		if limit > 0 {
			size = min(size, limit-got)
		}
		query.Set("limit", strconv.Itoa(size))
		var raw json.RawMessage
		if err := s.c.Ask(ctx, s.call("GET", path, query, nil), &raw); err != nil {
			return err
		}
		n, err := take(raw)
		if err != nil {
			return err
		}
		got += n
		var next struct {
			Cursor *string `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &next); err != nil || next.Cursor == nil {
			return err
		}
		query.Set("cursor", *next.Cursor)
	}
	return nil
}

// printable is a text as it is, or quoted if a terminal could make something else of it.
func printable(text string) string {
	quoted := strconv.Quote(text)
	if text != "" && quoted[1:len(quoted)-1] == text {
		return text
	}
	return quoted
}

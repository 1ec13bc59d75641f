package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"edged/control/client"
)

func newTokensCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "create, list and revoke bearer tokens",
		Long:  "Manage the principals that may use the node's Host API; the node's own token, or one of an operator for every Space, is needed.",
		Args:  cobra.NoArgs,
		RunE:  needSubcommand,
	}
	cmd.AddCommand(newTokensCreate(), newTokensList(), newTokensRevoke())
	return cmd
}

func newTokensCreate() *cobra.Command {
	var t target
	var in client.Token
	cmd := &cobra.Command{
		Use:   "create --tenant T --principal P --role reader|editor|operator [--space S …]",
		Short: "create a token and print it once",
		Long: "Create a token for a principal and print it: the node keeps only its hash. A principal outlives its tokens, so a new token\n" +
			"of the same principal continues what the old one began.",
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	t.flags(f)
	f.StringVar(&in.Tenant, "tenant", "", "tenant of the principal (required)")
	f.StringVar(&in.Principal, "principal", "", "stable name of whoever uses the token (required)")
	f.StringVar(&in.Role, "role", "", "reader, editor or operator (required)")
	f.StringSliceVar(&in.Spaces, "space", nil, "Space that it may use; may be given several times (default: every Space of the tenant)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		if in.Tenant == "" || in.Principal == "" || in.Role == "" {
			return usagef("--tenant, --principal and --role are needed")
		}
		made, err := c.CreateToken(cmd.Context(), in)
		if err != nil {
			return explain(err)
		}
		if t.json {
			return printJSON(cmd, made)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "token %s of %s in tenant %s; it is shown only now\n", made.ID, made.Principal, made.Tenant)
		_, err = fmt.Fprintln(cmd.OutOrStdout(), made.Secret)
		return err
	}
	return cmd
}

func newTokensList() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "list", Short: "list tokens, without their secrets", Args: cobra.NoArgs}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		list, err := c.Tokens(cmd.Context())
		if err != nil {
			return explain(err)
		}
		if t.json {
			return printJSON(cmd, append([]client.Token{}, list...))
		}
		tab := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "ID\tTENANT\tPRINCIPAL\tROLE\tSPACES\tCREATED\tLAST USED")
		for _, k := range list {
			spaces := strings.Join(k.Spaces, ",")
			if spaces == "" {
				spaces = "every"
			}
			used := "never"
			if k.UsedAt != nil {
				used = *k.UsedAt
			}
			fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Tenant, k.Principal, k.Role, spaces, k.CreatedAt, used)
		}
		return tab.Flush()
	}
	return cmd
}

func newTokensRevoke() *cobra.Command {
	var t target
	cmd := &cobra.Command{Use: "revoke ID", Short: "end a token at once", Args: cobra.ExactArgs(1)}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.RevokeToken(cmd.Context(), args[0]); err != nil {
			return explain(err)
		}
		return t.say(cmd, map[string]string{"revoked": args[0]}, "revoked %s", args[0])
	}
	return cmd
}

package main

import "github.com/spf13/cobra"

func newSecretsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "the key that secrets are sealed with",
		Args:  cobra.NoArgs,
		RunE:  needSubcommand,
	}
	cmd.AddCommand(newSecretsRotate())
	return cmd
}

func newSecretsRotate() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "make a fresh node key and seal every secret with it anew, while the node serves",
		Long: "Make a fresh node key, seal every secret with it anew and forget the old key. The node serves meanwhile. Values do not change:\n" +
			"a new value needs a new version of its worker. Backups that were made before need the old key file: keep both.",
		Args: cobra.NoArgs,
	}
	t.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := t.connect(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		n, key, err := c.RotateKey(cmd.Context())
		if err != nil {
			return explain(err)
		}
		return t.say(cmd, map[string]any{"resealed": n, "key": key}, "%d records are sealed with the new key %s", n, key)
	}
	return cmd
}

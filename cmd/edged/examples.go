package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are what the help of each command shows, by its path; a command with subcommands shows the first line of each.
var examples = map[string]string{
	"run":               "edged run\nedged run --peer 10.0.0.1:8090 --gossip 10.0.0.1:8091\nedged run --config /etc/edged.toml\nedged run --https 0.0.0.0:443 --endpoint-domain edge.example.com --custom-domain-zones example.com",
	"doctor":            "edged doctor\nedged doctor --config /etc/edged.toml --json",
	"version":           "edged version --json",
	"drain":             "edged drain --wait\nedged drain --explain",
	"upgrade":           "edged upgrade\nedged upgrade --binary /opt/edged/edged-1.4",
	"deploy":            "edged deploy\nedged deploy examples/hello --dry-run\nedged deploy . --space staging --weight 5%",
	"weights":           "edged weights hello\nedged weights hello 2dd0b6=5%",
	"rollback":          "edged rollback hello",
	"delete":            "edged delete hello\nedged delete hello --with-dependents --yes",
	"status":            "edged status\nedged status --json\nedged status --control-url https://edge.example.com:8081 --ca-file ca.pem --token-file token",
	"tail":              "edged tail hello\nedged tail hello --outcome error\nedged tail hello --status 5xx --sample 1% --json",
	"explain":           "edged explain http://hello.edge.localhost/\nedged explain http://hello.edge.localhost/ --send",
	"audit":             "edged audit\nedged audit --outcome refused",
	"secrets rotate":    "edged secrets rotate",
	"cron list":         "edged cron list",
	"cron trigger":      "edged cron trigger hello.cron.3f0c",
	"resources list":    "edged resources list --space default",
	"resources show":    "edged resources show hello",
	"resources create":  "edged resources create cache '{}' --form EdgeKVNamespace",
	"resources update":  "edged resources update tasks '{\"messageRetentionSeconds\":86400}'",
	"resources delete":  "edged resources delete cache",
	"tokens create":     "edged tokens create --tenant acme --principal ci --role editor --space default",
	"tokens list":       "edged tokens list",
	"tokens revoke":     "edged tokens revoke t-3f0c",
	"fleet invite":      "edged fleet invite --role edge --label site=fra --for 1h",
	"fleet nodes":       "edged fleet nodes",
	"fleet add-control": "edged fleet add-control fra-2",
	"fleet drain":       "edged fleet drain fra-2\nedged fleet drain fra-2 --off",
	"fleet remove":      "edged fleet remove fra-2",
	"kv list":           "edged kv list cache --prefix user/",
	"kv get":            "edged kv get cache user/1 > value",
	"kv put":            "edged kv put cache user/1 hello --ttl 1h\nedged kv put cache picture --file cat.jpg",
	"kv delete":         "edged kv delete cache user/1",
	"kv lag":            "edged kv lag --json",
	"kv position":       "edged kv position",
	"kv wait":           "edged kv wait --until \"$(edged kv position --data-dir other)\" --timeout 30s",
	"sql":               "edged sql app\nedged sql app -e 'select count(*) from notes' --json",
	"sql export":        "edged sql export app app.sql",
	"sql import":        "edged sql import app app.sql",
	"sql slow":          "edged sql slow",
	"queue stats":       "edged queue stats",
	"queue peek":        "edged queue peek tasks --bodies",
	"queue redrive":     "edged queue redrive tasks-dead --rate 100",
	"queue purge":       "edged queue purge tasks",
	"objects ls":        "edged objects ls files photos/",
	"objects stat":      "edged objects stat files photos/cat.jpg",
	"objects get":       "edged objects get files photos/cat.jpg copy.jpg",
	"objects put":       "edged objects put files photos/ cat.jpg",
	"objects rm":        "edged objects rm files photos/cat.jpg",
	"objects scrub":     "edged objects scrub",
	"backup all":        "edged backup all /backups",
	"restore all":       "edged restore all /backups/edged-20260601T120000Z --node-key node.key --data-dir data",
	"backup control":    "edged backup control /backups",
	"backup kv":         "edged backup kv /backups",
	"backup sql":        "edged backup sql /backups",
	"backup queue":      "edged backup queue /backups",
	"backup objects":    "edged backup objects /backups",
	"restore control":   "edged restore control control-20260601T120000Z.tar --node-key node.key --data-dir data",
	"restore kv":        "edged restore kv kv-20260601T120000Z.tar --data-dir data",
	"restore sql":       "edged restore sql sql-20260601T120000Z.tar --data-dir data",
	"restore queue":     "edged restore queue queue-20260601T120000Z.tar --data-dir data",
	"restore objects":   "edged restore objects objects-20260601T120000Z.tar --data-dir data",
	"selftest": "edged selftest\nedged selftest --json --skip limit.cpu\n" +
		"edged selftest --control-url https://edge.example.com:8081 --token-file token --front https://192.0.2.1:443\n" +
		"edged selftest --remove edged-selftest-0123456789ab",
	"completion bash":       "edged completion bash > /etc/bash_completion.d/edged",
	"completion zsh":        "edged completion zsh > \"${fpath[1]}/_edged\"",
	"completion fish":       "edged completion fish > ~/.config/fish/completions/edged.fish",
	"completion powershell": "edged completion powershell | Out-String | Invoke-Expression",
}

// giveExamples fills the help of cmd, at path below the root, and of all below it.
func giveExamples(cmd *cobra.Command, path []string) {
	lines := strings.Split(examples[strings.Join(path, " ")], "\n")
	if len(path) > 0 && lines[0] == "" {
		lines = nil
	}
	for _, child := range cmd.Commands() {
		giveExamples(child, append(path[:len(path):len(path)], child.Name()))
		first, _, _ := strings.Cut(strings.TrimSpace(child.Example), "\n")
		if len(path) > 0 && first != "" {
			lines = append(lines, first)
		}
	}
	if len(path) > 0 && len(lines) > 0 {
		cmd.Example = "  " + strings.Join(lines, "\n  ")
	}
}

package main

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"edged/node"
)

func traceFlags(f *pflag.FlagSet, o *node.TraceOptions) {
	f.StringVar(&o.Endpoint, "otlp-endpoint", "", "collector that spans are sent to by OTLP over HTTP, like http://127.0.0.1:4318; empty = no traces (or OTEL_EXPORTER_OTLP_ENDPOINT)")
	f.StringVar(&o.Headers, "otlp-headers", "", "file (mode 0600) with a line \"NAME: VALUE\" for each field that the collector wants")
	f.StringVar(&o.CAFile, "otlp-ca-file", "", "PEM file with the authorities of an https collector (default: the system's)")
	f.Float64Var(&o.Sample, "trace-sample", 0.01, "share of the traces that begin here and are recorded, 0 to 1; those of --trusted-proxies go by what these have decided")
}

// applyOTel takes from OpenTelemetry's own environment variables what flags, EDGED_ variables and the file have left alone. Those for
// traces win over those for everything. OTEL_SDK_DISABLED stands for no traces at all.
func applyOTel(o *node.TraceOptions, lookup func(string) (string, bool)) error {
	first := func(names ...string) string {
		for _, name := range names {
			if v, ok := lookup(name); ok && v != "" {
				return v
			}
		}
		return ""
	}
	if strings.EqualFold(first("OTEL_SDK_DISABLED"), "true") {
		*o = node.TraceOptions{}
		return nil
	}
	o.Service = first("OTEL_SERVICE_NAME")
	if o.Endpoint == "" {
		if o.Endpoint = first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); o.Endpoint == "" {
			if base := first("OTEL_EXPORTER_OTLP_ENDPOINT"); base != "" {
				o.Endpoint = strings.TrimRight(base, "/") + "/v1/traces"
			}
		}
		if o.Endpoint == "" {
			return nil
		}
		if p := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && !strings.HasPrefix(p, "http/") {
			return usagef("OTEL_EXPORTER_OTLP_PROTOCOL is %q: traces are sent over HTTP alone; name the collector's HTTP port in --otlp-endpoint, or set OTEL_SDK_DISABLED=true", p)
		}
	}
	o.HeadersEnv = first("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
	if o.CAFile == "" && strings.HasPrefix(o.Endpoint, "https:") {
		o.CAFile = first("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")
	}
	return nil
}

// otelEnvironment is applyOTel with the process's environment.
func otelEnvironment(o *node.TraceOptions) error { return applyOTel(o, os.LookupEnv) }

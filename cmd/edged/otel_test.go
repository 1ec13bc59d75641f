package main

import (
	"fmt"
	"strings"
	"testing"

	"edged/internal/trace"
	"edged/node"
)

// OpenTelemetry's variables fill what the node's own settings leave open, those for traces first; a collector that
// speaks gRPC alone is refused and not tried in vain.
func TestOTelEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags trace.Settings
		env   string
		want  string // endpoint, headers, authorities and service; or a part of the error
	}{
		{"nothing", trace.Settings{}, "", "   "},
		{"base", trace.Settings{}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/ OTEL_SERVICE_NAME=edge", "http://c:4318/v1/traces   edge"},
		{"traces first", trace.Settings{}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:1 OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c:2/x OTEL_EXPORTER_OTLP_HEADERS=a=b OTEL_EXPORTER_OTLP_CERTIFICATE=/ca",
			"https://c:2/x a=b /ca "},
		{"flags first", trace.Settings{Endpoint: "https://mine", CAFile: "mine.pem"}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:1 OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_CERTIFICATE=/ca", "https://mine  mine.pem "},
		{"protobuf", trace.Settings{}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "http://c/v1/traces   "},
		{"gRPC", trace.Settings{}, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317 OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "over HTTP alone"},
		{"gRPC and no endpoint", trace.Settings{}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "   "},
		{"disabled", trace.Settings{Endpoint: "https://mine"}, "OTEL_SDK_DISABLED=TRUE", "   "},
	} {
		env := map[string]string{}
		for _, kv := range strings.Fields(tt.env) {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		o := node.TraceOptions{Settings: tt.flags}
		err := applyOTel(&o, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
		got := fmt.Sprint(o.Endpoint, " ", o.HeadersEnv, " ", o.CAFile, " ", o.Service)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"edged/cmd/edged/deploy"
	"edged/control/client"
)

// What a status shows besides the workers is for the one who is woken by an alert: what is broken and why, and how the node fares.

// trouble is a Resource that is not as it should be.
type trouble struct {
	Space string `json:"space"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	UID   string `json:"uid"`
	Why   string `json:"why"`
}

// maxTrouble bounds the Resources whose Operation is asked for, and what a terminal shows.
const maxTrouble = 20

// troubleOf says what is wrong with a Resource; false for nothing.
func troubleOf(ctx context.Context, c *client.Client, r *client.Resource, ask bool) (trouble, bool) {
	t := trouble{Space: r.Space, Kind: deploy.Kind(r.Form), Name: r.Name, UID: r.UID}
	var conditions []struct{ Reason, HostReason string }
	_ = json.Unmarshal(r.HostConditions, &conditions) // what cannot be read says nothing
	var why []string
	for _, c := range conditions {
		why = append(why, strings.TrimSuffix(c.Reason+": "+c.HostReason, ": "))
	}
	if r.Phase != "idle" {
		said := r.Phase
		if ask {
			if op, err := c.Operation(ctx, r.LastOperation); err == nil {
				said += ", " + (&client.OperationError{Operation: op}).Error()
			}
		}
		why = append(why, said)
	}
	t.Why = strings.Join(why, "; ")
	return t, t.Why != ""
}

// vitals is how the node fares, from its metrics. Counts are since it started.
type vitals struct {
	Program   string           `json:"program"`
	UpSeconds int64            `json:"upSeconds"`
	Requests  int64            `json:"requests"`
	Inflight  int64            `json:"inflight"` // invocations at work
	Waiting   int64            `json:"waiting"`  // for admission
	Errors    map[string]int64 `json:"errors"`   // answers of the node's own, by Edged-Error
}

// maxMetrics bounds what is read of a node's metrics.
const maxMetrics = 16 << 20

// sample is one line of the metrics that has at most one label.
var sample = regexp.MustCompile(`^([a-z_]+)(?:\{[a-z]+="([^"]*)"\})? ([0-9.e+]+)$`)

// askVitals reads the metrics; nil where they cannot be had.
func askVitals(ctx context.Context, url string, now time.Time) *vitals {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil
	}
	v, err := readVitals(res.Body, now)
	if err != nil {
		return nil
	}
	return v
}

func readVitals(r io.Reader, now time.Time) (*vitals, error) {
	v := &vitals{Errors: map[string]int64{}}
	lines := bufio.NewScanner(io.LimitReader(r, maxMetrics))
	for lines.Scan() {
		m := sample.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		number, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			continue
		}
		n := int64(number)
		switch m[1] {
		case "edged_node_build_info":
			v.Program = m[2]
		case "process_start_time_seconds":
			v.UpSeconds = now.Unix() - n
		case "edged_router_request_duration_seconds_count":
			v.Requests += n
		case "edged_router_invocations_inflight":
			v.Inflight = n
		case "edged_router_invocations_waiting":
			v.Waiting = n
		case "edged_router_errors_total":
			if n > 0 {
				v.Errors[m[2]] = n
			}
		}
	}
	if v.Program == "" {
		return nil, errors.Join(lines.Err(), errors.New("these are no metrics of a node"))
	}
	return v, lines.Err()
}

func (v *vitals) write(w io.Writer) {
	fmt.Fprintf(w, "program  edged %s, up %v\n", v.Program, time.Duration(v.UpSeconds)*time.Second)
	fmt.Fprintf(w, "load     %d invocations at work, %d waiting, %d requests since the start\n", v.Inflight, v.Waiting, v.Requests)
	if len(v.Errors) > 0 {
		fmt.Fprintf(w, "errors   %s since the start\n", counted(v.Errors))
	}
}

func writeTrouble(w io.Writer, list []trouble) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\nnot as it should be: %d\n", len(list))
	for i, t := range list {
		if i == maxTrouble {
			fmt.Fprintf(w, "  and %d more: see --json\n", len(list)-i)
			return
		}
		fmt.Fprintf(w, "  %s/%s  %s  %s\n", t.Space, t.Name, t.Kind, t.Why)
	}
}

// counted lists counts, the largest first.
func counted(counts map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	return strings.Join(names, ", ")
}

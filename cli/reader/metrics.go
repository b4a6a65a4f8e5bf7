//go:build !js

package reader

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/metrics"
)

// listenAddress parses --metrics. Without a host it means this host only; *
// means all addresses.
func listenAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("--metrics %q: expected an address and a port, as :9090 or 10.0.0.1:9090", text)
	}
	switch host {
	case "":
		host = "127.0.0.1"
	case "*":
		host = ""
	}
	return net.JoinHostPort(host, port), nil
}

// serve starts the server of metrics.
func (r *Running) serve() error {
	address, err := listenAddress(r.watch.Metrics)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	if !r.app.Flags.Quiet {
		scheme := "http"
		if r.access.certificate != nil {
			scheme = "https"
		}
		fmt.Fprintf(r.app.Err, "metrics on %s://%s/metrics\n", scheme, listener.Addr())
	}
	if text := r.access.exposure(listener.Addr()); text != "" {
		r.app.Advise(text)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", r.scrape)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ackscope: the metrics are at /metrics")
	})
	server := newMetricsServer(mux, r.access)
	r.server = server
	go func() { _ = server.Serve(metricsListener(listener, r.access)) }() // ends at Close
	return nil
}

// scrape answers with all metrics, as they are between two frames.
func (r *Running) scrape(w http.ResponseWriter, _ *http.Request) {
	state := metrics.Capture{Process: process(), Cause: r.common.report(r, time.Now())}
	r.mu.Lock()
	state.Unsaved, state.Fragments = r.unsaved, r.decoder.FragmentStats()
	r.interfaces(&state)
	text := r.collector.Append(nil, r.Session, r.limits, &state)
	r.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(text) // the client may be gone
}

// interfaces records what the kernel counted, or which files are read.
func (r *Running) interfaces(state *metrics.Capture) {
	if r.Reader.Live == nil {
		for i, n := range r.Each {
			state.Interfaces = append(state.Interfaces, metrics.Interface{Name: r.Reader.In.FileName(i), Frames: n})
		}
		return
	}
	st, err := r.Reader.Live.Group.Statistics()
	if err != nil {
		st = make([]capture.Statistics, len(r.Each)) // without known counts, all counts are 0
	}
	freezes := r.Reader.Live.Group.Freezes()
	for i, in := range r.Reader.Live.Group.Interfaces() {
		state.Interfaces = append(state.Interfaces,
			metrics.Interface{Name: in.Name, Frames: r.Each[i], Freezes: freezes[i], Statistics: st[i]})
	}
}

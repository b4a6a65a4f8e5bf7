package reader

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/interfaces"
)

// WatchFlags are the flags of commands that can read traffic without end.
type WatchFlags struct {
	live    bool
	Metrics string
	Alerts  []string
	bounds  interfaces.Bounds
	every   time.Duration

	// Files of the metrics server: its bearer token, and TLS.
	tokenFile, certificate, key string

	Set func(string) bool // reports whether a flag was given
}

// Register adds the flags of every such command. listing adds those for
// printing intermediate results.
func (w *WatchFlags) Register(a *app.App, c *cobra.Command, listing bool) {
	f := c.Flags()
	if listing {
		f.BoolVar(&w.live, "live", false,
			"read in one run and print on the way, as -i does: for tcpdump -U -w - | ackscope …")
		f.DurationVar(&w.every, "every", 0, "print what changed, as provisional, every so often (`5s`); on a terminal: how "+
			"often the table is drawn (1s)")
	}
	f.StringVar(&w.Metrics, "metrics", "",
		"serve Prometheus metrics on `ADDRESS:PORT`; :9090 is for this host only, *:9090 for all")
	f.StringVar(&w.tokenFile, "metrics-token-file", "", "ask who reads metrics for the bearer token in `FILE`")
	f.StringVar(&w.certificate, "metrics-tls-cert", "", "serve metrics by TLS, with the certificates in `FILE.pem`")
	f.StringVar(&w.key, "metrics-tls-key", "", "the private key of --metrics-tls-cert, in `FILE.pem`")
	f.StringArrayVar(&w.Alerts, "alert", nil,
		"print what is new of the findings of a `RULE`, or of a severity and above, as they occur (repeatable)")
	w.RegisterBounds(c, "; the rest is summed", " (live: 5m)")
	_ = c.RegisterFlagCompletionFunc("alert", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		words := []string{"note", "warn", "error"}
		for _, r := range a.Rules() {
			words = append(words, r.ID+"\t"+r.Summary)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
}

// RegisterWatched adds the flags of a listing that reads files or live traffic.
// They say what to read, what to save, how to watch, and which rows to filter.
func RegisterWatched(a *app.App, c *cobra.Command, live *LiveFlags, watch *WatchFlags, text *string) {
	live.Register(c)
	a.Writes(c)
	watch.Register(a, c, true)
	JoinFlag(a, c)
	FilterFlag(a, c, text)
}

// RegisterBounds adds the flags that limit the memory of a command that can
// read without end.
func (w *WatchFlags) RegisterBounds(c *cobra.Command, flows, idle string) {
	w.bounds.Register(c, flows, idle)
	w.Set = c.Flags().Changed
}

// asked reports whether any of the flags was given. The capture is then read
// like a live one.
func (w *WatchFlags) asked() bool {
	for _, name := range []string{
		"live", "every", "metrics", "metrics-token-file", "metrics-tls-cert", "metrics-tls-key",
		"alert", "max-flows", "flow-idle",
	} {
		if w.Set(name) {
			return true
		}
	}
	return false
}

// Limits returns the limits of the analysis. memory is the limit of the whole
// program, in bytes.
func (w *WatchFlags) Limits(a *app.App, endless bool) (l analyze.Limits, memory int64, err error) {
	l, memory = a.Limits(0), a.Memory.Bytes
	if endless {
		if l, memory, err = a.LiveLimits(); err != nil {
			return l, 0, err
		}
	}
	if w.every < 0 {
		return l, 0, interfaces.ErrBounds
	}
	return l, memory, w.bounds.Apply(&l)
}

// parseAlerts returns which findings are printed as they occur, or nil for
// none.
func parseAlerts(a *app.App, words []string) (*alerts, error) {
	if len(words) == 0 {
		return nil, nil
	}
	x := &alerts{rules: map[string]bool{}, least: 255}
	for _, word := range words {
		if s, ok := app.ParseSeverity(word); ok {
			x.least = min(x.least, s)
			continue
		}
		known := false
		for _, r := range a.Rules() {
			known = known || r.ID == word
		}
		if !known {
			return nil, fmt.Errorf("--alert: %w; or note, warn, error", a.UnknownRule(word, a.RuleNames()))
		}
		x.rules[word] = true
	}
	return x, nil
}

// Streams reports whether the command line asks for results while the traffic
// arrives.
func (l *LiveFlags) Streams(w *WatchFlags) bool { return len(l.Devices) > 0 || w.asked() }

// Endless reads files within the limits of traffic that may never end.
func (w *WatchFlags) Endless() { w.live = true }

// endless reports whether the traffic may never end.
func (l *LiveFlags) endless(w *WatchFlags) bool { return len(l.Devices) > 0 || w.live }

// Each runs a command over the interfaces together, or over each recording in
// turn.
func (l *LiveFlags) Each(a *app.App, w *WatchFlags, args []string, run func(*Recording) error) error {
	if len(l.Devices) > 0 {
		if len(args)+len(a.Flags.Read) > 0 {
			return ErrIAndFile
		}
		return run(l.Recording())
	}
	list, failed, err := recordings(a, args)
	if err != nil {
		return err
	}
	switch {
	case len(list) > 1 && l.Write != "":
		return errApart("-w "+l.Write, len(list))
	case len(list) > 1 && w.Metrics != "":
		return errApart("--metrics "+w.Metrics, len(list))
	}
	return each(a, list, failed, func(r *Recording) error {
		if l.Count > 0 && l.Counted >= l.Count {
			return errEnough
		}
		return run(r)
	})
}

// Recording returns the recording of a live capture, in which all interfaces
// are one.
func (l *LiveFlags) Recording() *Recording {
	return &Recording{Paths: []string{l.Device()}, Files: 1}
}

// Left returns how many packets of -c are still to be read, or 0 for no limit.
func (l *LiveFlags) Left() uint64 {
	if l.Count == 0 {
		return 0
	}
	return l.Count - l.Counted
}

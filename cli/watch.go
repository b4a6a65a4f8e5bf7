package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
)

// watchFlags are the flags of commands that can look at traffic without end.
type watchFlags struct {
	live    bool
	metrics string
	alerts  []string
	flows   int
	idle    time.Duration
	every   time.Duration

	// Of the server of metrics: files of its bearer token and of TLS.
	tokenFile, certificate, key string

	set func(string) bool // whether a flag was given
}

// register adds what every such command takes; listing ones also print on the way.
func (w *watchFlags) register(a *app, c *cobra.Command, listing bool) {
	f := c.Flags()
	if listing {
		f.BoolVar(&w.live, "live", false, "read in one run and print on the way, as -i does: for tcpdump -U -w - | ackscope …")
		f.DurationVar(&w.every, "every", 0, "print what changed, as provisional, every so often (`5s`); on a terminal: how often the table is drawn (1s)")
	}
	f.StringVar(&w.metrics, "metrics", "", "serve Prometheus metrics on `ADDRESS:PORT`; :9090 is for this host only, *:9090 for all")
	f.StringVar(&w.tokenFile, "metrics-token-file", "", "ask who reads metrics for the bearer token in `FILE`")
	f.StringVar(&w.certificate, "metrics-tls-cert", "", "serve metrics by TLS, with the certificates in `FILE.pem`")
	f.StringVar(&w.key, "metrics-tls-key", "", "the private key of --metrics-tls-cert, in `FILE.pem`")
	f.StringArrayVar(&w.alerts, "alert", nil, "print findings of a `RULE`, or of a severity and above, as they occur (repeatable)")
	w.registerBounds(c, "; the rest is summed", " (live: 5m)")
	_ = c.RegisterFlagCompletionFunc("alert", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		words := []string{"note", "warn", "error"}
		for _, r := range a.rules() {
			words = append(words, r.ID+"\t"+r.Summary)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
}

// registerBounds adds what bounds the memory of a command that can read without end.
func (w *watchFlags) registerBounds(c *cobra.Command, flows, idle string) {
	f := c.Flags()
	f.IntVar(&w.flows, "max-flows", 0, fmt.Sprintf("remember at most `N` flows (live: %d)%s", analyze.LiveLimits.Flows, flows))
	f.DurationVar(&w.idle, "flow-idle", 0, "end flows that are silent for so `long`"+idle)
	w.set = f.Changed
}

// asked reports whether any of them was given, so that the capture is read as a
// live one is.
func (w *watchFlags) asked() bool {
	for _, name := range []string{"live", "every", "metrics", "metrics-token-file", "metrics-tls-cert", "metrics-tls-key", "alert", "max-flows", "flow-idle"} {
		if w.set(name) {
			return true
		}
	}
	return false
}

// limits gives what bounds the analysis, and the whole program, in bytes.
func (w *watchFlags) limits(a *app, endless bool) (l analyze.Limits, memory int64, err error) {
	l, memory = a.limits(0), a.memory.bytes
	if endless {
		if l, memory, err = a.liveLimits(); err != nil {
			return l, 0, err
		}
	}
	if w.flows < 0 || w.idle < 0 || w.every < 0 {
		return l, 0, errors.New("--max-flows, --flow-idle, --every: expected something above 0")
	}
	if w.flows > 0 || w.idle > 0 {
		l.Room = false // as traffic without end is read
	}
	if w.flows > 0 {
		l.Flows = w.flows
	}
	if w.idle > 0 {
		l.Idle = w.idle
	}
	return l, memory, nil
}

// alerts says which findings are printed as they occur.
func (a *app) parseAlerts(words []string) (*alerts, error) {
	if len(words) == 0 {
		return nil, nil
	}
	x := &alerts{rules: map[string]bool{}, least: 255}
	for _, word := range words {
		if s, ok := parseSeverity(word); ok {
			x.least = min(x.least, s)
			continue
		}
		known := false
		for _, r := range a.rules() {
			known = known || r.ID == word
		}
		if !known {
			return nil, fmt.Errorf("--alert: %w; or note, warn, error", a.unknownRule(word))
		}
		x.rules[word] = true
	}
	return x, nil
}

// streams tells whether the command line asks for traffic that comes as it is
// looked at.
func (l *liveFlags) streams(w *watchFlags) bool { return len(l.devices) > 0 || w.asked() }

// endless tells whether there may be no end to it.
func (l *liveFlags) endless(w *watchFlags) bool { return len(l.devices) > 0 || w.live }

// each runs a command over what the flags name: the interfaces together, or each
// recording, one after the other.
func (l *liveFlags) each(a *app, w *watchFlags, args []string, run func(*recording) error) error {
	if len(l.devices) > 0 {
		if len(args)+len(a.flags.read) > 0 {
			return errIAndFile
		}
		return run(l.recording())
	}
	list, err := a.recordings(args)
	if err != nil {
		return err
	}
	switch {
	case len(list) > 1 && l.write != "":
		return errApart("-w "+l.write, len(list))
	case len(list) > 1 && w.metrics != "":
		return errApart("--metrics "+w.metrics, len(list))
	}
	for _, r := range list {
		if l.count > 0 && l.counted >= l.count {
			return nil
		}
		if err := run(r); err != nil {
			return err
		}
	}
	return nil
}

// recording is that of a live capture: what comes from all interfaces is one.
func (l *liveFlags) recording() *recording {
	return &recording{paths: []string{l.device()}, files: 1, last: true}
}

// left is how many packets of -c are still to be read; 0 for no limit.
func (l *liveFlags) left() uint64 {
	if l.count == 0 {
		return 0
	}
	return l.count - l.counted
}

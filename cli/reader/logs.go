package reader

import (
	"fmt"
	"iter"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/gamelog"
)

// Logs are the game's own logs that a command reads beside a capture. A nil *Logs has none.
type Logs struct {
	app    *app.App
	texts  []string // of --log
	logs   []*gamelog.Log
	owners []gamelog.Owner
	read   bool
	trace  *gamelog.Trace
}

// LogFlag registers --log.
func LogFlag(a *app.App, c *cobra.Command) *Logs {
	l := &Logs{app: a}
	c.Flags().StringArrayVar(&l.texts, "log", nil,
		"the game's own log, `[SIDE=]FILE.jsonl`; SIDE is client, server, a, b or an address (repeatable; docs/game-log.md)")
	_ = c.RegisterFlagCompletionFunc("log", func(_ *cobra.Command, _ []string, word string) ([]string,
		cobra.ShellCompDirective,
	) {
		if strings.Contains(word, "=") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return []string{"client=\tthe log of the client", "server=\tthe log of the server"},
			cobra.ShellCompDirectiveNoSpace
	})
	return l
}

// owner splits the value of --log.
func owner(text string) (gamelog.Owner, string) {
	word, file, ok := strings.Cut(text, "=")
	if !ok {
		return gamelog.Owner{}, text
	}
	if slices.Contains([]string{"client", "server", "a", "b"}, word) {
		return gamelog.Owner{Role: word}, file
	}
	if addr, err := netip.ParseAddrPort(word); err == nil {
		return gamelog.Owner{Addr: addr}, file
	}
	if ip, err := netip.ParseAddr(strings.Trim(word, "[]")); err == nil {
		return gamelog.Owner{IP: ip}, file
	}
	return gamelog.Owner{}, text // a file whose name has "="
}

// Asked reports whether there are logs to read.
func (l *Logs) Asked() bool { return l != nil && len(l.texts) > 0 }

// Again returns the logs for another capture, which may be read at the same time.
func (l *Logs) Again() *Logs {
	return &Logs{app: l.app, texts: l.texts, logs: l.logs, owners: l.owners, read: l.read}
}

// Load reads the logs. Later calls do nothing.
func (l *Logs) Load() error {
	if l == nil || l.read {
		return nil
	}
	l.read = true
	for _, text := range l.texts {
		who, path := owner(text)
		log, err := load(path)
		if err != nil {
			return fmt.Errorf("--log %s: %w", text, err)
		}
		l.logs, l.owners = append(l.logs, log), append(l.owners, who)
	}
	return nil
}

func load(path string) (*gamelog.Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return gamelog.Read(path, f)
}

// Files returns each log's side, as "client=" or empty, and its path.
func (l *Logs) Files() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, text := range l.texts {
			_, path := owner(text)
			if !yield(strings.TrimSuffix(text, path), path) {
				return
			}
		}
	}
}

// Sink begins a recording. It returns a sink that also passes records to next, which may be
// nil. Without logs it is next.
func (l *Logs) Sink(next analyze.Sink) analyze.Sink {
	if !l.Asked() {
		return next
	}
	l.trace = &gamelog.Trace{}
	return func(r *analyze.Record) {
		l.trace.Take(r)
		if next != nil {
			next(r)
		}
	}
}

// Report returns what the logs say of a recording that was read. It is nil without logs.
func (l *Logs) Report(s *analyze.Session) *gamelog.Report {
	if !l.Asked() || s == nil {
		return nil
	}
	start, _ := s.Span()
	r := &gamelog.Report{}
	for i := range l.logs {
		r.Logs = append(r.Logs, gamelog.Align(l.logs[i], l.owners[i], l.trace, start))
	}
	return r
}

// Forget removes a flow that a limit of the analysis has removed.
func (l *Logs) Forget(f *analyze.Flow) {
	if l.Asked() && l.trace != nil {
		l.trace.Forget(f)
	}
}

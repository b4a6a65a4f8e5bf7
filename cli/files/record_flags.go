//go:build !js

package files

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/figures"
	"github.com/ackscope/ackscope/recorder"
)

// recordFlags are the flags of the flight recorder.
type recordFlags struct {
	on    []string
	keep  time.Duration
	after time.Duration
	every time.Duration
	rate  string
	all   bool
	set   func(string) bool
}

func (f *recordFlags) register(a *app.App, c *cobra.Command) {
	flags := c.Flags()
	flags.StringArrayVar(&f.on, "on", nil,
		"record around each `trouble`: a severity and above, a rule, a condition as 'loss > 5%', or SIGUSR1 "+
			"(repeatable)")
	flags.DurationVar(&f.keep, "keep", time.Minute, "time before a trouble that its recording has")
	flags.DurationVar(&f.after, "after", 10*time.Second, "time after it was told")
	flags.BoolVar(&f.all, "all", false, "record all flows (default: those of the trouble)")
	flags.DurationVar(&f.every, "every", 0, "begin at most one recording of a rule in this `time`")
	flags.StringVar(&f.rate, "rate", "1MB",
		"recordings come to at most so many `bytes` a second on average; 0 for no limit")
	f.set = flags.Changed
	_ = c.RegisterFlagCompletionFunc("on", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective,
	) {
		words := []string{"note", "warn", "error", userSignal}
		for _, r := range a.Rules() {
			words = append(words, r.ID+"\t"+r.Summary)
		}
		return append(words, figures.Names(false)...), cobra.ShellCompDirectiveNoFileComp
	})
}

// check refuses the recorder's flags where nothing is to be recorded.
func (f *recordFlags) check() error {
	for _, name := range []string{"keep", "after", "all", "every", "rate"} {
		if f.set(name) {
			return fmt.Errorf("--%s: expected --on too, which says what is recorded", name)
		}
	}
	return nil
}

// Bounds of a row of recordings where -b gives none.
// Source: choice, a day of one recording each minute and a half, in files of a megabyte
const (
	usualFiles = 1000
	usualTotal = 1_000_000_000
)

// recordLimits are the values of -b for recordings.
type recordLimits struct {
	files   int           // number to keep
	total   int64         // bytes of all that are kept
	size    int           // bytes of one; 0 for no limit
	longest time.Duration // 0 for the recorder's own
}

func parseRecordLimits(conditions []string) (l recordLimits, err error) {
	l = recordLimits{files: usualFiles, total: usualTotal}
	for _, text := range conditions {
		kind, value, _ := strings.Cut(text, ":")
		switch kind {
		case "files":
			if l.files, err = strconv.Atoi(value); err == nil && l.files < 1 {
				err = strconv.ErrRange
			}
		case "total":
			l.total, err = app.ParseSize(value)
		case "filesize":
			var size int64
			size, err = app.ParseSize(value)
			l.size = int(size)
		case "duration":
			var seconds float64
			if seconds, err = strconv.ParseFloat(value, 64); err == nil && !(seconds > 0 && seconds <= 1e9) {
				err = strconv.ErrRange
			}
			l.longest = time.Duration(seconds * float64(time.Second))
		default:
			err = strconv.ErrSyntax
		}
		if err != nil {
			return l, fmt.Errorf("-b %q: with --on, expected files:N, total:1GB, filesize:10MB or duration:SECONDS", text)
		}
	}
	return l, nil
}

// options returns the recorder's options but for what takes its recordings.
func (f *recordFlags) options(a *app.App, l *recordLimits) (o recorder.Options, err error) {
	if f.keep <= 0 || f.after <= 0 || f.every < 0 || max(f.keep, f.after, f.every) > longestTime {
		return o, errors.New("--keep, --after, --every: expected a time above 0 and up to 10000h, as 60s")
	}
	longest := l.longest
	if longest == 0 {
		longest = usualLongest
	}
	rate := int64(0)
	if f.rate != "0" {
		if rate, err = app.ParseSize(f.rate); err != nil {
			return o, fmt.Errorf("--rate: %w", err)
		}
	}
	_, memory, err := a.LiveLimits()
	if err != nil {
		return o, err
	}
	// The state of flows takes half of the memory, and the copy of a recording that is being written another quarter.
	return recorder.Options{
		Keep: f.keep, After: f.after, Longest: max(longest, f.after), Late: toldLate, Every: f.every, All: f.all,
		Bytes: int(memory / 4), Size: l.size, Rate: rate,
	}, nil
}

// longestTime bounds the times of flags, so that sums of them fit.
const longestTime = 10_000 * time.Hour

// usualLongest is how long a recording goes on where its rule fires again and again.
// Source: choice, long enough to see a trouble that stays, and short enough to send the file
const usualLongest = 100 * time.Second

// toldLate is how long after a trouble its rule may tell of it without a loss of the time before.
// Source: choice, rules about loss wait for the acks of later packets: a second or two; silences take longer
const toldLate = 10 * time.Second

// folder checks the value of -w.
func (f *recordFlags) folder(live *reader.LiveFlags) (string, error) {
	if live.Format != "" {
		return "", errors.New("-F: recordings are pcapng, since they have comments")
	}
	info, err := os.Stat(live.Write)
	switch {
	case live.Write == "" || live.Write == "-":
		return "", errors.New("--on: expected -w FOLDER too, in which the recordings are written")
	case err != nil:
		return "", fmt.Errorf("-w: expected a folder that exists: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("-w %s: expected a folder, since each recording is a file", live.Write)
	}
	return live.Write, nil
}

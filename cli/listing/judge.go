package listing

import (
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/overview"
	"github.com/ackscope/ackscope/replay"
)

// judgement is a line that the command judge prints: what replay found of a recording.
type judgement struct {
	Paths []string // of the recording
	*overview.Verdicts
}

// JudgeCommand builds the hidden command judge. Another process runs it beside overview, where one
// process has one processor, as a browser's worker has. It prints what overview reads from
// Streams.Verdicts.
func JudgeCommand(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use: "judge FILE...", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			o, err := overviewOptions(a)
			if err != nil {
				return err
			}
			lines := json.NewEncoder(a.Writer())
			return reader.Each(a, args, func(r *reader.Recording) error {
				src, err := reader.Open(a, r, reader.Options{Keep: capture.KeepPipes})
				if err != nil {
					return err
				}
				defer src.Close()
				survey, err := learn(a, r, src, o, shareOfJudge)
				if err != nil {
					return err
				}
				file, err := replay.Run(recordingName(r), src, judgeOptions(o, survey))
				if err != nil {
					return err
				}
				return lines.Encode(judgement{r.Paths, overview.NewVerdicts(file)})
			})
		},
	}
}

// overviewOptions are the options of all runs of an overview.
func overviewOptions(a *app.App) (analyze.Options, error) {
	o, err := a.Options()
	o.Limits = a.Limits(app.JudgeCost)
	o.Limits.Flows, o.Limits.Bytes = max(1, o.Limits.Flows/2), max(1, o.Limits.Bytes/2) // two runs at a time
	return o, err
}

// judgeOptions are those of a replay with the options of an overview. The run beside it counts the
// flows that it lets go.
func judgeOptions(o analyze.Options, survey *analyze.Survey) replay.Options {
	o.Gone = nil
	return replay.Options{Analysis: o, Survey: survey}
}

// The shares of the first run that overview and judge have.
const (
	shareOfOverview = iota
	shareOfJudge
)

// learn makes the first run of an overview. Where another process helps, that is so for the first
// capture.
func learn(a *app.App, from *reader.Recording, src *reader.Reader, o analyze.Options, share int,
) (*analyze.Survey, error) {
	if trade := a.Trade; trade != nil {
		a.Trade = nil
		p := &analyze.Partner{Capture: strings.Join(from.Paths, "\n"), Share: share, Trade: trade}
		return analyze.LearnWith(p, src, o)
	}
	learned, err := analyze.Learn(src, o)
	if err != nil {
		return nil, err
	}
	return learned.Survey(), nil
}

// elsewhere reads what another process found. It is nil without one.
type elsewhere struct{ lines *json.Decoder }

func newElsewhere(from io.Reader) *elsewhere {
	if from == nil {
		return nil
	}
	return &elsewhere{json.NewDecoder(from)}
}

// find waits for the verdicts of a recording. It returns nil where the other process has failed.
func (e *elsewhere) find(of *reader.Recording) *overview.Verdicts {
	for {
		var j judgement
		if e.lines.Decode(&j) != nil {
			return nil
		}
		if slices.Equal(j.Paths, of.Paths) {
			return j.Verdicts
		}
	}
}

// both analyses and replays a recording that was learned. The function that it returns has what
// replay found, and the error says how reading ended. Where another process replays the recording,
// it is analysed here only. Where there are two processors, replay reads a file by itself at the
// same time. In a browser there is one, and a pipe cannot be opened twice: there each frame is read
// once, for both.
func both(a *app.App, from *reader.Recording, src *reader.Reader, asked replay.Options, o analyze.Options,
	other *elsewhere,
) (*analyze.Session, func() (*overview.Verdicts, error), error) {
	switch {
	case other != nil:
		session, ended := analyze.Run(src, o)
		return session, func() (*overview.Verdicts, error) {
			if v := other.find(from); v != nil {
				return v, nil
			}
			if err := src.Rewind(); err != nil {
				return nil, err
			}
			return verdicts(replay.Run(recordingName(from), src, asked))
		}, ended
	case runtime.GOMAXPROCS(0) == 1 || !from.Reopens():
		session, ended, file, err := replay.RunBeside(recordingName(from), src, asked, o)
		return session, func() (*overview.Verdicts, error) { return verdicts(file, err) }, ended
	}
	judged := judge(a, from, asked)
	session, ended := analyze.Run(src, o)
	return session, func() (*overview.Verdicts, error) { return verdicts(judged()) }, ended
}

// verdicts are those of a replay that may have failed.
func verdicts(file *replay.File, err error) (*overview.Verdicts, error) {
	return overview.NewVerdicts(file), err
}

// judge begins the replay of a recording in a goroutine of its own.
func judge(a *app.App, from *reader.Recording, asked replay.Options) func() (*replay.File, error) {
	type outcome struct {
		file  *replay.File
		err   error
		fault any
	}
	done := make(chan outcome, 1)
	go func() {
		var x outcome
		defer func() {
			x.fault = recover()
			done <- x
		}()
		var own *reader.Reader
		if own, x.err = reader.Open(a, from, reader.Options{Keep: capture.KeepPipes}); x.err != nil {
			return
		}
		defer own.Close()
		x.file, x.err = replay.Run(recordingName(from), own, asked)
	}()
	return func() (*replay.File, error) {
		x := <-done
		if x.fault != nil {
			panic(x.fault) // the program reports it as any other fault of its own
		}
		return x.file, x.err
	}
}

package reader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture/paths"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Recording is the input of one analysis: a capture file, or several files that
// are read as one. Flows and their numbers belong to one recording.
type Recording struct {
	Paths []string // in the order of machine.Ref.File; for a live capture its interfaces
	First int      // position of Paths[0] among all files of the command, from 0
	Files int      // number of all files of the command
	named bool     // output names the files, because the user may not know them

	number, of int       // position among the recordings of the command, from 1
	begun      time.Time // when the command began to read
}

// File returns a recording of one file, or of standard input for "-".
func File(path string) *Recording { return &Recording{Paths: []string{path}, Files: 1} }

// File returns the name of a frame's file. It returns "" if the command reads
// only one file, which an argument names.
func (r *Recording) File(ref machine.Ref) string {
	if !r.named || ref.File() >= len(r.Paths) {
		return ""
	}
	return r.Paths[ref.File()]
}

// Path returns the path of a frame's file. It returns "" for a frame that is
// not of the recording.
func (r *Recording) Path(ref machine.Ref) string {
	if ref.File() < len(r.Paths) {
		return r.Paths[ref.File()]
	}
	return ""
}

// Only returns the name of the recording's only file. It returns "" if the
// recording has several files, or the command reads only this one. It names
// what belongs to no frame.
func (r *Recording) Only() string {
	if len(r.Paths) != 1 {
		return ""
	}
	return r.File(machine.Ref(0))
}

// Reopens reports whether all files of the recording can be opened a second time: each is a
// regular file, and none is a pipe.
func (r *Recording) Reopens() bool {
	for _, p := range r.Paths {
		if info, err := os.Stat(p); p == "-" || err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// Named reports whether rows of output have the name of a file: the command
// reads several, or it searched directories for captures.
func (r *Recording) Named() bool { return r != nil && r.named }

// Among reports whether output names the recording: the command reads others
// too, or it searched directories for captures.
func (r *Recording) Among() bool { return r.named && (r.Files > len(r.Paths) || len(r.Paths) == 1) }

// Name returns the recording's name for a heading.
func (r *Recording) Name() string {
	if n := len(r.Paths); n > 1 {
		return fmt.Sprintf("%s to %s (%d files read as one)", r.Paths[0], r.Paths[n-1], n)
	}
	if r.Paths[0] == "-" {
		return "standard input"
	}
	return r.Paths[0]
}

// Heading prints the recording's name above its output, like head and tail. It
// prints nothing for the only recording.
func Heading(a *app.App, r *Recording) error {
	if !r.Among() {
		return nil
	}
	blank := ""
	if a.Headed {
		blank = "\n"
	}
	a.Headed = true
	_, err := fmt.Fprintf(a.Writer(), "%s==> %s <==\n", blank, show.AppendClean(nil, r.Name()))
	return err
}

// JoinFlag registers --join for a command that reads several captures.
func JoinFlag(a *app.App, c *cobra.Command) {
	c.Flags().BoolVar(&a.Flags.Join, "join", false,
		"read all files as one capture, merged by time; --join=false keeps rotated files apart too")
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		a.Flags.JoinGiven = c.Flags().Changed("join")
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// Recordings groups the captures of the command line into recordings. Each file
// is a recording. The files of a rotated row form one recording, and with
// --join all files form one. An argument that names no capture is an error.
func Recordings(a *app.App, args []string) ([]*Recording, error) {
	list, failed, err := recordings(a, args)
	if err == nil {
		err = errors.Join(failed...)
	}
	return list, err
}

// recordings returns the errors of arguments that name no capture by
// themselves.
func recordings(a *app.App, args []string) (list []*Recording, failed []error, err error) {
	if err := a.Awaits(args); err != nil {
		return nil, nil, err
	}
	found := paths.Find(a.Paths(args), nil)
	files := found.Paths
	if i := slices.Index(files, "-"); i >= 0 && slices.Contains(files[i+1:], "-") {
		return nil, nil, errors.New(`"-" (standard input) is given twice: expected once at most`)
	}
	var groups [][]string
	switch {
	case len(files) == 0:
	case a.Flags.Join:
		groups = [][]string{files}
	case a.Flags.JoinGiven || len(files) == 1:
		for _, p := range files {
			groups = append(groups, []string{p})
		}
	default:
		groups = paths.RotatedRows(files)
	}
	first, begun := 0, time.Now()
	for i, g := range groups {
		list = append(list, &Recording{
			Paths: g, First: first, Files: len(files), named: len(files) > 1 || found.Searched,
			number: i + 1, of: len(groups), begun: begun,
		})
		first += len(g)
		if len(g) > 1 && !a.Flags.Join && !a.Flags.Quiet {
			fmt.Fprintf(a.Err,
				"ackscope: %d files are one rotated capture and are read as one: %s to %s (--join=false keeps them apart)\n",
				len(g), show.AppendClean(nil, g[0]), show.AppendClean(nil, g[len(g)-1]))
		}
	}
	return list, found.Failed, nil
}

// Paths returns the captures of the command line, for outputs that must not
// replace them.
func Paths(a *app.App, args []string) []string { return paths.Find(a.Paths(args), nil).Paths }

// UnreadError says that some of several captures could not be read. Their own
// errors are printed already, and the others were read.
type UnreadError struct{ Unread, Of int }

// Error counts the captures.
func (e *UnreadError) Error() string {
	return fmt.Sprintf("%d of %d captures could not be read", e.Unread, e.Of)
}

// Unread returns the captures that could not be read, if err says that the
// others were read; otherwise nil.
func Unread(err error) *UnreadError {
	var e *UnreadError
	if errors.As(err, &e) && e.Unread < e.Of {
		return e
	}
	return nil
}

// Each runs a command over each recording, one after the other, in the memory
// of one. If a recording cannot be read, Each prints why and continues; it then
// returns an UnreadError. It ends at any other error, such as one of printing.
func Each(a *app.App, args []string, run func(*Recording) error) error {
	list, failed, err := recordings(a, args)
	if err != nil {
		return err
	}
	return each(a, list, failed, run)
}

// EachOf is Each for recordings that are known.
func EachOf(a *app.App, list []*Recording, run func(*Recording) error) error {
	return each(a, list, nil, run)
}

// errEnough ends the recordings early.
var errEnough = errors.New("enough was read")

func each(a *app.App, list []*Recording, failed []error, run func(*Recording) error) error {
	if _, err := a.Options(); err != nil {
		return err // it would be the same for each capture
	}
	all := len(list) + len(failed)
	if all == 1 && len(failed) == 1 {
		return failed[0]
	}
	for _, err := range failed {
		a.Trouble(err)
	}
	unread := len(failed)
	for _, r := range list {
		err := run(r)
		if errors.Is(err, errEnough) {
			break
		}
		if err == nil {
			continue
		}
		if all == 1 || !OfInput(err) {
			return err
		}
		if err := a.Flush(); err != nil {
			return err
		}
		a.Trouble(err)
		unread++
	}
	if unread > 0 {
		return &UnreadError{unread, all}
	}
	return nil
}

// OfInput reports whether an error concerns one capture only: its file cannot
// be read, or does not fit the memory.
func OfInput(err error) bool {
	var input *InputError
	var room *app.RoomError
	return errors.As(err, &input) || errors.As(err, &room)
}

// One returns the only recording, for a command that makes one thing of it,
// such as a report. If there are several recordings it returns an error that
// names the thing, what.
func One(a *app.App, args []string, what string) (*Recording, error) {
	list, err := Recordings(a, args)
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		return nil, errApart(what, len(list))
	}
	return list[0], nil
}

// errApart refuses to combine separate captures.
func errApart(what string, n int) error {
	return fmt.Errorf(
		"%s: found %d captures that are recordings of their own: expected one, or --join to read them as one",
		what, n)
}

// FlowName is a flow as --flow names it.
type FlowName struct {
	File   string // empty if not given
	Number int    // 0 if not given
}

// ParseFlow parses --flow: NUMBER or FILE:NUMBER. An empty text names no flow.
func ParseFlow(text string) (FlowName, error) {
	if text == "" {
		return FlowName{}, nil
	}
	file, number, ok := CutLast(text)
	if !ok {
		number = text
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || n == 0 || ok && file == "" {
		return FlowName{}, fmt.Errorf("--flow %q: expected a number from 1, or FILE:NUMBER where several files are read",
			text)
	}
	return FlowName{file, int(n)}, nil
}

// CutLast cuts a text at its last colon. Names of files may contain others.
func CutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

// RecordingOf returns the recording of a file, and the file's position in it.
// The file is named by its path as given, by its base name, or by its position
// from 1.
func RecordingOf(list []*Recording, flag, file string) (*Recording, int, error) {
	type place struct {
		r *Recording
		i int
	}
	var byPath, byBase []place
	for _, r := range list {
		for i, p := range r.Paths {
			if p == file || p == "-" && file == "standard input" {
				byPath = append(byPath, place{r, i})
			}
			if filepath.Base(p) == file {
				byBase = append(byBase, place{r, i})
			}
		}
	}
	found := byPath
	if len(found) == 0 {
		found = byBase
	}
	if n, err := strconv.Atoi(file); err == nil && len(found) == 0 && n > 0 {
		for _, r := range list {
			if i := n - 1 - r.First; i >= 0 && i < len(r.Paths) {
				found = append(found, place{r, i})
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0].r, found[0].i, nil
	case 0:
		return nil, 0, fmt.Errorf("%s: no file is named %q: expected the name of one that is read, or its position from 1",
			flag, file)
	}
	return nil, 0, fmt.Errorf("%s: %d files are named %q: expected a path that names one of them, or its position from 1",
		flag, len(found), file)
}

// OfFlow returns the recording of the flow that --flow names, for commands that
// show one flow.
func OfFlow(list []*Recording, name FlowName) (*Recording, error) {
	if name.File != "" {
		r, _, err := RecordingOf(list, "--flow "+name.File+":"+strconv.Itoa(name.Number), name.File)
		return r, err
	}
	if len(list) == 1 {
		return list[0], nil
	}
	what := "which flow?"
	if name.Number != 0 {
		what = fmt.Sprintf("--flow %d:", name.Number)
	}
	return nil, fmt.Errorf(
		"%s %d captures are read, and flow numbers begin at 1 in each: expected --flow FILE:NUMBER, as in --flow %s:1",
		what, len(list), filepath.Base(list[0].Paths[0]))
}

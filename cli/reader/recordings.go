package reader

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Recording is what one analysis reads: a capture file, or several files that
// are read as one. Flows and their numbers belong to one recording.
type Recording struct {
	Paths []string // in the order of machine.Ref.File; of a live capture, its interfaces
	First int      // position of paths[0] among all files of the command, from 0
	Files int      // files that the command reads in all
	last  bool     // no recording follows
}

// File is a recording of one file, or of "-", standard input.
func File(path string) *Recording { return &Recording{Paths: []string{path}, Files: 1, last: true} }

// File names the file of a frame, where the command reads several files;
// otherwise it is empty.
func (r *Recording) File(ref machine.Ref) string {
	if r.Files < 2 || ref.File() >= len(r.Paths) {
		return ""
	}
	return r.Paths[ref.File()]
}

// Path names the file of a frame; empty for none of the recording.
func (r *Recording) Path(ref machine.Ref) string {
	if ref.File() < len(r.Paths) {
		return r.Paths[ref.File()]
	}
	return ""
}

// Only names the recording's file, where it is one of several files that the
// command reads. What belongs to no frame has no other file to be named by.
func (r *Recording) Only() string {
	if len(r.Paths) != 1 {
		return ""
	}
	return r.File(machine.Ref(0))
}

// Among reports whether the command reads other recordings too.
func (r *Recording) Among() bool { return r.Files > len(r.Paths) }

// Name is the recording's name in a heading.
func (r *Recording) Name() string {
	if n := len(r.Paths); n > 1 {
		return fmt.Sprintf("%s to %s (%d files read as one)", r.Paths[0], r.Paths[n-1], n)
	}
	if r.Paths[0] == "-" {
		return "standard input"
	}
	return r.Paths[0]
}

// Heading prints the recording's name above its output, as head and tail do of
// several files; nothing where there is one recording.
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

// Recordings sorts the files that the command line names into recordings: each
// file is one, but the files of a rotated row are one together, and with --join
// all files are.
func Recordings(a *app.App, args []string) ([]*Recording, error) {
	if err := a.Awaits(args); err != nil {
		return nil, err
	}
	paths := a.Paths(args)
	if i := slices.Index(paths, "-"); i >= 0 && slices.Contains(paths[i+1:], "-") {
		return nil, errors.New(`"-" (standard input) is given twice: expected once at most`)
	}
	var groups [][]string
	switch {
	case a.Flags.Join:
		groups = [][]string{paths}
	case a.Flags.JoinGiven || len(paths) == 1:
		for _, p := range paths {
			groups = append(groups, []string{p})
		}
	default:
		groups = RotatedRows(paths)
	}
	list, first := make([]*Recording, len(groups)), 0
	for i, g := range groups {
		list[i] = &Recording{Paths: g, First: first, Files: len(paths), last: i == len(groups)-1}
		first += len(g)
		if len(g) > 1 && !a.Flags.Join && !a.Flags.Quiet {
			fmt.Fprintf(a.Err,
				"ackscope: %d files are one rotated capture and are read as one: %s to %s (--join=false keeps them apart)\n",
				len(g), show.AppendClean(nil, g[0]), show.AppendClean(nil, g[len(g)-1]))
		}
	}
	return list, nil
}

// Each runs a command over each recording, one after the other, so that memory
// is that of one. It ends at the first error.
func Each(a *app.App, args []string, run func(*Recording) error) error {
	list, err := Recordings(a, args)
	if err != nil {
		return err
	}
	for _, r := range list {
		if err := run(r); err != nil {
			return err
		}
	}
	return nil
}

// One returns the only recording of a command that makes one thing of it: what
// says which.
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

// errApart refuses to put captures of their own into one.
func errApart(what string, n int) error {
	return fmt.Errorf(
		"%s: found %d captures that are recordings of their own: expected one, or --join to read them as one",
		what, n)
}

// FlowName is a flow as --flow names it.
type FlowName struct {
	File   string // empty for none
	Number int    // 0 for none
}

// ParseFlow reads --flow: NUMBER, or FILE:NUMBER. An empty text names no flow.
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

// CutLast splits at the last colon: names of files may hold others.
func CutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

// RecordingOf finds the recording of a file, and the file's place in it. The file is
// named by its path as given, by its base name, or by its position from 1.
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

// OfFlow returns the recording that --flow is about, where the command looks at
// one flow.
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

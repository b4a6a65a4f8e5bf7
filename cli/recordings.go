package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// recording is what one analysis reads: a capture file, or several files that
// are read as one. Flows and their numbers belong to one recording.
type recording struct {
	paths []string // in the order of machine.Ref.File; of a live capture, its interfaces
	first int      // position of paths[0] among all files of the command, from 0
	files int      // files that the command reads in all
	last  bool     // no recording follows
}

// file names the file of a frame, where the command reads several files;
// otherwise it is empty.
func (r *recording) file(ref machine.Ref) string {
	if r.files < 2 || ref.File() >= len(r.paths) {
		return ""
	}
	return r.paths[ref.File()]
}

// path names the file of a frame; empty for none of the recording.
func (r *recording) path(ref machine.Ref) string {
	if ref.File() < len(r.paths) {
		return r.paths[ref.File()]
	}
	return ""
}

// only names the recording's file, where it is one of several files that the
// command reads. What belongs to no frame has no other file to be named by.
func (r *recording) only() string {
	if len(r.paths) != 1 {
		return ""
	}
	return r.file(machine.Ref(0))
}

// among reports whether the command reads other recordings too.
func (r *recording) among() bool { return r.files > len(r.paths) }

// name is the recording's name in a heading.
func (r *recording) name() string {
	if n := len(r.paths); n > 1 {
		return fmt.Sprintf("%s to %s (%d files read as one)", r.paths[0], r.paths[n-1], n)
	}
	if r.paths[0] == "-" {
		return "standard input"
	}
	return r.paths[0]
}

// heading prints the recording's name above its output, as head and tail do of
// several files; nothing where there is one recording.
func (a *app) heading(r *recording) error {
	if !r.among() {
		return nil
	}
	blank := ""
	if a.headed {
		blank = "\n"
	}
	a.headed = true
	_, err := fmt.Fprintf(a.writer(), "%s==> %s <==\n", blank, show.AppendClean(nil, r.name()))
	return err
}

// joinFlag registers --join for a command that reads several captures.
func (a *app) joinFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.flags.join, "join", false,
		"read all files as one capture, merged by time; --join=false keeps rotated files apart too")
	before := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		a.flags.joinGiven = c.Flags().Changed("join")
		if before != nil {
			return before(c, args)
		}
		return nil
	}
}

// recordings sorts the files that the command line names into recordings: each
// file is one, but the files of a rotated row are one together, and with --join
// all files are.
func (a *app) recordings(args []string) ([]*recording, error) {
	if err := a.awaits(args); err != nil {
		return nil, err
	}
	paths := a.paths(args)
	if i := slices.Index(paths, "-"); i >= 0 && slices.Contains(paths[i+1:], "-") {
		return nil, errors.New(`"-" (standard input) is given twice: expected once at most`)
	}
	var groups [][]string
	switch {
	case a.flags.join:
		groups = [][]string{paths}
	case a.flags.joinGiven || len(paths) == 1:
		for _, p := range paths {
			groups = append(groups, []string{p})
		}
	default:
		groups = rotatedRows(paths)
	}
	list, first := make([]*recording, len(groups)), 0
	for i, g := range groups {
		list[i] = &recording{paths: g, first: first, files: len(paths), last: i == len(groups)-1}
		first += len(g)
		if len(g) > 1 && !a.flags.join && !a.flags.quiet {
			fmt.Fprintf(a.err,
				"ackscope: %d files are one rotated capture and are read as one: %s to %s (--join=false keeps them apart)\n",
				len(g), show.AppendClean(nil, g[0]), show.AppendClean(nil, g[len(g)-1]))
		}
	}
	return list, nil
}

// each runs a command over each recording, one after the other, so that memory
// is that of one. It ends at the first error.
func (a *app) each(args []string, run func(*recording) error) error {
	list, err := a.recordings(args)
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

// one gives the only recording of a command that makes one thing of it: what
// says which.
func (a *app) one(args []string, what string) (*recording, error) {
	list, err := a.recordings(args)
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
	return fmt.Errorf("%s: found %d captures that are recordings of their own: expected one, or --join to read them as one",
		what, n)
}

// flowName is a flow as --flow names it.
type flowName struct {
	file   string // empty for none
	number int    // 0 for none
}

// parseFlow reads --flow: NUMBER, or FILE:NUMBER. An empty text names no flow.
func parseFlow(text string) (flowName, error) {
	if text == "" {
		return flowName{}, nil
	}
	file, number, ok := cutLast(text)
	if !ok {
		number = text
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil || n == 0 || ok && file == "" {
		return flowName{}, fmt.Errorf("--flow %q: expected a number from 1, or FILE:NUMBER where several files are read",
			text)
	}
	return flowName{file, int(n)}, nil
}

// cutLast splits at the last colon: names of files may hold others.
func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+1:], true
}

// recordingOf finds the recording of a file, and the file's place in it. The file is
// named by its path as given, by its base name, or by its position from 1.
func recordingOf(list []*recording, flag, file string) (*recording, int, error) {
	type place struct {
		r *recording
		i int
	}
	var byPath, byBase []place
	for _, r := range list {
		for i, p := range r.paths {
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
			if i := n - 1 - r.first; i >= 0 && i < len(r.paths) {
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

// ofFlow gives the recording that --flow is about, where the command looks at
// one flow.
func ofFlow(list []*recording, name flowName) (*recording, error) {
	if name.file != "" {
		r, _, err := recordingOf(list, "--flow "+name.file+":"+strconv.Itoa(name.number), name.file)
		return r, err
	}
	if len(list) == 1 {
		return list[0], nil
	}
	what := "which flow?"
	if name.number != 0 {
		what = fmt.Sprintf("--flow %d:", name.number)
	}
	return nil, fmt.Errorf(
		"%s %d captures are read, and flow numbers begin at 1 in each: expected --flow FILE:NUMBER, as in --flow %s:1",
		what, len(list), filepath.Base(list[0].paths[0]))
}

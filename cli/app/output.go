package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/outfile"
)

// Writes adds the flags of every command that writes files.
func (a *App) Writes(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&a.Outputs.NoClobber, "no-clobber", false, "write no file that is there already (otherwise it is replaced)")
	f.Var(modeFlag{&a.Outputs}, "mode", "permissions of the files written, in `OCTAL` as 0640 (default: 0600 for "+
		"captures and payloads, else as the umask says)")
}

// modeFlag is the value of --mode.
type modeFlag struct{ of *outfile.Outputs }

// String implements pflag.Value.
func (m modeFlag) String() string {
	if m.of == nil || m.of.Mode == nil {
		return ""
	}
	return fmt.Sprintf("%04o", *m.of.Mode)
}

// Type implements pflag.Value.
func (m modeFlag) Type() string { return "OCTAL" }

// Set implements pflag.Value.
func (m modeFlag) Set(text string) error {
	n, err := strconv.ParseUint(text, 8, 16)
	if err != nil || n > 0o777 {
		return errors.New("expected three octal digits, as 0640")
	}
	mode := fs.FileMode(n)
	m.of.Mode = &mode
	return nil
}

// Reading tells the outputs which files the run reads, so that none is
// overwritten.
func (a *App) Reading(captures []string) {
	for _, path := range captures {
		if path != "-" {
			a.Outputs.Reads("the capture to be read", path)
		} else if file, ok := a.In.(*os.File); ok {
			if info, err := file.Stat(); err == nil {
				a.Outputs.ReadsFile("the capture to be read", info)
			}
		}
	}
	a.Outputs.Reads("the file of --keys", a.Flags.Keys)
	a.Outputs.Reads("the file of --schema", a.Flags.Schema)
	for _, path := range a.Flags.Profiles {
		a.Outputs.Reads("a file of --profiles", path)
	}
	if info := a.outInfo(); info != nil {
		a.Outputs.Standard(info)
	}
}

// outInfo describes standard output, or returns nil if that is not a file.
func (a *App) outInfo() os.FileInfo {
	if file, ok := a.Out.(*os.File); ok {
		if info, err := file.Stat(); err == nil {
			return info
		}
	}
	return nil
}

// whole creates a file that appears complete or not at all. For "-", which is
// standard output, the file is nil. captures are the files that the run reads.
func (a *App) whole(path string, c outfile.Content, captures []string) (*outfile.File, error) {
	a.Reading(captures)
	if path == "-" {
		return nil, a.ToStandard()
	}
	f, err := a.Outputs.Whole(path, c)
	if err == nil {
		a.EndOnSignals()
	}
	return f, err
}

// ToStandard returns an error if standard output is a file that the run reads.
func (a *App) ToStandard() error {
	if info := a.outInfo(); info != nil {
		return a.Outputs.RefuseInput("standard output", info)
	}
	return nil
}

// EndOnSignals removes unfinished files before a signal ends the program.
// SIGPIPE does not count: the write fails, and the run ends normally.
func (a *App) EndOnSignals() {
	a.signalling.Do(a.watchSignals)
}

// Abandon gives up all outputs that are not committed.
func (a *App) Abandon() {
	a.Outputs.Abandon()
	a.forgetSignals()
}

// Forget lets go of all that the App holds, after its last use. The completions of flags hold the
// App, and cobra keeps them as long as the process lives. A page runs many commands.
func (a *App) Forget() { *a = App{} }

// OutputFile is a buffered file, or standard output.
type OutputFile struct {
	*bufio.Writer
	file *outfile.File // nil for standard output
}

// Create creates the output of a flag.
func (a *App) Create(flag, path string, c outfile.Content, captures []string) (*OutputFile, error) {
	f, err := a.whole(path, c, captures)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	case f == nil:
		return &OutputFile{Writer: a.Writer()}, nil
	}
	return &OutputFile{Writer: bufio.NewWriterSize(f, 64<<10), file: f}, nil
}

// End commits the output if err is nil, and otherwise gives it up. It returns
// err, or the error of finishing the file.
func (o *OutputFile) End(err error) error {
	switch {
	case o.file == nil:
		return err // run flushes standard output
	case err == nil:
		err = o.Flush()
	}
	if err != nil {
		return errors.Join(err, o.file.Abort())
	}
	return o.file.Commit()
}

// EndAll commits several outputs, or none of them.
func EndAll(err error, list ...*OutputFile) error {
	list = slices.DeleteFunc(list, func(o *OutputFile) bool { return o == nil || o.file == nil })
	var files []*outfile.File
	for _, o := range list {
		if err == nil {
			err = o.Flush()
		}
		files = append(files, o.file)
	}
	if err == nil {
		return outfile.Commit(files...)
	}
	for _, f := range files {
		err = errors.Join(err, f.Abort())
	}
	return err
}

// SaveFile writes a file whose contents fill writes.
func (a *App) SaveFile(flag, path string, c outfile.Content, captures []string, fill func(w io.Writer) error) error {
	o, err := a.Create(flag, path, c, captures)
	if err != nil {
		return err
	}
	return o.End(fill(o))
}

// Lines returns an encoder of a table as JSON Lines on standard output.
func (a *App) Lines(s *export.Schema) *export.Lines { return export.NewLines(a.Writer(), s) }

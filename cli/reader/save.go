package reader

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/ring"
	"github.com/ackscope/ackscope/show"
)

// The values of -F.
const (
	formatNG      = "pcapng"
	formatClassic = "pcap"
	formatNano    = "nsecpcap"
)

var saveFormats = []string{formatNG, formatClassic, formatNano}

// Save writes frames to a capture file, or to a row of capture files.
type Save struct {
	app       *app.App
	flag      string // the flag that names the file, for errors; empty for an argument
	from      Origin
	format    string        // the value of -F; empty if the file's name decides
	out       io.Writer     // the destination if it is no file
	file      *outfile.File // nil for standard output, and if out is set
	failed    bool          // a write has failed
	ng        *capture.Writer
	classic   *capture.ClassicWriter
	to        io.Writer      // a classic file that waits for its first frame; nil otherwise
	ids       map[[2]int]int // (file, interface) to the written id
	keys      [][2]int       // keys of ids, by id
	last      [2]int         // (file, interface) of the previous frame
	lastID    int            // the id of last; mostly there is one interface
	section   int            // section of the only file that is being written
	named     []int          // by file: bytes of its name records that were written
	Frames    uint64
	unsaid    uint64    // frames whose comments do not fit a classic file
	unsampled bool      // there were samples of the host, which do not fit a classic file
	rotation  *Rotation // nil for a single file
	// Counts returns the counts of the interfaces so far, for a file that is
	// full. It may be nil.
	Counts func() ([]capture.Statistics, error)
}

// NewSaveInto starts a pcapng capture in w, which the caller closes.
func NewSaveInto(a *app.App, w io.Writer, from Origin) (*Save, error) {
	s := &Save{app: a, from: from, format: formatNG, out: w}
	return s, s.begin("")
}

// SaveTo writes frames to a capture that the caller has started and will end.
func SaveTo(a *app.App, w *capture.Writer, from Origin) *Save {
	return &Save{app: a, ng: w, from: from, ids: map[[2]int]int{}}
}

// NewSave creates a capture file that appears complete or not at all; "-" is
// standard output. The name decides the format. flag is the flag that names the
// file, or "" for an argument.
func NewSave(a *app.App, flag, path string, from Origin) (*Save, error) {
	s, err := BeginSave(a, flag, path, "", from, a.Outputs.Whole)
	if err == nil && s.file != nil {
		a.EndOnSignals()
	}
	return s, err
}

// NewStream creates a capture file for packets that are still arriving. The
// file is locked, and grows under its own name.
func NewStream(a *app.App, path, format string, from Origin) (*Save, error) {
	return BeginSave(a, "-w", path, format, from, a.Outputs.Stream)
}

// NewCopy creates a capture file for the frames of an input. It appears
// complete or not at all, unless some input is a pipe: then it grows.
func NewCopy(a *app.App, path, format string, in *capture.Input) (*Save, error) {
	for i := range in.Files() {
		name := in.FileName(i)
		if info, err := os.Stat(name); name == "-" || err != nil || !info.Mode().IsRegular() {
			return NewStream(a, path, format, OriginOf(in))
		}
	}
	s, err := BeginSave(a, "-w", path, format, OriginOf(in), a.Outputs.Whole)
	if err == nil && s.file != nil {
		a.EndOnSignals()
	}
	return s, err
}

// opener opens a file of App.Outputs.
type opener func(path string, c outfile.Content) (*outfile.File, error)

// BeginSave creates a capture file with open. Errors name flag.
func BeginSave(a *app.App, flag, path, format string, from Origin, open opener) (*Save, error) {
	if format != "" && !slices.Contains(saveFormats, format) {
		return nil, fmt.Errorf("-F %q: expected %s", format, strings.Join(saveFormats, ", "))
	}
	s := &Save{app: a, flag: flag, from: from, format: format}
	var captures []string
	for _, f := range from.Files {
		captures = append(captures, f.In.FileName(f.Index))
	}
	a.Reading(captures)
	var err error
	if path == "-" {
		s.out, err = a.Out, a.ToStandard()
	} else {
		s.file, err = open(path, outfile.Payload)
	}
	if err != nil {
		return nil, s.saving(err)
	}
	return s, s.begin(path)
}

// NewRotation creates the first file of a row.
func NewRotation(a *app.App, r *Rotation, format string, from Origin) (*Save, error) {
	if format != "" && !slices.Contains(saveFormats, format) {
		return nil, fmt.Errorf("-F %q: expected %s", format, strings.Join(saveFormats, ", "))
	}
	s := &Save{app: a, from: from, format: format, rotation: r, flag: "-w"}
	return s, s.beginNext()
}

// beginNext creates the next file of a row.
func (s *Save) beginNext() (err error) {
	if s.file, err = s.app.Outputs.Row(s.rotation.Next(time.Now()), outfile.Payload); err != nil {
		return s.saving(err)
	}
	s.rotation.shelf.Add(&ring.Kept{Made: []outfile.Made{s.file.Made()}})
	return s.begin(s.file.Path())
}

// begin writes the head of a file.
func (s *Save) begin(path string) (err error) {
	w := s.out
	if w == nil {
		w = s.file
	}
	s.ids, s.keys, s.named, s.section = map[[2]int]int{}, nil, make([]int, len(s.from.Files)), 0
	s.ng, s.classic, s.to = nil, nil, nil
	if s.format == formatClassic || s.format == formatNano || s.format == "" && strings.HasSuffix(path, ".pcap") {
		s.to = w
		return nil
	}
	x := s.described(0)
	s.ng, err = capture.NewWriter(w,
		capture.WriterOptions{
			Application: x.Application, OS: x.OS, Hardware: x.Hardware, Comments: x.Comments,
			FlushEvery: FlushSaved,
		})
	return s.saving(err)
}

// FlushSaved is how often saved live traffic is flushed.
const FlushSaved = time.Second

// saving adds the flag to an error.
func (s *Save) saving(err error) error {
	if err == nil || s.flag == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.flag, err)
}

// described returns the description of the file's section. It joins the
// descriptions of that section in all input files, without repetitions.
func (s *Save) described(section int) (x capture.Section) {
	add := func(to *string, text string) {
		switch {
		case text == "" || *to == text:
		case *to == "":
			*to = text
		default:
			*to += "; " + text
		}
	}
	for _, f := range s.from.Files {
		list := f.In.Sections(f.Index)
		if section >= len(list) {
			continue
		}
		y := &list[section]
		add(&x.Application, y.Application)
		add(&x.OS, y.OS)
		add(&x.Hardware, y.Hardware)
		for _, comment := range y.Comments {
			if !slices.Contains(x.Comments, comment) {
				x.Comments = append(x.Comments, comment)
			}
		}
	}
	if x.Application == "" {
		x.Application = "ackscope"
	}
	return x
}

// Write writes a frame and comments on it.
func (s *Save) Write(f *capture.Frame, comments ...string) error {
	if s.rotation != nil && s.rotation.Full(s.written(), f.At) {
		if err := s.rotate(); err != nil {
			return err
		}
	}
	var err error
	if s.ng != nil {
		err = s.writeNG(f, comments)
	} else {
		err = s.writeClassic(f, comments)
	}
	if err != nil {
		s.failed = true
		return s.saving(err)
	}
	s.Frames++
	if s.rotation != nil {
		s.rotation.Note(f.At)
	}
	return nil
}

// WriteHost writes a sample of the capturing host. A classic file has no place for it.
func (s *Save) WriteHost(x *host.Sample) error {
	if s.ng == nil {
		s.unsampled = true
		return nil
	}
	if err := s.ng.WriteHost(x); err != nil {
		s.failed = true
		return s.saving(err)
	}
	return nil
}

func (s *Save) written() int64 {
	switch {
	case s.ng != nil:
		return s.ng.Written()
	case s.classic != nil:
		return s.classic.Written()
	}
	return 0
}

func (s *Save) writeNG(f *capture.Frame, comments []string) error {
	key := [2]int{f.Ref.File(), f.Interface}
	id, ok := s.lastID, key == s.last && len(s.ids) > 0
	if !ok {
		id, ok = s.ids[key]
	}
	if !ok {
		in := s.from.Of(key[0], key[1])
		in.LinkType = f.LinkType
		if len(s.from.Files) == 1 && in.Section > s.section {
			s.count(nil)
			s.section, s.ids, s.keys = in.Section, map[[2]int]int{}, nil
			if err := s.ng.BeginSection(s.described(in.Section)); err != nil {
				return err
			}
		}
		var err error
		if id, err = s.ng.AddInterface(in); err != nil {
			return err
		}
		s.ids[key], s.keys = id, append(s.keys, key)
	}
	s.last, s.lastID = key, id
	if file := key[0]; file < len(s.from.Files) {
		names := s.from.Files[file].In.Names(s.from.Files[file].Index, s.named[file])
		if len(names) > 0 {
			s.named[file] += len(names)
			if err := s.ng.WriteNames(names); err != nil {
				return err
			}
		}
	}
	copied := *f
	copied.Interface = id
	copied.Ref = machine.Ref(0)
	return s.ng.WriteFrame(&copied, comments...)
}

func (s *Save) writeClassic(f *capture.Frame, comments []string) error {
	if len(comments) > 0 {
		return errors.New("a classic pcap has no room for comments on packets: expected pcapng")
	}
	if s.classic == nil {
		if err := s.beginClassic(f.LinkType, s.from.Of(f.Ref.File(), f.Interface).SnapLength); err != nil {
			return err
		}
	}
	for range f.Comments() {
		s.unsaid++
		break
	}
	return s.classic.WriteFrame(f)
}

// beginClassic writes the head of a classic file. It uses microseconds if no
// source has a finer clock, and nanoseconds otherwise.
func (s *Save) beginClassic(link, snap uint32) (err error) {
	resolution := capture.Nanoseconds
	if s.format != formatNano && len(s.from.Files) > 0 {
		resolution = capture.Microseconds
		for _, f := range s.from.Files {
			for _, in := range f.In.Interfaces(f.Index) {
				if in.Resolution.Digits() > 6 {
					resolution = capture.Nanoseconds
				}
			}
		}
	}
	s.classic, err = capture.NewClassicWriter(s.to, link, snap, resolution, FlushSaved)
	return err
}

// rotate ends the full file and creates the next.
func (s *Save) rotate() error {
	var st []capture.Statistics
	if s.Counts != nil {
		var err error
		if st, err = s.Counts(); err != nil {
			return err
		}
	}
	if err := s.Close(st); err != nil {
		return err
	}
	if err := s.beginNext(); err != nil {
		return err
	}
	return s.rotation.prune()
}

// flush writes the buffered frames.
func (s *Save) flush() error {
	switch {
	case s.ng != nil:
		return s.saving(s.ng.Flush())
	case s.classic != nil:
		return s.saving(s.classic.Flush())
	}
	return nil
}

// count writes the counts of the interfaces: st, or those of the sources if st
// is nil.
func (s *Save) count(st []capture.Statistics) {
	for id, key := range s.keys {
		if st == nil {
			if own := s.from.Of(key[0], key[1]).Statistics; own != nil {
				s.ng.SetStatistics(id, *own)
			}
		} else if key[1] < len(st) {
			s.ng.SetStatistics(id, st[key[1]])
		}
	}
}

// CloseAfter closes the file after the reading has ended with err. It keeps a
// file if the capture was cut short. After any other error it gives up a file
// that is not complete, and an older file stays.
func (s *Save) CloseAfter(err error, st []capture.Statistics) error {
	if err != nil && !s.app.Tolerated(err) {
		s.failed = true
	}
	return s.Close(st)
}

// Abort gives the file up without the counts of Close.
func (s *Save) Abort() error {
	if s.file == nil {
		return nil
	}
	return s.saving(s.file.Abort())
}

// Close ends the file. It writes the counts st of a live capture, or those of
// the sources.
func (s *Save) Close(st []capture.Statistics) error {
	if s.failed && s.file != nil && s.file.Unfinished() {
		return s.Abort()
	}
	var err error
	switch {
	case s.ng != nil:
		s.count(st)
		err = s.ng.Close()
	case s.classic == nil:
		const ethernet = 1
		link := uint32(ethernet)
		if len(s.from.Files) > 0 {
			link = s.from.Of(0, 0).LinkType
		}
		if err = s.beginClassic(link, 0); err == nil {
			err = s.classic.Close()
		}
	default:
		err = s.classic.Close()
	}
	switch {
	case s.file != nil && err == nil:
		err = s.file.Commit()
	case s.file != nil:
		err = errors.Join(err, s.file.Abort())
	}
	if s.unsaid > 0 && !s.app.Flags.Quiet {
		fmt.Fprintf(s.app.Err, "ackscope: warning: -w: a classic pcap has no room for comments: those of %s are left out\n",
			show.Plural(s.unsaid, "packet"))
		s.unsaid = 0
	}
	if s.unsampled && !s.app.Flags.Quiet {
		fmt.Fprintln(s.app.Err, "ackscope: note: -w: a classic pcap has no room for samples of the host: pcapng has")
	}
	s.unsampled = false
	return s.saving(err)
}

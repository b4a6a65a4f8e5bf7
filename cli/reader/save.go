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
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/show"
)

// Origin is where the frames of a save come from.
type Origin struct {
	Of    func(file, index int) capture.Interface // describes an interface, as far as it is known by now
	Files []OriginFile                            // nil where frames come from no file
}

// OriginFile is a file of an opened capture: what it says of itself goes along.
type OriginFile struct {
	In    *capture.Input
	Index int
}

// OriginOf describes opened captures.
func OriginOf(in *capture.Input) Origin {
	o := Origin{Of: func(file, index int) capture.Interface {
		if list := in.Interfaces(file); index < len(list) {
			return list[index]
		}
		return capture.Interface{}
	}}
	for i := range in.Files() {
		o.Files = append(o.Files, OriginFile{in, i})
	}
	return o
}

// The words of -F.
const (
	formatNG      = "pcapng"
	formatClassic = "pcap"
	formatNano    = "nsecpcap"
)

var saveFormats = []string{formatNG, formatClassic, formatNano}

// Save writes frames to a capture file, or to a row of them.
type Save struct {
	app      *app.App
	flag     string // that names the file, for errors; empty for an argument
	from     Origin
	format   string        // of -F; empty where the file's name tells
	out      io.Writer     // where the capture goes when it is no file
	file     *outfile.File // nil for standard output, and where out is set
	failed   bool          // a write has failed
	ng       *capture.Writer
	classic  *capture.ClassicWriter
	to       io.Writer      // of a classic file that waits for its first frame; nil otherwise
	ids      map[[2]int]int // (file, interface) to the written id
	keys     [][2]int       // by id
	last     [2]int         // the key of the frame before, and
	lastID   int            // its id: mostly there is one interface
	section  int            // of the only file, that is being written
	named    []int          // by file: bytes of its names that were written
	Frames   uint64
	unsaid   uint64    // frames whose comments a classic file has no room for
	rotation *Rotation // nil for a single file
	// Counts gives the counts of the interfaces so far, for a file that is full;
	// nil where there are none.
	Counts func() ([]capture.Statistics, error)
}

// NewSaveInto begins a pcapng capture in w, which the caller closes.
func NewSaveInto(a *app.App, w io.Writer, from Origin) (*Save, error) {
	s := &Save{app: a, from: from, format: formatNG, out: w}
	return s, s.begin("")
}

// SaveTo writes frames to a capture that somebody else began, and ends.
func SaveTo(a *app.App, w *capture.Writer, from Origin) *Save {
	return &Save{app: a, ng: w, from: from, ids: map[[2]int]int{}}
}

// NewSave begins a capture file that is there whole or not at all; "-" is standard
// output. The name says which format it has. flag is the one that names the file;
// empty for an argument.
func NewSave(a *app.App, flag, path string, from Origin) (*Save, error) {
	s, err := BeginSave(a, flag, path, "", from, a.Outputs.Whole)
	if err == nil && s.file != nil {
		a.EndOnSignals()
	}
	return s, err
}

// NewStream begins a capture file of packets that are still coming: it is locked,
// and grows under its own name.
func NewStream(a *app.App, path, format string, from Origin) (*Save, error) {
	return BeginSave(a, "-w", path, format, from, a.Outputs.Stream)
}

// NewCopy begins a capture file for what an input gives: a whole one where all of
// it is there already, a stream where some of it comes through a pipe.
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

// opener opens a file of a.outputs.
type opener func(path string, c outfile.Content) (*outfile.File, error)

// BeginSave begins a capture file that open opens; flag names it in errors.
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

// NewRotation begins the first of a row of files.
func NewRotation(a *app.App, r *Rotation, format string, from Origin) (*Save, error) {
	if format != "" && !slices.Contains(saveFormats, format) {
		return nil, fmt.Errorf("-F %q: expected %s", format, strings.Join(saveFormats, ", "))
	}
	s := &Save{app: a, from: from, format: format, rotation: r, flag: "-w"}
	return s, s.beginNext()
}

// beginNext opens the next of a row of files.
func (s *Save) beginNext() (err error) {
	if s.file, err = s.app.Outputs.Row(s.rotation.Next(time.Now()), outfile.Payload); err != nil {
		return s.saving(err)
	}
	s.rotation.kept = append(s.rotation.kept, s.file.Made())
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
		capture.WriterOptions{Application: x.Application, OS: x.OS, Hardware: x.Hardware, Comments: x.Comments,
			FlushEvery: FlushSaved})
	return s.saving(err)
}

// FlushSaved is how often what was saved of traffic as it comes is handed to the system.
const FlushSaved = time.Second

// saving names the flag in an error.
func (s *Save) saving(err error) error {
	if err == nil || s.flag == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.flag, err)
}

// described is what the file is to say of itself: of one file what that says in a
// section, of several what they say in their first, without repetitions.
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

// Write writes a frame, with comments on it.
func (s *Save) Write(f *capture.Frame, comments ...string) error {
	if s.rotation != nil && s.rotation.full(s.written(), f.At) {
		if err := s.turn(); err != nil {
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
		s.rotation.note(f.At)
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

// beginClassic writes the head of a classic file: in microseconds where all that is
// known of the sources' clocks allows it.
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

// turn ends the file that is full and begins the next.
func (s *Save) turn() error {
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

// flush hands what was written on to the system.
func (s *Save) flush() error {
	switch {
	case s.ng != nil:
		return s.saving(s.ng.Flush())
	case s.classic != nil:
		return s.saving(s.classic.Flush())
	}
	return nil
}

// count says what the interfaces counted: st, or what the sources say of it.
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

// CloseAfter is close where the reading ended with err. A capture that was cut
// short is only warned of; after any other error a whole file is given up, and what
// stood there before stays.
func (s *Save) CloseAfter(err error, st []capture.Statistics) error {
	if err != nil && !s.app.Tolerated(err) {
		s.failed = true
	}
	return s.Close(st)
}

// Abort ends the file without what close adds: a whole one is given up.
func (s *Save) Abort() error {
	if s.file == nil {
		return nil
	}
	return s.saving(s.file.Abort())
}

// Close ends the file: with the counts of a live capture's interfaces, or with what
// the sources say of theirs.
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
	return s.saving(err)
}

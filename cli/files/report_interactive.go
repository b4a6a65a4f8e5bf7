//go:build !js

package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
	"github.com/ackscope/ackscope/printable"
	"github.com/ackscope/ackscope/web"
)

// interactiveFlags are the flags of a report that is the page of `ackscope web` with captures inside.
type interactiveFlags struct {
	on     bool
	assets string
	most   string
	filter string
	keys   bool
}

// usualPage is the default of --max-size. The page's own program has 10 MB of that.
// Source: mail and issue trackers take 25 to 100 MB, and a browser opens so much in a second or two
const usualPage = "64MiB"

func (f *interactiveFlags) register(a *app.App, c *cobra.Command) {
	p := c.Flags()
	p.BoolVar(&f.on, "interactive", false, "write the page of ackscope web with the captures inside, as one file")
	p.StringVar(&f.assets, "assets", "", "with --interactive: take the page from the folder `DIR`, which `make web` wrote")
	_ = c.MarkFlagDirname("assets")
	p.StringVar(&f.most, "max-size", usualPage, "with --interactive: the most that the page may have, as `100MB`")
	p.BoolVar(&f.keys, "with-keys", false, "with --interactive: put the file of --keys into the page too")
	reader.FilterFlag(a, c, &f.filter)
	p.Lookup("display-filter").Usage = "with --interactive: put only packets into the page that match a display `FILTER`"
}

// check refuses flags of one kind of report that the other has no use for.
func (f *interactiveFlags) check(c *cobra.Command, kind string) error {
	wrong, of := []string{"assets", "max-size", "with-keys", "display-filter"}, "expected --interactive with it"
	if f.on {
		wrong, of = []string{"flows", "replay"}, "--interactive has no use for it: the page tells everything"
		if kind != "html" {
			return fmt.Errorf("--format %s: --interactive writes HTML", kind)
		}
	}
	for _, name := range wrong {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s: %s", name, of)
		}
	}
	return nil
}

// reportInteractive writes the page with captures inside.
func reportInteractive(a *app.App, args []string, f *reportFlags) error {
	i := &f.interactive
	most, err := app.ParseSize(i.most)
	if err != nil {
		return fmt.Errorf("--max-size: %w", err)
	}
	assets, err := web.Open(i.assets)
	if err != nil {
		return fmt.Errorf("--interactive: %w", err)
	}
	passes, err := reader.Compile(a, i.filter)
	if err != nil {
		return err
	}
	if err := f.logs.Load(); err != nil {
		return err
	}
	list, err := reader.Recordings(a, args)
	if err != nil {
		return err
	}
	captures := reader.Paths(a, args)
	p := &packing{app: a, names: map[string]bool{}}
	p.page = web.Single{
		Title: printable.String(namesOfFiles(captures)) + " – ackscope", Most: most, Flags: flagsOf(a),
	}
	defer p.close()
	for _, from := range list {
		if err := p.recording(from, passes); err != nil {
			return err
		}
	}
	if err := p.beside(f.logs, i.keys); err != nil {
		return err
	}
	err = a.SaveFile("-o", f.out, outfile.Payload, captures, func(w io.Writer) error { return p.page.Write(w, assets) })
	var large *web.TooLargeError
	if errors.As(err, &large) {
		return fmt.Errorf("--max-size %s: the page would be larger: put less of the capture into it, by -Y 'flow == 1' or "+
			"-Y 'frame.number <= 5000', or give more", i.most)
	}
	return err
}

// flagsOf returns the flags of the analysis, which the page gives to each of its commands.
func flagsOf(a *app.App) (list []string) {
	for _, text := range a.Flags.DecodeAs {
		list = append(list, "--decode-as", text)
	}
	for _, text := range a.Flags.Set {
		list = append(list, "--set", text)
	}
	if a.Flags.Vantage != "" {
		list = append(list, "--vantage", a.Flags.Vantage)
	}
	if a.Flags.Strict {
		list = append(list, "--strict")
	}
	return list
}

// packing gathers what goes into a page.
type packing struct {
	app   *app.App
	page  web.Single
	names map[string]bool
	open  []io.Closer
}

func (p *packing) close() {
	for _, c := range p.open {
		_ = c.Close() // it was only read
	}
}

// name returns the name of a file in the page, which no other has.
func (p *packing) name(path string) string {
	name := strings.ToValidUTF8(filepath.Base(path), "\uFFFD") // JSON holds no other
	if name == "-" {
		name = "capture" // the page's commands would take it for standard input
	}
	stem, end := name, ""
	if i := strings.IndexByte(name[1:], '.'); i >= 0 {
		stem, end = name[:i+1], name[i+1:]
	}
	for n := 2; p.names[name]; n++ {
		name = fmt.Sprintf("%s (%d)%s", stem, n, end)
	}
	p.names[name] = true
	return name
}

// recording adds a capture: as it is, or what passes a filter. Files that are read as one become
// one.
func (p *packing) recording(from *reader.Recording, passes *filter.Filter) error {
	if len(from.Paths) == 1 && passes.String() == "" {
		return p.file(from.Paths[0], "capture", "")
	}
	base := filepath.Base(from.Paths[0])
	if i := strings.IndexByte(base[1:], '.'); i >= 0 {
		base = base[:i+1]
	}
	if from.Paths[0] == "-" {
		base = "capture"
	}
	p.page.Files = append(p.page.Files, web.File{
		Name: p.name(base + ".pcapng"), Kind: "capture",
		Copy: func(to io.Writer) error { return writePassed(p.app, to, from, passes) },
	})
	return nil
}

// writePassed writes the packets of a recording that pass a filter as a capture.
func writePassed(a *app.App, to io.Writer, from *reader.Recording, passes *filter.Filter) error {
	l := &reader.Listing{App: a, Live: &reader.LiveFlags{}, Filter: passes}
	var save *reader.Save
	var wrote machine.Ref
	l.Begin = func(*reader.Recording) (err error) {
		save, err = reader.NewSaveInto(a, to, reader.OriginOf(l.Reader.In))
		return err
	}
	l.Show = func(_ *filter.Record, r *analyze.Record) error {
		switch {
		case r.Frame == nil:
			return fmt.Errorf("frame %d passes -Y, but its flow ended early because memory ran out: give more by --memory",
				r.Datagram.Ref.Frame())
		case save.Frames > 0 && r.Frame.Ref == wrote:
			return nil // a frame can hold several messages or datagrams
		}
		wrote = r.Frame.Ref
		return save.Write(r.Frame)
	}
	if err := l.Read(from); err != nil {
		return err
	}
	if save.Frames == 0 {
		return fmt.Errorf("%s: no packet passes the filter: there is nothing to put into the page", from.Name())
	}
	return save.Close(nil)
}

// file adds a file as it is.
func (p *packing) file(path, kind, side string) error {
	in := p.app.In
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		p.open, in = append(p.open, file), file
	}
	buffered := bufio.NewReader(in)
	head, _ := buffered.Peek(4) // what is shorter is no capture
	if kind == "capture" {
		if err := readable(path, head); err != nil {
			return err
		}
	}
	p.page.Files = append(p.page.Files, web.File{
		Name: p.name(path), Kind: kind, Side: side, Packed: packed(head), Copy: func(to io.Writer) error {
			_, err := io.Copy(to, buffered)
			return err
		},
	})
	return nil
}

// packed reports whether a file is compressed.
// Source: RFC 1952, 2.3.1, gzip; RFC 8878, 3.1.1, zstd
func packed(head []byte) bool {
	return strings.HasPrefix(string(head), "\x1f\x8b") || string(head) == "\x28\xb5\x2f\xfd"
}

// readable returns an error if a file is no capture. A pipe is read once, so only its head tells.
func readable(path string, head []byte) error {
	if reader.File(path).Reopens() {
		in, err := capture.Open([]string{path}, capture.Options{})
		if err != nil {
			return err
		}
		return in.Close()
	}
	if packed(head) || len(head) == 4 && capture.Begins([4]byte(head)) {
		return nil
	}
	return &capture.FormatError{
		File: path, Expected: "the magic number of pcap or pcapng, plain, gzip or zstd", Found: fmt.Sprintf("% x", head),
	}
}

// beside adds the files that the analysis reads beside the captures.
func (p *packing) beside(logs *reader.Logs, keys bool) error {
	x := &p.app.Flags
	for _, f := range []struct {
		kind  string
		paths []string
	}{{"profiles", x.Profiles}, {"schema", []string{x.Schema}}, {"thresholds", []string{x.Thresholds}}} {
		for _, path := range f.paths {
			if path == "" {
				continue
			}
			if err := p.file(path, f.kind, ""); err != nil {
				return err
			}
		}
	}
	switch {
	case keys && x.Keys == "":
		return errors.New("--with-keys: expected --keys FILE too")
	case keys:
		if err := p.file(x.Keys, "keys", ""); err != nil {
			return err
		}
	case x.Keys != "":
		p.app.Remark("the page does not have the keys, and shows nothing that they decrypt: --with-keys puts them into it")
	}
	for side, path := range logs.Files() {
		if err := p.file(path, "log", side); err != nil {
			return err
		}
	}
	return nil
}

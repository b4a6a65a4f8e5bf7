package cli

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/outfile"
)

// app is one run of the program: what all commands share.
type app struct {
	streams
	registry *dissect.Registry
	flags    struct {
		read     []string
		json     bool
		decodeAs []string
		profiles []string
		keys     string
		schema   string
		vantage  string
		strict   bool
		color    string
		quiet    bool
		join     bool // of the commands that read several captures
		// joinGiven says that --join was given, be it as --join=false.
		joinGiven bool
	}
	outputs    outfile.Outputs
	signalling sync.Once
	signals    chan os.Signal // that end the program while files are unfinished; nil before
	memory     budget
	restore    func() // undoes what the command set for the process
	headed     bool   // a heading of a recording was printed
	buffered   *bufio.Writer
	fieldTable *filter.Table
	newEndings func() endings
}

// writer gives standard output, buffered: run flushes it.
func (a *app) writer() *bufio.Writer {
	if a.buffered == nil {
		a.buffered = bufio.NewWriterSize(a.out, 64<<10)
	}
	return a.buffered
}

func (a *app) flush() error {
	if a.buffered == nil {
		return nil
	}
	return a.buffered.Flush()
}

func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// paths are the captures that the command line names: standard input if none.
func (a *app) paths(args []string) []string {
	paths := append(append([]string(nil), a.flags.read...), args...)
	if len(paths) == 0 {
		return []string{"-"}
	}
	return paths
}

// awaits refuses to wait for a capture that somebody would have to type.
func (a *app) awaits(args []string) error {
	if len(args)+len(a.flags.read) == 0 {
		if f, ok := a.in.(*os.File); ok && terminal(f) {
			return errors.New("no capture given: expected a file, or - for standard input")
		}
	}
	return nil
}

// open opens the files of a recording; keep says what must be readable again.
func (a *app) open(r *recording, keep capture.Keep) (*capture.Input, error) {
	return capture.Open(r.paths, capture.Options{Keep: keep, Stdin: a.in})
}

// options are the analysis options that the flags ask for.
func (a *app) options() (analyze.Options, error) {
	o := analyze.Options{Registry: a.registry, Limits: a.limits(0), Gone: a.letGo}
	if a.flags.vantage != "" {
		v, ok := machine.ParseVantage(a.flags.vantage)
		if !ok {
			return o, fmt.Errorf("--vantage %q: expected a, b, both, between or unknown", a.flags.vantage)
		}
		o.Vantage = &v
	}
	for _, text := range a.flags.decodeAs {
		d, err := a.parseDecodeAs(text)
		if err != nil {
			return o, err
		}
		o.DecodeAs = append(o.DecodeAs, d)
	}
	o.DecodeAs = append(o.DecodeAs, a.portsOfProfiles()...)
	return o, nil
}

// portsOfProfiles gives the overrides that profiles ask for by naming ports.
func (a *app) portsOfProfiles() (list []analyze.DecodeAs) {
	for _, p := range a.registry.Protocols() {
		for _, x := range p.Profiles {
			for _, port := range x.Config.Ports {
				list = append(list, analyze.DecodeAs{
					Text:      fmt.Sprintf("port %d of profile %s:%s", port, p.Name, x.Name),
					Transport: capture.UDP, Port: port, Protocol: p, Config: x.Config,
				})
			}
		}
	}
	return list
}

// parseDecodeAs reads tshark's form: udp.port==7777,gaffer:profile.
func (a *app) parseDecodeAs(text string) (analyze.DecodeAs, error) {
	d := analyze.DecodeAs{Text: "-d " + text}
	fail := func(format string, args ...any) (analyze.DecodeAs, error) {
		return d, fmt.Errorf("-d %s: "+format+" (example: -d udp.port==7777,gaffer:article-be)", append([]any{text}, args...)...)
	}
	selector, target, ok := strings.Cut(text, ",")
	if !ok {
		return fail("expected a selector, a comma and a protocol")
	}
	field, value, ok := strings.Cut(selector, "==")
	if !ok {
		return fail("selector %q: expected udp.port==, tcp.port== or ip.addr==", selector)
	}
	switch field {
	case "udp.port", "tcp.port":
		port, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			return fail("port %q: expected a number up to 65535", value)
		}
		d.Port, d.Transport = uint16(port), capture.UDP
		if field == "tcp.port" {
			d.Transport = capture.TCP
		}
	case "ip.addr", "ipv6.addr":
		addr, err := netip.ParseAddr(value)
		if err != nil {
			return fail("address %q: %v", value, err)
		}
		d.Addr, d.Transport = addr, capture.UDP
	default:
		return fail("selector %q: expected udp.port==, tcp.port== or ip.addr==", selector)
	}
	name, profile, _ := strings.Cut(target, ":")
	if d.Protocol, ok = a.registry.Lookup(name); !ok {
		return fail("unknown protocol %q", name)
	}
	for i := range d.Protocol.Profiles {
		if p := &d.Protocol.Profiles[i]; p.Name == profile || profile == "" {
			d.Config = p.Config
			return d, nil
		}
	}
	return fail("%s has no profile %q: see `ackscope protocols %s`", name, profile, name)
}

// ended says what to make of how reading ended: a cut capture is a warning
// (an error with --strict), any other trouble is an error.
func (a *app) ended(err error) error {
	if err == nil {
		return nil
	}
	if !a.tolerated(err) {
		return err
	}
	if !a.flags.quiet {
		a.say("warning: ", err)
	}
	return nil
}

// tolerated reports whether reading ended in a way that is only warned of.
func (a *app) tolerated(err error) bool {
	var damaged *capture.DamageError
	var cut *capture.CutError
	return !a.flags.strict && !errors.As(err, &damaged) && errors.As(err, &cut)
}

// study runs the whole analysis twice over a recording, so that every fact has
// its final grade when the sink sees it.
func (a *app) study(r *recording, sink analyze.Sink) (*analyze.Session, *capture.Input, error) {
	o, err := a.options()
	if err != nil {
		return nil, nil, err
	}
	in, err := a.open(r, capture.KeepPipes)
	if err != nil {
		return nil, nil, err
	}
	o.Sink = sink
	f := &feed{source: in, progress: a.newProgress(in, 2)}
	s, err := analyze.RunTwice(f, o)
	f.progress.done()
	return s, in, err
}

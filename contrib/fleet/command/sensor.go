package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/interfaces"
	"github.com/ackscope/ackscope/contrib/fleet/link"
	"github.com/ackscope/ackscope/contrib/fleet/message"
	"github.com/ackscope/ackscope/contrib/fleet/sensor"
	"github.com/ackscope/ackscope/live"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/protocols"
	"github.com/ackscope/ackscope/ring"
)

// sensorFlags are the flags of `ackscope-fleet sensor`.
type sensorFlags struct {
	link    link.Options
	sensor  sensor.Options
	spool   sensor.SpoolOptions
	capture sourceFlags
	ring    string
	sizes   struct{ spool, ring, fetch string }
	user    struct {
		profiles     []string
		keys, schema string
		decodeAs     []string
		vantage      string
	}
	drain time.Duration
	stay  bool
}

// sourceFlags say what is analysed.
type sourceFlags struct {
	live   interfaces.Flags
	read   []string
	follow bool
	bounds interfaces.Bounds
	memory string
}

// sensor builds `ackscope-fleet sensor`.
func (p *program) sensor() *cobra.Command {
	s := &sensorFlags{link: link.Options{Name: "ackscope-fleet sensor", Notice: p.notice}}
	c := &cobra.Command{
		Use: "sensor --site SITE --name NAME {-i INTERFACE | -r FILE}", Args: cobra.NoArgs,
		Short: "Analyse traffic on a game host, and tell the hub",
		Long: `sensor analyses traffic as "ackscope capture" does, with the same privileges: they are
given up for good once the sockets are open. It samples what the host counts at its
sockets, and ends the flows that were silent longest beyond --memory. Flows and findings
go into a spool on the disk, and from there to the hub. So the hub may be away for as long as the spool has
room. Then the oldest row goes first, and the gap in its numbers shows it.

With --ring, the newest packets stay on the disk. With --allow-fetch, an operator may ask
for those of a flow. They leave the host anonymised, unless --allow-plain is given.`,
		Example: `  sudo ackscope-fleet sensor --site eu --name game-7 -i eth0 -f 'udp port 7777' \
    --hub tls://hub:4222 --key site-eu.key --ring /var/lib/ackscope/ring --allow-fetch`,
		RunE: func(c *cobra.Command, _ []string) error { return p.runSensor(c.Context(), s) },
	}
	f := c.Flags()
	s.link.Register(f)
	f.StringVar(&s.sensor.At.Site, "site", "", "`NAME` of the site, as its key has it")
	f.StringVar(&s.sensor.At.Sensor, "name", "", "`NAME` of this sensor, unique at its site")
	f.StringVar(&s.spool.Folder, "spool", "spool", "`FOLDER` of the rows that the hub does not have yet")
	f.StringVar(&s.sizes.spool, "spool-size", "256MiB", "`SIZE` of the spool; beyond it the oldest row goes")
	f.BoolVar(&s.spool.Sync, "sync", false, "wait for the disk at each row: slower, but a loss of power takes none")
	f.StringVar(&s.ring, "ring", "", "`FOLDER` for the newest packets")
	f.StringVar(&s.sizes.ring, "ring-size", "1GiB", "`SIZE` of the ring")
	f.BoolVar(&s.sensor.Fetch.Allow, "allow-fetch", false, "give packets of the ring to operators, anonymised")
	f.BoolVar(&s.sensor.Fetch.Plain, "allow-plain", false, "give packets as captured, if an operator asks for that")
	f.StringVar(&s.sizes.fetch, "fetch-size", "64MiB", "most bytes of one answer, `SIZE`")
	f.DurationVar(&s.drain, "drain", 5*time.Second, "`TIME` to bring the last rows to the hub at the end")
	f.BoolVar(&s.stay, "stay", false, "after the end of a file, go on to forward and to answer")
	s.capture.register(c)
	f.StringSliceVar(&s.user.profiles, "profiles", nil, "`FILE` of profiles, as of ackscope")
	f.StringVar(&s.user.keys, "keys", "", "`FILE` of the game's keys, as of ackscope")
	f.StringVar(&s.user.schema, "schema", "", "`FILE` of a schema of messages, as of ackscope")
	f.StringArrayVarP(&s.user.decodeAs, "decode-as", "d", nil, "the protocol of a port: `udp.port==7777,gaffer`")
	f.StringVar(&s.user.vantage, "vantage", "", "where the sensor is, a being who sent first: `a|b|both|between|unknown`")
	return c
}

func (s *sourceFlags) register(c *cobra.Command) {
	f := c.Flags()
	s.live.Register(c)
	f.StringArrayVarP(&s.read, "read", "r", nil, "analyse a `FILE` (repeatable), in place of an interface")
	f.BoolVar(&s.follow, "follow", false, "the file grows: wait for more of it")
	s.bounds.Register(c, "; the others end early", " (5m)")
	f.StringVar(&s.memory, "memory", "", "use at most this much memory, as `1GiB` (512MiB)")
}

// source is what is analysed, and what describes its frames.
type source struct {
	capture.Source
	describe func(file, index int) capture.Interface
	counts   func() ([]capture.Statistics, error)
	dropped  func() uint64
	probe    *live.Probe // nil if the host is not sampled
	close    func()
}

// open opens interfaces or files. Where there are privileges to give up, it does not return: it executes the program
// again. So nothing else may be open before it.
func (s *sourceFlags) open(ctx context.Context, notice func(string)) (*source, error) {
	if (len(s.live.Devices) == 0) == (len(s.read) == 0) {
		return nil, errors.New("expected -i INTERFACE or -r FILE, one of them")
	}
	if err := s.live.Check(); err != nil {
		return nil, err
	}
	if len(s.live.Devices) > 0 {
		return s.interfaces(notice)
	}
	if s.follow {
		if len(s.read) > 1 {
			return nil, errors.New("--follow: expected one file, found more")
		}
		f, err := live.Follow(ctx, s.read[0])
		if err != nil {
			return nil, err
		}
		return fileSource(f, f.Input, f.Close), nil
	}
	in, err := capture.Open(s.read, capture.Options{})
	if err != nil {
		return nil, err
	}
	return fileSource(in, in, in.Close), nil
}

func fileSource(src capture.Source, in *capture.Input, closeIt func() error) *source {
	return &source{
		Source:   src,
		describe: func(file, index int) capture.Interface { return in.Interfaces(file)[index] },
		close:    func() { _ = closeIt() },
	}
}

// interfaces opens interfaces with the least privileges, as "ackscope capture" does.
func (s *sourceFlags) interfaces(notice func(string)) (*source, error) {
	group, probe, err := s.live.Open(func() {}, notice)
	if err != nil {
		return nil, err
	}
	if text := interfaces.RootAdvice(); text != "" {
		notice(text)
	}
	list := group.Interfaces()
	return &source{
		Source: group, describe: func(_, index int) capture.Interface { return list[index] },
		counts: group.Statistics, dropped: func() uint64 { return live.Dropped(group) }, probe: probe,
		close: func() { _ = group.Close() },
	}, nil
}

// limits returns the bounds of the analysis, and of the memory of the whole program.
func (s *sourceFlags) limits() (l analyze.Limits, memory int64, err error) {
	if l, memory, err = app.LiveLimits(s.memory); err != nil {
		return l, 0, err
	}
	return l, memory, s.bounds.Apply(&l)
}

func (p *program) runSensor(ctx context.Context, s *sensorFlags) error {
	if err := s.sensor.At.Check(); err != nil {
		return err
	}
	limits, memory, err := s.capture.limits()
	if err != nil {
		return err
	}
	var ringBytes int64
	for _, x := range []struct {
		flag, text string
		to         *int64
	}{
		{"--spool-size", s.sizes.spool, &s.spool.Bytes},
		{"--ring-size", s.sizes.ring, &ringBytes},
		{"--fetch-size", s.sizes.fetch, &s.sensor.Fetch.Bytes},
	} {
		n, err := app.ParseSize(x.text)
		if err != nil {
			return fmt.Errorf("%s: %w", x.flag, err)
		}
		*x.to = n
	}
	src, err := s.capture.open(ctx, p.notice) // first: it may execute the program again
	if err != nil {
		return err
	}
	defer src.close()
	debug.SetMemoryLimit(memory)
	if err := s.analysis(); err != nil { // files are read as the user who goes on
		return err
	}
	s.sensor.Analysis.Limits, s.sensor.Probe = limits, src.probe
	if err := s.openRing(src, ringBytes); err != nil {
		return err
	}
	if s.sensor.Ring != nil {
		defer p.closeRing(s.sensor.Ring)
	}
	return p.sense(ctx, s, src)
}

// closeRing ends the newest file of a ring. An error takes its last packets, and nothing else.
func (p *program) closeRing(r *ring.Ring) {
	if err := r.Close(); err != nil {
		p.notice("ring: " + err.Error())
	}
}

// analysis reads the user's files.
func (s *sensorFlags) analysis() error {
	o := protocols.Options{DecodeAs: s.user.decodeAs}
	for _, path := range s.user.profiles {
		o.Profiles = append(o.Profiles, protocols.File{Path: path})
	}
	if s.user.keys != "" {
		o.Keys = &protocols.File{Path: s.user.keys}
	}
	if s.user.schema != "" {
		o.Schema = &protocols.File{Path: s.user.schema}
	}
	set, err := protocols.New(o)
	if err != nil {
		return err
	}
	s.sensor.Analysis = analyze.Options{Registry: set.Registry, DecodeAs: set.DecodeAs}
	if s.user.vantage == "" {
		return nil
	}
	v, ok := machine.ParseVantage(s.user.vantage)
	if !ok {
		return fmt.Errorf("--vantage %q: expected a, b, both, between or unknown", s.user.vantage)
	}
	s.sensor.Analysis.Vantage = &v
	return nil
}

// mostRingFile bounds a file of the ring. A cut reads whole files.
const mostRingFile = 16 << 20

func (s *sensorFlags) openRing(src *source, bytes int64) error {
	if s.ring == "" {
		return nil
	}
	path, err := folder(s.ring)
	if err != nil {
		return err
	}
	const files = 8 // at least, so that what a bound removes is a small part
	s.sensor.Ring, err = ring.Open(path, ring.Options{
		Bytes: bytes, FileBytes: min(mostRingFile, bytes/files), Interface: src.describe, Counts: src.counts,
	})
	return err
}

// sense runs the sensor until its source ends or the context is done.
func (p *program) sense(ctx context.Context, s *sensorFlags, src *source) error {
	var err error
	if s.spool.Folder, err = folder(s.spool.Folder); err != nil {
		return err
	}
	if s.sensor.Fetch.Work, err = folder(filepath.Join(s.spool.Folder, "cuts")); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.sensor.Fetch.Work) }() // the next run writes there too
	spool, err := sensor.OpenSpool(ctx, s.sensor.At, s.spool)
	if err != nil {
		return err
	}
	defer spool.Close()
	s.link.Inbox = message.Inbox(s.sensor.At.Site)
	hub, err := link.Connect(s.link)
	if err != nil {
		return err
	}
	defer hub.Close()
	s.sensor.Version, s.sensor.Notice = version(), p.notice
	x, err := sensor.New(spool, hub, s.sensor)
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serve sync.WaitGroup
	serve.Go(func() {
		if err := x.Serve(serving); err != nil {
			p.notice(err.Error())
		}
	})
	defer serve.Wait()
	defer stop()
	p.notice(fmt.Sprintf("sensor %v: epoch %s", s.sensor.At, spool.Epoch()))
	err = x.Run(ctx, src.Source, src.dropped)
	if err == nil && s.stay {
		<-ctx.Done()
	}
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drain)
	defer cancel()
	left := x.Drain(draining)
	report := x.Report(serving)
	p.notice(fmt.Sprintf("sensor %v: %d packets, %d rows told, %d confirmed, %d dropped, %d left in the spool",
		s.sensor.At,
		report.Packets, report.Told[message.Flows]+report.Told[message.Findings], report.Forwarded, report.Dropped, left))
	return err
}

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// simulateFlags are the settings of one simulated flow. Those that a path has
// take one value, or two with a slash: from a to b, and from b to a.
type simulateFlags struct {
	protocol  string
	seed      uint64
	loss      string
	burst     string
	delay     string
	jitter    string
	inOrder   bool
	dup       string
	outage    string
	bandwidth string
	duration  time.Duration
	rate      string
	payload   string
	refuse    string
	first     string
	eventTime bool
	messages  float64
	tap       string
	write     string
	journal   string
	truth     string
	play      string
}

func (a *app) simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Run reference endpoints over a simulated network and capture what they send",
		Long: `simulate lets two reference endpoints talk over a network that loses, delays,
reorders and duplicates as told, in virtual time, and writes what a tap sees of it.
The same seed gives the same bytes. The truth, what both endpoints really did,
goes to a file in the form of the logs that recorded captures have beside them;
the journal holds every input, from which --play gives the run again.

Of an option that a path has, A/B sets the two directions apart: --loss 5%/40%.`,
		Example: `  ackscope simulate --protocol gaffer:reliable --seed 7 --loss 5% --delay 20ms --jitter 5ms \
      --duration 20s --tap a -w run.client.pcapng --truth run.truth.jsonl --journal run.journal.jsonl
  ackscope simulate --play run.journal.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if f.play != "" {
				return a.play(f.play)
			}
			return a.simulate(&f)
		},
	}
	p := c.Flags()
	p.StringVar(&f.protocol, "protocol", "gaffer:"+wire.Article, "what the endpoints speak: `gaffer:PROFILE`")
	p.Uint64Var(&f.seed, "seed", 1, "seed of the run")
	p.StringVar(&f.loss, "loss", "0%", "share of datagrams that are lost")
	p.StringVar(&f.burst, "burst", "", "losses in bursts: `INTO,OUT`, the shares with which the network turns bad and good again")
	p.StringVar(&f.delay, "delay", "20ms", "one way")
	p.StringVar(&f.jitter, "jitter", "0ms", "added to the delay, uniformly")
	p.BoolVar(&f.inOrder, "in-order", false, "jitter does not reorder")
	p.StringVar(&f.dup, "dup", "0%", "share of datagrams that arrive twice")
	p.StringVar(&f.outage, "outage", "", "everything is lost: `AT,FOR[,EVERY]`, such as 4s,500ms,4s")
	p.StringVar(&f.bandwidth, "bandwidth", "0", "bits a second of the first hop, 0 for no limit")
	p.DurationVar(&f.duration, "duration", 20*time.Second, "how long both send; the run goes on for a second")
	p.StringVar(&f.rate, "rate", "60", "packets a second, one each frame")
	p.StringVar(&f.payload, "payload", "16-200", "payload bytes of a packet: `LEAST-MOST`")
	p.StringVar(&f.refuse, "refuse", "0%", "share of packets that the receiving application refuses")
	p.StringVar(&f.first, "first", "0", "sequence of the first packet")
	p.BoolVar(&f.eventTime, "event-clock", false, "the endpoints read their clock at every arrival, not once a frame")
	p.Float64Var(&f.messages, "messages", 0, "reliable messages a second that each side submits, of what the profile's schema has")
	p.StringVar(&f.tap, "tap", "a", "where the capture is taken: `a|b|between`, or a share of the way from a to b")
	p.StringVarP(&f.write, "write", "w", "", "`FILE` for the capture, - for standard output")
	p.StringVar(&f.journal, "journal", "", "`FILE` for the journal")
	p.StringVar(&f.truth, "truth", "", "`FILE` for the truth")
	p.StringVar(&f.play, "play", "", "run a journal `FILE` again and check that every byte is the same")
	return c
}

// simulation is a run that is set up.
type simulation struct {
	flags    *simulateFlags
	profile  *wire.Profile
	world    *sim.World
	link     *sim.Link
	failed   error // trouble of an application
	sentHash interface {
		io.Writer
		Sum([]byte) []byte
	}
}

// simulationEpoch is what the start of every run is called in captures: runs
// are reproducible, so no clock is asked.
const simulationEpoch = machine.Instant(1_767_225_600_000_000_000) // 2026-01-01T00:00:00Z

var simulationAddrs = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:30000"), netip.MustParseAddrPort("10.0.0.2:40000")}

func (a *app) simulate(f *simulateFlags) (err error) {
	s, err := a.newSimulation(f)
	if err != nil {
		return err
	}
	journal, truth := s.world.Record(), s.world.Truth()
	closers, writer, err := a.tapInto(s)
	if err != nil {
		return err
	}
	err = errors.Join(s.world.Run(machine.Instant(f.duration+time.Second)), s.failed)
	for _, c := range closers {
		err = errors.Join(err, c())
	}
	if err == nil && writer != nil {
		err = *writer
	}
	if err != nil {
		return err
	}
	if f.journal != "" {
		journal.Note = s.note()
		if err := create(f.journal, func(w io.Writer) error { _, err := journal.WriteTo(w); return err }); err != nil {
			return err
		}
	}
	if f.truth != "" {
		if err := create(f.truth, func(w io.Writer) error { return truth.Write(w, s.world.Hosts(), s.truthFile()) }); err != nil {
			return err
		}
	}
	if f.write != "-" {
		a.summarize(s, truth)
	}
	return nil
}

func (a *app) summarize(s *simulation, truth *sim.Truth) {
	w := a.writer()
	for _, h := range s.world.Hosts() {
		e := h.Endpoint().(*gaffer.Endpoint)
		fmt.Fprintf(w, "%s: sent %d, acked %d, received %d, rtt %.3f ms, loss %.2f %%\n", h.Name,
			len(truth.Of(h, machine.EventSent)), len(truth.Of(h, machine.EventAcked)), len(truth.Of(h, machine.EventReceived)),
			float64(e.Estimates().RTT())/1e6, e.Estimates().Loss()*100)
	}
}

func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// simulated gives the profile that --protocol names, built in or a user's.
func (a *app) simulated(text string) (*wire.Profile, error) {
	name, dialect, ok := strings.Cut(text, ":")
	if name != "gaffer" {
		return nil, fmt.Errorf("--protocol %q: expected gaffer:PROFILE", text)
	}
	if !ok {
		dialect = wire.Article
	}
	protocol, ok := a.registry.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("--protocol %q: not built in", text)
	}
	for i := range protocol.Profiles {
		if p, ok := protocol.Profiles[i].Config.Profile.(*wire.Profile); ok && protocol.Profiles[i].Name == dialect {
			return p, nil
		}
	}
	return nil, fmt.Errorf("--protocol %q: no such profile to simulate: expected one of %s, or one from --profiles", text, strings.Join(wire.BuiltinNames(), ", "))
}

// newSimulation builds the world that the flags describe.
func (a *app) newSimulation(f *simulateFlags) (*simulation, error) {
	profile, err := a.simulated(f.protocol)
	if err != nil {
		return nil, err
	}
	if !profile.HasAcks() {
		return nil, fmt.Errorf("--protocol %q: expected a profile with acks", f.protocol)
	}
	if profile.HasCRC() && profile.ProtocolID == nil {
		profile = profile.WithProtocolID(0x12345678)
	}
	if f.messages > 0 && profile.Messages.Form == wire.MessagesNone {
		return nil, fmt.Errorf("--messages: the profile of --protocol %s has no message section: give one of your own with --profiles", f.protocol)
	}
	toB, toA, err := f.paths()
	if err != nil {
		return nil, err
	}
	s := &simulation{flags: f, profile: profile, world: sim.New(f.seed), sentHash: sha256.New()}
	var hosts [2]*sim.Host
	for i, name := range []string{"client", "server"} {
		h, err := f.host(s, i, name)
		if err != nil {
			return nil, err
		}
		hosts[i] = h
	}
	s.link = s.world.Connect(hosts[0], hosts[1], toB, toA)
	s.world.Watch(func(step *sim.Step) {
		for _, t := range step.Out.Transmit {
			_, _ = s.sentHash.Write(t.Bytes) // a hash never fails
		}
	})
	return s, nil
}

// endpoint builds one side's endpoint as the flags say.
func (f *simulateFlags) endpoint(profile *wire.Profile, side int) (*gaffer.Endpoint, error) {
	first, err := pair(f.first, func(text string) (uint32, error) {
		v, err := strconv.ParseUint(text, 10, 32)
		return uint32(v), err
	})
	if err != nil {
		return nil, fmt.Errorf("--first: %w", err)
	}
	o := gaffer.Options{
		Profile: profile, Rules: gaffer.RulesOf(profile), Side: machine.Side(side), EventClock: f.eventTime, First: first[side],
	}
	if profile.Fragments == wire.FragmentsReliable {
		o.FragmentAbove, o.FragmentSize, o.FragmentMost = 1024, 1024, 16
	}
	if profile.Messages.Form != wire.MessagesNone {
		o.Messages = &gaffer.MessageOptions{}
	}
	return gaffer.NewEndpoint(o)
}

// messageTypes is what messages are drawn by.
type messageTypes interface {
	Read(kind uint32, r *bits.Reader) (schema.Record, error)
	Body(kind uint32) *schema.Body
}

// spell makes letters of the bytes of all texts.
func spell(v any) any {
	switch v := v.(type) {
	case schema.Record:
		for i := range v {
			v[i].Value = spell(v[i].Value)
		}
	case []any:
		for i := range v {
			v[i] = spell(v[i])
		}
	case string:
		b := []byte(v)
		for i := range b {
			b[i] = "etaoinshrdlu    "[b[i]%16]
		}
		return string(b)
	}
	return v
}

// drawMessage draws a message of the profile's schema: random bits, as soon as
// they make a body.
func drawMessage(rng *rand.Rand, section *wire.MessageSection) (kind uint32, body []byte, err error) {
	types, ok := section.Bodies.(messageTypes)
	if !ok {
		return 0, nil, errors.New("the profile has no schema of its messages")
	}
	kind = uint32(rng.IntN(section.Types))
	for range 10000 {
		r := bits.NewReader(noise(rng, 1024))
		record, err := types.Read(kind, &r)
		if err != nil {
			continue
		}
		spell(record)
		w := bits.NewWriter(nil)
		if err := types.Body(kind).Write(&w, record); err == nil && len(w.Data()) <= 512 {
			return kind, w.Data(), nil
		}
	}
	return 0, nil, fmt.Errorf("no message of type %d of at most 512 bytes came up in 10,000 draws", kind)
}

func (f *simulateFlags) host(s *simulation, side int, name string) (*sim.Host, error) {
	e, err := f.endpoint(s.profile, side)
	if err != nil {
		return nil, err
	}
	rates, err := pair(f.rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
	if err != nil || !(rates[side] > 0 && rates[side] <= 1e6) {
		return nil, fmt.Errorf("--rate %q: expected packets a second, up to a million", f.rate)
	}
	refuse, err := pair(f.refuse, parseShare)
	if err != nil {
		return nil, fmt.Errorf("--refuse: %w", err)
	}
	least, most, err := parseRange(f.payload)
	if err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	frame := time.Duration(float64(time.Second) / rates[side])
	phase := time.Duration(s.world.Rand("phase " + name).Int64N(int64(frame)))
	due := 0.0
	app := func(fr *sim.Frame) {
		if fr.Now >= machine.Instant(f.duration) {
			return
		}
		for due += f.messages / rates[side]; due >= 1 && e.CanSubmit(); due-- {
			kind, body, err := drawMessage(fr.Rand, &s.profile.Messages)
			if err != nil {
				s.failed = fmt.Errorf("--messages: %w", err)
				return
			}
			fr.Do(machine.Submit{Channel: gaffer.ChannelMessage, Type: kind, Payload: body})
		}
		fr.Do(machine.Submit{Channel: gaffer.ChannelPacket, Payload: noise(fr.Rand, least+fr.Rand.IntN(most-least+1))})
	}
	return s.world.AddHost(name, e, sim.HostOptions{
		Frame: frame, Phase: phase, FrameJitter: frame / 50, App: app, EventDriven: f.eventTime, Refuse: refuse[side],
	}), nil
}

func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// tapInto has the tap write the capture. The closers are called at the end of
// the run; trouble of the tap itself shows in *failed.
func (a *app) tapInto(s *simulation) (closers []func() error, failed *error, err error) {
	at := 0.0
	switch s.flags.tap {
	case "a", "client":
	case "b", "server":
		at = 1
	case "between":
		at = 0.5
	default:
		if at, err = parseShare(s.flags.tap); err != nil {
			return nil, nil, fmt.Errorf("--tap %q: expected a, b, between or a share of the way", s.flags.tap)
		}
	}
	if s.flags.write == "" {
		return nil, nil, nil
	}
	var to io.Writer = a.writer()
	if s.flags.write != "-" {
		file, err := os.Create(s.flags.write)
		if err != nil {
			return nil, nil, err
		}
		to = file
		closers = append(closers, file.Close)
	}
	w, err := capture.NewWriter(to, capture.WriterOptions{Application: "ackscope simulate", Comment: "simulated traffic, " + s.describe()})
	if err != nil {
		return closers, nil, err
	}
	if _, err := w.AddInterface(capture.Interface{Name: "tap " + s.flags.tap, LinkType: 101}); err != nil {
		return closers, nil, err
	}
	closers = append([]func() error{w.Close}, closers...)
	failed = new(error)
	var packet []byte
	var ids [2]uint16
	s.link.Tap(at, func(t sim.Tapped) {
		if *failed != nil {
			return
		}
		from := t.From.Index
		ids[from]++
		packet, *failed = capture.AppendUDP(packet[:0], capture.Envelope{
			Src: simulationAddrs[from], Dst: simulationAddrs[1-from], TTL: 64, ID: ids[from],
		}, t.Bytes)
		if *failed == nil {
			*failed = w.WriteFrame(&capture.Frame{At: simulationEpoch + t.At, LinkType: 101, Length: len(packet), Data: packet})
		}
	})
	return closers, failed, nil
}

func (s *simulation) describe() string {
	f := s.flags
	return fmt.Sprintf("%s, seed %d, loss %s, delay %s, jitter %s, dup %s", f.protocol, f.seed, f.loss, f.delay, f.jitter, f.dup)
}

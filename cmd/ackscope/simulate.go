package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/ackscope/ackscope/sim"
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
	s, err := newSimulation(f)
	if err != nil {
		return err
	}
	journal, truth := s.world.Record(), s.world.Truth()
	closers, writer, err := a.tapInto(s)
	if err != nil {
		return err
	}
	err = s.world.Run(machine.Instant(f.duration + time.Second))
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

// newSimulation builds the world that the flags describe.
func newSimulation(f *simulateFlags) (*simulation, error) {
	protocol, dialect, ok := strings.Cut(f.protocol, ":")
	if protocol != "gaffer" {
		return nil, fmt.Errorf("--protocol %q: expected gaffer:PROFILE", f.protocol)
	}
	if !ok {
		dialect = wire.Article
	}
	profile, _, err := wire.Builtin(dialect)
	if err != nil {
		return nil, fmt.Errorf("--protocol: %w", err)
	}
	if !profile.HasAcks() {
		return nil, fmt.Errorf("--protocol %q: expected a profile with acks", f.protocol)
	}
	if profile.HasCRC() {
		profile = profile.WithProtocolID(0x12345678)
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
	return gaffer.NewEndpoint(o)
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
	app := func(fr *sim.Frame) {
		if fr.Now < machine.Instant(f.duration) {
			fr.Do(machine.Submit{Channel: gaffer.ChannelPacket, Payload: noise(fr.Rand, least+fr.Rand.IntN(most-least+1))})
		}
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

// paths reads the flags of both directions.
func (f *simulateFlags) paths() (toB, toA sim.Path, err error) {
	loss, err1 := pair(f.loss, parseShare)
	dup, err2 := pair(f.dup, parseShare)
	delay, err3 := pair(f.delay, parseDelay)
	jitter, err4 := pair(f.jitter, parseDelay)
	burst, err5 := pair(f.burst, parseBurst)
	outage, err6 := pair(f.outage, parseOutage)
	bandwidth, err7 := pair(f.bandwidth, strconv.Atoi)
	for i, e := range []error{err1, err2, err3, err4, err5, err6, err7} {
		if e != nil {
			return toB, toA, fmt.Errorf("--%s: %w", [...]string{"loss", "dup", "delay", "jitter", "burst", "outage", "bandwidth"}[i], e)
		}
	}
	at := func(i int) sim.Path {
		return sim.Path{
			Delay: delay[i], Jitter: jitter[i], InOrder: f.inOrder, Loss: loss[i], Duplicate: dup[i],
			Bursts: burst[i], Outages: outage[i], Rate: max(bandwidth[i], 0),
		}
	}
	return at(0), at(1), nil
}

// pair reads one value for both directions, or two with a slash between.
func pair[T any](text string, parse func(string) (T, error)) (both [2]T, err error) {
	first, second, two := strings.Cut(text, "/")
	if both[0], err = parse(first); err != nil {
		return both, err
	}
	if !two {
		both[1] = both[0]
		return both, nil
	}
	both[1], err = parse(second)
	return both, err
}

func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q: expected 0%% to 100%%", text)
	}
	return v, nil
}

func parseDelay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: expected a time such as 20ms", text)
	}
	return d, nil
}

func parseBurst(text string) (g sim.Gilbert, err error) {
	if text == "" {
		return g, nil
	}
	into, out, ok := strings.Cut(text, ",")
	if ok {
		if g.ToBad, err = parseShare(into); err == nil {
			g.ToGood, err = parseShare(out)
		}
	}
	if !ok || err != nil {
		return g, fmt.Errorf("%q: expected INTO,OUT such as 1%%,20%%", text)
	}
	return g, nil
}

func parseOutage(text string) ([]sim.Outage, error) {
	if text == "" {
		return nil, nil
	}
	var parts []time.Duration
	for part := range strings.SplitSeq(text, ",") {
		d, err := parseDelay(part)
		if err != nil {
			return nil, err
		}
		parts = append(parts, d)
	}
	if len(parts) < 2 || len(parts) > 3 {
		return nil, fmt.Errorf("%q: expected AT,FOR[,EVERY] such as 4s,500ms", text)
	}
	o := sim.Outage{From: machine.Instant(parts[0]), For: parts[1]}
	if len(parts) == 3 {
		o.Every = parts[2]
	}
	return []sim.Outage{o}, nil
}

func parseRange(text string) (least, most int, err error) {
	a, b, ok := strings.Cut(text, "-")
	if !ok {
		b = a
	}
	least, err1 := strconv.Atoi(a)
	most, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || least < 0 || most < least || most > 16384 {
		return 0, 0, fmt.Errorf("%q: expected LEAST-MOST within 0-16384", text)
	}
	return least, most, nil
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

// note is what the journal keeps beside the inputs: enough to build the
// endpoints again and to know their bytes.
func (s *simulation) note() map[string]string {
	return map[string]string{
		"protocol": s.flags.protocol, "first": s.flags.first, "event-clock": strconv.FormatBool(s.flags.eventTime),
		"sent-sha256": hex.EncodeToString(s.sentHash.Sum(nil)),
	}
}

func (s *simulation) describe() string {
	f := s.flags
	return fmt.Sprintf("%s, seed %d, loss %s, delay %s, jitter %s, dup %s", f.protocol, f.seed, f.loss, f.delay, f.jitter, f.dup)
}

// play runs a journal again: the same inputs must give the same bytes.
func (a *app) play(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	j, err := sim.ReadJournal(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	f := simulateFlags{protocol: j.Note["protocol"], first: j.Note["first"], eventTime: j.Note["event-clock"] == "true"}
	f.rate, f.refuse, f.payload, f.loss, f.dup, f.delay, f.jitter, f.bandwidth = "60", "0%", "0", "0%", "0%", "0ms", "0ms", "0"
	s, err := newSimulation(&f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var endpoints []machine.Endpoint
	for _, h := range s.world.Hosts() {
		endpoints = append(endpoints, h.Endpoint())
	}
	sum, datagrams := sha256.New(), 0
	err = j.Play(endpoints, func(_ *sim.Entry, out *machine.Effects) {
		for _, t := range out.Transmit {
			datagrams++
			sum.Write(t.Bytes) // a hash never fails
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	want, err := hex.DecodeString(j.Note["sent-sha256"])
	if err != nil || !bytes.Equal(want, sum.Sum(nil)) {
		return &gateError{fmt.Sprintf("%s: %d inputs gave %d datagrams that differ from the recorded run's", path, len(j.Entries), datagrams)}
	}
	fmt.Fprintf(a.writer(), "%d inputs gave %d datagrams, every byte as recorded\n", len(j.Entries), datagrams)
	return nil
}

// truthFile says how the truth is written: as beside the recorded captures.
func (s *simulation) truthFile() sim.TruthFile {
	f := s.flags
	first, _ := pair(f.first, strconv.Atoi)
	return sim.TruthFile{
		Epoch: simulationEpoch,
		Scenario: map[string]any{
			"name": "simulated", "client_addr": simulationAddrs[0].Addr().String(), "client_ports": []uint16{simulationAddrs[0].Port()},
			"server_addr": simulationAddrs[1].Addr().String(), "server_port": simulationAddrs[1].Port(), "params": f.params(),
		},
		Name: func(h *sim.Host) string { return h.Name },
		Opening: func(h *sim.Host) (lines []map[string]any) {
			if first[h.Index] != 0 {
				lines = append(lines, map[string]any{"event": "logging_starts", "next_seq": first[h.Index]})
			}
			if h.Index == 1 {
				lines = append(lines, map[string]any{"event": "peer", "addr": simulationAddrs[0].Addr().String(), "port": simulationAddrs[0].Port()})
			}
			return lines
		},
		Describe: func(fact *sim.Fact, line map[string]any) {
			var p wire.Packet
			if fact.Event.Kind != machine.EventSent {
				return
			}
			if err := s.profile.Parse(fact.Head, fact.Length, &p); p.HasHeader && (err == nil || p.HeaderLen > 0) {
				line["ack"], line["ack_bits"] = p.Header.Ack, fmt.Sprintf("%08x", p.Header.AckBits)
				line["hex"] = hex.EncodeToString(fact.Head[:min(len(fact.Head), p.HeaderOffset+p.HeaderLen)])
			}
		},
		Final: func(h *sim.Host, line map[string]any) {
			var v machine.View
			h.Endpoint().Inspect(&v)
			for _, g := range v.Gauges {
				line[g.Name] = g.Value
			}
		},
	}
}

// params are the parameters as truth files name them: milliseconds, percent.
func (f *simulateFlags) params() map[string]any {
	m := map[string]any{"seed": f.seed, "dur": f.duration.Seconds(), "loss": f.loss, "delay": f.delay, "jitter": f.jitter, "dup": f.dup}
	if rates, err := pair(f.rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }); err == nil {
		m["pps"], m["cpps"], m["spps"] = rates[0], rates[0], rates[1]
	}
	if f.eventTime {
		m["event"] = "1"
	}
	return m
}

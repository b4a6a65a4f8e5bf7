package riptide

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/schema/yamlfile"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// riptideCast is a server and its clients.
type riptideCast struct {
	flags    *simulate.Flags
	versions [2]*riptide.Version // of clients, and of the server
	source   *schema.Schema      // to draw by; nil without --schema
	schemas  [2]*schema.Schema   // as each writes, with the faults of its build
	kinds    []uint32
	shares   [3]float64 // of messages, by channel
	least    int
	most     int
	messages float64 // a second
	log      riptideLog
}

var simulator = simulate.Simulator{
	Name: "riptide", Begin: newRiptideCast, Faults: machine.Faults(endpoint.Faults),
	Words: func(*dissect.Protocol) []string { return riptide.VersionNames() },
}

func newRiptideCast(a *app.App, f *simulate.Flags) (simulate.Cast, error) {
	c := &riptideCast{flags: f, messages: f.Messages}
	if c.messages == 0 {
		c.messages = 20
	}
	if f.Refuse != "0%" || f.First != "0" {
		return nil, errors.New("--refuse, --first: of the Gaffer family only")
	}
	text, err := simulate.Pair(c.version(), func(text string) (*riptide.Version, error) {
		v, ok := riptide.LookupVersion(text)
		if !ok {
			return nil, app.UnknownName("--protocol "+f.Protocol+": no version", text, riptide.VersionNames())
		}
		return v, nil
	})
	if err != nil {
		return nil, err
	}
	c.versions = text
	if text[0].Build.Dialect != text[1].Build.Dialect {
		return nil, fmt.Errorf("--protocol %q: %s and %s do not understand each other", f.Protocol, text[0].Name, text[1].Name)
	}
	if c.least, c.most, err = simulate.ParseRange(f.Payload); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	if err := c.readMix(f.Mix); err != nil {
		return nil, err
	}
	if a.Flags.Schema != "" {
		if err := c.readSchema(a.Flags.Schema); err != nil {
			return nil, err
		}
	}
	if f.Clients < 1 || f.Clients > 64 {
		return nil, fmt.Errorf("--clients %d: expected 1 to 64", f.Clients)
	}
	if !slices.Contains([]string{"leave", "kick", "stop", "none"}, f.End) {
		return nil, fmt.Errorf("--end %q: expected leave, kick, stop or none", f.End)
	}
	return c, nil
}

// version gives the middle of riptide:VERSION:tcp.
func (c *riptideCast) version() string {
	_, version, ok := strings.Cut(c.flags.Protocol, ":")
	version = strings.TrimSuffix(version, ":tcp")
	if !ok || version == "tcp" || version == "" {
		return "2.1"
	}
	return version
}

func (c *riptideCast) stream() bool { return strings.HasSuffix(c.flags.Protocol, ":tcp") }

func (c *riptideCast) readMix(text string) error {
	parts := strings.Split(text, "/")
	sum := 0.0
	for i, channel := range []uint8{riptide.ChannelReliable, riptide.ChannelUnreliable, riptide.ChannelNotify} {
		if len(parts) != len(c.shares) {
			return fmt.Errorf("--mix %q: expected three shares such as 50/30/20", text)
		}
		v, err := strconv.ParseFloat(parts[i], 64)
		if err != nil || v < 0 || math.IsInf(v, 0) {
			return fmt.Errorf("--mix %q: %q is no share", text, parts[i])
		}
		if channel == riptide.ChannelNotify && (c.dialect().Layout(wire.Notify) == nil || c.versions[0].Build.NoNotify || c.versions[1].Build.NoNotify) {
			v = 0
		}
		c.shares[channel] = v
		sum += v
	}
	if sum == 0 {
		return fmt.Errorf("--mix %q: expected a share above 0 of what %s has", text, c.dialect().Name)
	}
	return nil
}

func (c *riptideCast) dialect() *wire.Dialect { return c.versions[0].Build.Dialect }

// readSchema reads the messages to draw, as each end writes them.
func (c *riptideCast) readSchema(path string) error {
	src, err := yamlfile.ReadFile(path)
	if err != nil {
		return err
	}
	s, err := yamlfile.Schema(src, path, wire.Coding{Codec: wire.Codec{Dialect: wire.V21}})
	if err != nil {
		return err
	}
	codec := wire.Codec{Dialect: c.dialect()}
	if c.source, err = s.With(wire.Coding{Codec: codec}); err != nil {
		return fmt.Errorf("%s: dialect %s: %w", path, c.dialect().Name, err)
	}
	for i, v := range c.versions {
		coding := wire.CodingOf(codec, wire.Matching(func(b *wire.Build) bool { return b == v.Build }))
		if c.schemas[i], err = s.With(coding); err != nil {
			return fmt.Errorf("%s: dialect %s: %w", path, v.Build.Dialect.Name, err)
		}
	}
	for _, id := range schema.Kinds(s.Messages) {
		if !c.packed(s.Messages[id]) || c.dialect().Form == wire.BitPacked {
			c.kinds = append(c.kinds, id)
		}
	}
	if len(c.kinds) == 0 {
		return fmt.Errorf("%s: no message that dialect %s can write", path, c.dialect().Name)
	}
	return nil
}

// packed reports whether a message has what only the bit-packed form can write.
func (c *riptideCast) packed(b *schema.Body) bool {
	return slices.ContainsFunc(b.Fields, func(f *schema.Field) bool {
		return f.Type == "bits" || f.Type == "varlong" || f.Type == "varulong"
	})
}

// Note implements simulate.Cast.
func (c *riptideCast) Note() map[string]string {
	return map[string]string{"clients": strconv.Itoa(c.flags.Clients), "no-limits": strconv.FormatBool(c.flags.Limitless)}
}

// Enter implements simulate.Cast.
func (c *riptideCast) Enter(s *simulate.Simulation) error {
	toB, toA, err := s.Flags.Paths()
	if err != nil {
		return err
	}
	rates, err := simulate.Pair(s.Flags.Rate, func(text string) (float64, error) { return strconv.ParseFloat(text, 64) })
	if err != nil || !(rates[0] > 0 && rates[0] <= 1e6) || !(rates[1] > 0 && rates[1] <= 1e6) {
		return fmt.Errorf("--rate %q: expected ticks a second, up to a million", s.Flags.Rate)
	}
	s.Stream = c.stream()
	add := func(side int, name string, addr netip.AddrPort) (*sim.Host, error) {
		e, err := c.endpoint(side)
		if err != nil {
			return nil, err
		}
		frame := time.Duration(float64(time.Second) / rates[side])
		p := &riptidePlayer{cast: c, side: side, endpoint: e, s: s, share: c.messages / rates[side]}
		h := s.World.AddHost(name, e, sim.HostOptions{
			Frame: frame, Phase: time.Duration(s.World.Rand("phase " + name).Int64N(int64(frame))), FrameJitter: frame / 50,
			App: p.play, EventDriven: s.Flags.EventTime,
		})
		p.host = h
		s.Addrs = append(s.Addrs, addr)
		return h, nil
	}
	server, err := add(1, "server", simulate.Addrs[1])
	if err != nil {
		return err
	}
	connect := s.World.Connect
	if s.Stream {
		connect = s.World.ConnectStream
	}
	for i := range s.Flags.Clients {
		client, err := add(0, fmt.Sprint("client", i+1), netip.AddrPortFrom(simulate.Addrs[0].Addr(), simulate.Addrs[0].Port()+uint16(i)))
		if err != nil {
			return err
		}
		s.Links = append(s.Links, connect(client, server, toB, toA))
	}
	return nil
}

func (c *riptideCast) endpoint(side int) (*endpoint.Endpoint, error) {
	o := endpoint.Options{
		Version: c.versions[side], Side: machine.Side(side), Stream: c.stream(), EventClock: c.flags.EventTime, Ask: true,
		Limits: endpoint.Limits{Off: c.flags.Limitless}, Resend: endpoint.Resend{After: c.flags.Resend}, Slots: max(c.flags.Clients, 1),
	}
	if c.flags.Wrong(side) {
		o.Fault = endpoint.LookupFault(c.flags.Fault)
	}
	if side == 1 {
		return endpoint.NewServer(o)
	}
	return endpoint.NewClient(o)
}

// Truth implements simulate.Cast.
func (c *riptideCast) Truth(s *simulate.Simulation) func(io.Writer) error {
	c.log.begin(c, s)
	return c.log.write
}

// Summarize implements simulate.Cast.
func (c *riptideCast) Summarize(w io.Writer, s *simulate.Simulation) {
	for _, h := range s.World.Hosts() {
		n := c.log.of(h)
		fmt.Fprintf(w, "%s: sent %d reliable, %d unreliable, %d notify; sent again %d, acked %d, received %d; smoothed rtt %d ms\n", h.Name,
			n.sent[riptide.ChannelReliable], n.sent[riptide.ChannelUnreliable], n.sent[riptide.ChannelNotify], n.resent, n.acked, n.received, n.smoothed)
	}
}

// riptidePlayer is the game of one host.
type riptidePlayer struct {
	cast     *riptideCast
	side     int
	host     *sim.Host
	endpoint *endpoint.Endpoint
	s        *simulate.Simulation
	share    float64 // of a message a tick
	due      float64
	over     bool
}

func (p *riptidePlayer) play(f *sim.Frame) {
	server := p.side == 1
	for _, peer := range p.endpoint.Pending() {
		f.Do(machine.Command{Kind: machine.Accept, Peer: peer})
	}
	if f.Number == 0 && !server {
		f.Do(machine.Command{Kind: machine.Connect})
	}
	if f.Now >= machine.Instant(p.cast.flags.Duration) {
		p.finish(f)
		return
	}
	for p.due += p.share; p.due >= 1; p.due-- {
		peers := 1
		if server {
			peers = p.cast.flags.Clients
		}
		for peer := range peers {
			if p.endpoint.Connected(machine.Peer(peer)) {
				p.submit(f, machine.Peer(peer))
			}
		}
	}
}

// finish ends the connection as told, once.
func (p *riptidePlayer) finish(f *sim.Frame) {
	if p.over {
		return
	}
	p.over = true
	server, end := p.side == 1, p.cast.flags.End
	switch {
	case end == "leave" && !server:
		f.Do(machine.Command{Kind: machine.Disconnect})
	case end == "stop" && server:
		f.Do(machine.Command{Kind: machine.Stop})
	case end == "kick" && server:
		for peer := range p.cast.flags.Clients {
			if p.endpoint.Connected(machine.Peer(peer)) {
				f.Do(machine.Command{Kind: machine.Kick, Peer: machine.Peer(peer)})
			}
		}
	}
}

func (p *riptidePlayer) submit(f *sim.Frame, to machine.Peer) {
	channel := p.cast.draw(f.Rand)
	var in machine.Submit
	var err error
	if p.cast.source == nil {
		w := p.cast.writer(p.side)
		body := simulate.Noise(f.Rand, p.cast.least+f.Rand.IntN(p.cast.most-p.cast.least+1))
		w.Bytes(body)
		in, p.cast.log.values = endpoint.Submission(to, channel, uint16(f.Rand.IntN(300)), &w), nil
	} else if in, err = p.drawn(f.Rand, to, channel); err != nil {
		p.s.Failed = fmt.Errorf("--schema: %w", err)
		return
	}
	f.Do(in)
}

func (c *riptideCast) writer(side int) wire.Writer {
	return wire.Codec{Dialect: c.versions[side].Build.Dialect}.Writer(nil)
}

// draw draws a channel by the shares.
func (c *riptideCast) draw(rng *rand.Rand) uint8 {
	at := rng.Float64() * (c.shares[0] + c.shares[1] + c.shares[2])
	for channel, share := range c.shares {
		if at -= share; at < 0 {
			return uint8(channel)
		}
	}
	return riptide.ChannelReliable
}

// drawn draws a message of the schema.
func (p *riptidePlayer) drawn(rng *rand.Rand, to machine.Peer, channel uint8) (machine.Submit, error) {
	c := p.cast
	var id uint32
	from, written := c.source.Packets, c.schemas[p.side].Packets
	if channel == riptide.ChannelNotify {
		value, _ := c.dialect().Value(wire.Notify)
		id = uint32(value)
	} else {
		id, from, written = c.kinds[rng.IntN(len(c.kinds))], c.source.Messages, c.schemas[p.side].Messages
	}
	in := machine.Submit{To: to, Channel: channel}
	if channel != riptide.ChannelNotify {
		in.Type = id
	}
	if from[id] == nil || len(from[id].Fields) == 0 {
		c.log.values = nil
		return in, nil
	}
	for range 10000 {
		r := bits.NewReader(simulate.Noise(rng, 512))
		record, err := from[id].Read(&r)
		if err != nil {
			continue
		}
		simulate.Spell(record)
		w := bits.NewWriter(nil)
		if err := written[id].Write(&w, record); err == nil && w.Pos() <= 8*900 {
			c.log.values, c.log.body = record, from[id]
			in.Type |= uint32(-w.Pos()&7) << 16
			in.Payload = w.Data()
			return in, nil
		}
	}
	return machine.Submit{}, fmt.Errorf("no message of id %d of at most 900 bytes came up in 10,000 draws", id)
}

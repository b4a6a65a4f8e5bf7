//go:build !js

package riptide

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/schema"
	"github.com/ackscope/ackscope/schema/yamlfile"
	"github.com/ackscope/ackscope/sim"
	description "github.com/ackscope/ackscope/sim/riptide"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// run is a server and its clients.
type run struct {
	flags    *simulate.Flags
	own      *ownFlags
	versions [2]*riptide.Version // of the clients, and of the server

	bigEndian bool // both are built big-endian

	source   *schema.Schema    // of the messages to draw; nil without --schema
	schemas  [2]*schema.Schema // the same as each end writes it, with the faults of its build
	kinds    []uint32
	shares   [3]float64 // of messages, by channel
	least    int
	most     int
	messages float64 // a second
	next     drawn   // what the application is about to submit
}

// drawn is the values of a message of the schema.
type drawn struct {
	values schema.Record
	body   *schema.Body
}

var simulator = simulate.Simulator{
	Name: "riptide", Form: "riptide:VERSION[:tcp], client/server where they differ",
	Words: func(*dissect.Protocol) []string { return riptide.FormNames() },
	Begin: begin, Takes: []string{"clients", "slots", "resend"},
	Remembered:  append([]string{"clients", "no-limits"}, rememberedHandler...),
	Completions: map[string][]string{"end": endings, "decide": append([]string{"reject:"}, description.DecisionWords...)},
	Faults:      machine.Faults(endpoint.Faults),
}

// ownFlags are the flags of simulate that only this protocol has.
type ownFlags struct {
	mix      string
	noLimits bool
	end      string
	handler  handlerFlags
}

// endings are the words of --end.
var endings = []string{"leave", "kick", "stop", "none"}

func begin(p *pflag.FlagSet) func(*app.App, *simulate.Flags) (simulate.Run, error) {
	var own ownFlags
	p.StringVar(&own.mix, "mix", "50/30/20", "riptide: shares of `RELIABLE/UNRELIABLE/NOTIFY` messages")
	p.BoolVar(&own.noLimits, "no-limits", false, "riptide: no connection ends for its quality")
	p.StringVar(&own.end, "end", "leave", "riptide: how it ends: `"+strings.Join(endings, "|")+"`")
	own.handler.register(p, "accept", "")
	p.Lookup("messages").Usage += " (riptide: 20 if not said)"
	return func(a *app.App, f *simulate.Flags) (simulate.Run, error) { return newRun(a, f, &own) }
}

func newRun(a *app.App, f *simulate.Flags, own *ownFlags) (simulate.Run, error) {
	r := &run{flags: f, own: own, messages: f.Messages}
	if r.messages == 0 {
		r.messages = 20
	}
	if f.Refuse != "0%" || f.First != "0" {
		return nil, errors.New("--refuse, --first: of the Gaffer family only")
	}
	orders := map[bool]bool{}
	versions, err := simulate.Pair(r.version(), func(text string) (*riptide.Version, error) {
		v, bigEndian, ok := riptide.LookupForm(text)
		if !ok {
			return nil, app.UnknownName("--protocol "+f.Protocol+": no version", text, riptide.FormNames())
		}
		orders[bigEndian] = true
		return v, nil
	})
	if err != nil {
		return nil, err
	}
	r.versions, r.bigEndian = versions, orders[true]
	if versions[0].Build.Dialect != versions[1].Build.Dialect {
		return nil, fmt.Errorf("--protocol %q: %s and %s do not understand each other", f.Protocol, versions[0].Name,
			versions[1].Name)
	}
	if len(orders) > 1 {
		return nil, fmt.Errorf("--protocol %q: expected both ends to have one byte order", f.Protocol)
	}
	if r.least, r.most, err = simulate.ParseRange(f.Payload); err != nil {
		return nil, fmt.Errorf("--payload: %w", err)
	}
	if err := r.readMix(own.mix); err != nil {
		return nil, err
	}
	if a.Flags.Schema != "" {
		if err := r.readSchema(a.Flags.Schema); err != nil {
			return nil, err
		}
	}
	if f.Clients < 1 || f.Clients > 64 {
		return nil, fmt.Errorf("--clients %d: expected 1 to 64", f.Clients)
	}
	if !slices.Contains(endings, own.end) {
		return nil, fmt.Errorf("--end %q: expected leave, kick, stop or none", own.end)
	}
	return r, nil
}

// version returns the middle of riptide:VERSION:tcp.
func (r *run) version() string {
	_, version, ok := strings.Cut(r.flags.Protocol, ":")
	version = strings.TrimSuffix(version, ":tcp")
	if !ok || version == "tcp" || version == "" {
		return "2.1"
	}
	return version
}

func (r *run) stream() bool { return strings.HasSuffix(r.flags.Protocol, ":tcp") }

func (r *run) readMix(text string) error {
	parts := strings.Split(text, "/")
	sum := 0.0
	for i, channel := range []uint8{riptide.ChannelReliable, riptide.ChannelUnreliable, riptide.ChannelNotify} {
		if len(parts) != len(r.shares) {
			return fmt.Errorf("--mix %q: expected three shares such as 50/30/20", text)
		}
		v, err := strconv.ParseFloat(parts[i], 64)
		if err != nil || v < 0 || math.IsInf(v, 0) {
			return fmt.Errorf("--mix %q: %q is no share", text, parts[i])
		}
		if channel == riptide.ChannelNotify && (r.dialect().Layout(wire.Notify) == nil || r.versions[0].Build.NoNotify ||
			r.versions[1].Build.NoNotify) {
			v = 0
		}
		r.shares[channel] = v
		sum += v
	}
	if sum == 0 {
		return fmt.Errorf("--mix %q: expected a share above 0 of what %s has", text, r.dialect().Name)
	}
	return nil
}

func (r *run) dialect() *wire.Dialect { return r.versions[0].Build.Dialect }

func (r *run) codec() wire.Codec { return wire.Codec{Dialect: r.dialect(), BigEndian: r.bigEndian} }

// readSchema reads the messages to draw, as each end writes them.
func (r *run) readSchema(path string) error {
	src, err := yamlfile.ReadFile(path)
	if err != nil {
		return err
	}
	s, err := yamlfile.Schema(src, path, wire.Coding{Codec: wire.Codec{Dialect: wire.V21}})
	if err != nil {
		return err
	}
	codec := r.codec()
	if r.source, err = s.With(wire.Coding{Codec: codec}); err != nil {
		return fmt.Errorf("%s: dialect %s: %w", path, r.dialect().Name, err)
	}
	for i, v := range r.versions {
		coding := wire.CodingOf(codec, wire.Matching(func(b *wire.Build) bool { return b == v.Build }))
		if r.schemas[i], err = s.With(coding); err != nil {
			return fmt.Errorf("%s: dialect %s: %w", path, v.Build.Dialect.Name, err)
		}
	}
	for _, id := range schema.Kinds(s.Messages) {
		if r.writes(s.Messages[id]) {
			r.kinds = append(r.kinds, id)
		}
	}
	if len(r.kinds) == 0 {
		return fmt.Errorf("%s: no message that dialect %s can write", path, r.dialect().Name)
	}
	return nil
}

// writes reports whether the dialect has all types of a message's values.
func (r *run) writes(b *schema.Body) bool {
	d := r.dialect()
	return !slices.ContainsFunc(b.Fields, func(f *schema.Field) bool {
		switch f.Type {
		case "bits":
			return d.Form != wire.BitPacked
		case "varlong", "varulong":
			return !d.HasVarLongs()
		}
		return false
	})
}

// Build implements simulate.Run.
func (r *run) Build(s *simulate.Simulation) error {
	toB, toA, err := s.Flags.Paths()
	if err != nil {
		return err
	}
	if err := s.ReadRates("ticks"); err != nil {
		return err
	}
	s.Stream, s.FinalAtEnd = r.stream(), true
	resend, err := simulate.ParseDelay(cmp.Or(r.flags.Resend, "0s"))
	if err != nil {
		return fmt.Errorf("--resend: %w", err)
	}
	k := description.Kit{
		Versions: r.versions, BigEndian: r.bigEndian, Stream: s.Stream, EventClock: r.flags.EventTime,
		Limits: !r.own.noLimits,
		Resend: endpoint.Resend{After: resend},
		Faults: simulate.Faults(r.flags, endpoint.LookupFault),
		Form: description.Form{
			Calls: true, Reasons: true, Stats: true, Unsent: true, GivenUp: "acked_or_given_up",
			Submitted: r.submitted,
		},
	}
	if err := r.own.handler.apply(&k, r.flags.Slots, r.flags.Clients); err != nil {
		return err
	}
	kit, err := description.New(k)
	if err != nil {
		return err
	}
	server, err := r.add(s, kit, sim.Server, 0, simulate.Addrs[1])
	if err != nil {
		return err
	}
	for i := range r.flags.Clients {
		client, err := r.add(s, kit, sim.Client, i, simulate.AddrOf(i))
		if err != nil {
			return err
		}
		s.Connect(client, server, toB, toA)
	}
	return nil
}

// add adds an endpoint and its application to the world.
func (r *run) add(s *simulate.Simulation, kit *description.Kit, role sim.Role, n int,
	at netip.AddrPort,
) (*sim.Host, error) {
	end, err := kit.End(role, n, at)
	if err != nil {
		return nil, err
	}
	game := &application{
		run: r, role: role, endpoint: end.Endpoint.(*endpoint.Endpoint), over: s.Over,
		desk: description.NewDesk(kit.Handler), share: r.messages / s.Rate(role),
	}
	end.App = game.frame
	return s.Add(role, kit.Name(role, n), at, end), nil
}

// Opening implements simulate.Run.
func (r *run) Opening(s *simulate.Simulation, tell func(endpoint string, lines ...sim.Line)) {
	f, hosts, server := r.flags, s.World.Hosts(), s.Addrs[0]
	tell("relay", sim.Line{
		"event": "start", "seed": f.Seed, "loss": f.Loss, "delay": f.Delay, "jitter": f.Jitter,
		"duplicate": f.Dup,
	})
	tell(hosts[0].Name, s.Ends[0].Log.Opening(server, netip.AddrPort{})...)
	for i, client := range hosts[1:] {
		tell(client.Name, s.Ends[1+i].Log.Opening(netip.AddrPort{}, server)...)
	}
	for i, client := range hosts[1:] {
		at := s.Addrs[1+i]
		tell("relay", sim.Line{"event": "flow", "flow": i, "client": at.String(), "relay_toward_server": at.String()})
		tell(client.Name, s.Ends[1+i].Log.Opened(at))
		s.Ends[0].Log.Met(machine.Peer(i), at)
		s.Ends[1+i].Log.Met(0, server)
	}
}

// submitted returns the values that the application is about to submit.
func (r *run) submitted() []sim.Line {
	list := []sim.Line{}
	for i, v := range r.next.values {
		raw, err := json.Marshal(schema.Record{v})
		var named map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(raw, &named)
		}
		if err != nil {
			named = map[string]json.RawMessage{v.Name: []byte(fmt.Sprintf("%q", err))}
		}
		line := sim.Line{"value": named[v.Name]}
		if i < len(r.next.body.Fields) {
			line["type"] = typeName(r.next.body.Fields[i])
		}
		list = append(list, line)
	}
	return list
}

func typeName(f *schema.Field) string {
	if f.Type == "array" && f.Item != nil {
		return f.Item.Type + "[]"
	}
	return f.Type
}

// Summarize implements simulate.Run.
func (r *run) Summarize(w io.Writer, s *simulate.Simulation) {
	for i, h := range s.World.Hosts() {
		n := &s.Ends[i].Log.(*description.Log).Tally
		fmt.Fprintf(w, "%s: sent %d reliable, %d unreliable, %d notify; sent again %d, acked %d, received %d; smoothed rtt "+
			"%d ms\n", h.Name,
			n.Sent[riptide.ChannelReliable], n.Sent[riptide.ChannelUnreliable], n.Sent[riptide.ChannelNotify],
			h.Counts().Events[machine.EventResent], n.Acked, n.Received, n.Smoothed)
	}
}

//go:build !js

package riptide

import (
	"fmt"
	"math/rand/v2"

	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/machine/riptide/endpoint"
	"github.com/ackscope/ackscope/sim"
	description "github.com/ackscope/ackscope/sim/riptide"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/riptide"
)

// application is the game of one host.
type application struct {
	run      *run
	role     sim.Role
	endpoint *endpoint.Endpoint
	over     func(now machine.Instant) bool // the run's time is over
	desk     *description.Desk
	share    float64 // messages per tick
	due      float64
	ended    bool // the application has ended the connection
}

func (p *application) frame(f *sim.Frame) {
	server := p.role == sim.Server
	p.desk.Frame(f, p.endpoint)
	if f.Number == 0 && !server {
		f.Do(machine.Command{
			Kind:    machine.Connect,
			Payload: description.Greeting(p.endpoint, p.run.own.handler.hello),
		})
	}
	if p.over(f.Now) {
		p.finish(f)
		return
	}
	for p.due += p.share; p.due >= 1; p.due-- {
		peers := 1
		if server {
			peers = p.run.flags.Clients
		}
		for peer := range peers {
			if p.endpoint.Connected(machine.Peer(peer)) {
				p.submit(f, machine.Peer(peer))
			}
		}
	}
}

// finish ends the connection once, as --end says.
func (p *application) finish(f *sim.Frame) {
	if p.ended {
		return
	}
	p.ended = true
	server, end := p.role == sim.Server, p.run.own.end
	switch {
	case end == "leave" && !server:
		f.Do(machine.Command{Kind: machine.Disconnect})
	case end == "stop" && server:
		f.Do(machine.Command{Kind: machine.Stop})
	case end == "kick" && server:
		for peer := range p.run.flags.Clients {
			if p.endpoint.Connected(machine.Peer(peer)) {
				f.Do(machine.Command{Kind: machine.Kick, Peer: machine.Peer(peer)})
			}
		}
	}
}

func (p *application) submit(f *sim.Frame, to machine.Peer) {
	channel := p.run.draw(f.Rand)
	var in machine.Submit
	var err error
	if p.run.source == nil {
		w := p.run.writer(p.role)
		body := sim.Noise(f.Rand, p.run.least+f.Rand.IntN(p.run.most-p.run.least+1))
		w.Bytes(body)
		in, p.run.next = endpoint.Submission(to, channel, uint16(f.Rand.IntN(300)), &w), drawn{}
	} else if in, err = p.message(f.Rand, to, channel); err != nil {
		f.Fail(fmt.Errorf("--schema: %w", err))
		return
	}
	f.Do(in)
}

func (r *run) writer(role sim.Role) wire.Writer {
	return wire.Codec{Dialect: r.versions[role].Build.Dialect, BigEndian: r.bigEndian}.Writer(nil)
}

// draw draws a channel by the shares.
func (r *run) draw(rng *rand.Rand) uint8 {
	at := rng.Float64() * (r.shares[0] + r.shares[1] + r.shares[2])
	for channel, share := range r.shares {
		if at -= share; at < 0 {
			return uint8(channel)
		}
	}
	return riptide.ChannelReliable
}

// message draws a message of the schema.
func (p *application) message(rng *rand.Rand, to machine.Peer, channel uint8) (machine.Submit, error) {
	r := p.run
	var id uint32
	from, written := r.source.Packets, r.schemas[p.role].Packets
	if channel == riptide.ChannelNotify {
		value, _ := r.dialect().Value(wire.Notify)
		id = uint32(value)
	} else {
		id, from, written = r.kinds[rng.IntN(len(r.kinds))], r.source.Messages, r.schemas[p.role].Messages
	}
	in := machine.Submit{To: to, Channel: channel}
	if channel != riptide.ChannelNotify {
		in.Type = id
	}
	if from[id] == nil || len(from[id].Fields) == 0 {
		r.next = drawn{}
		return in, nil
	}
	for range 10000 {
		random := bits.NewReader(sim.Noise(rng, 512))
		record, err := from[id].Read(&random)
		if err != nil {
			continue
		}
		simulate.Spell(record)
		w := bits.NewWriter(nil)
		if err := written[id].Write(&w, record); err == nil && w.Pos() <= 8*900 {
			r.next = drawn{record, from[id]}
			in.Type |= uint32(-w.Pos()&7) << 16
			in.Payload = w.Data()
			return in, nil
		}
	}
	return machine.Submit{}, fmt.Errorf("no message of id %d of at most 900 bytes came up in 10,000 draws", id)
}

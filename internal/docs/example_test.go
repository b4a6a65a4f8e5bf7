package docs

import (
	"bytes"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	model "github.com/ackscope/ackscope/machine/gaffer"
	"github.com/ackscope/ackscope/machine/gaffer/endpoint"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/schema/yamlfile"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// example is the run of the worked example in docs/gaffer.md: two reference
// endpoints, and a tap at the client. The client submits messages 0 to 2 at
// once. Packet 100 carries 0 and 1. Packet 101 carries 2 and is lost.
type example struct {
	profile   *wire.Profile
	seen      []sim.Tapped
	client    *sim.Host
	delivered []uint64 // ids of the messages that the server's application took, in that order
}

func playExample(t *testing.T) *example {
	t.Helper()
	const name = "docs/gaffer-example.yaml"
	src, err := os.ReadFile(filepath.Join(testenv.Module(t), name))
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := yamlfile.Profiles(src, name, dissect.NewRegistry(gaffer.Protocol))
	if err != nil {
		t.Fatal(err)
	}
	profile := profiles[0].Config.Profile.(*wire.Profile)
	x := &example{profile: profile}
	w := sim.New(1)
	first := [2]uint32{100, 500}
	var hosts [2]*sim.Host
	for i := range hosts {
		e, err := endpoint.New(endpoint.Options{
			Profile: profile, Rules: model.RulesOf(profile), Side: machine.Side(i),
			First: first[i], PeerFirst: first[1-i], Messages: &messages.Options{},
		})
		if err != nil {
			t.Fatal(err)
		}
		app := func(f *sim.Frame) {
			for _, d := range f.Delivered {
				if d.Channel == messages.ChannelMessage {
					x.delivered = append(x.delivered, d.ID)
				}
			}
			if i == 0 && f.Number == 0 {
				for kind, body := range [][]byte{{1 | 100<<4&0xff, 100 >> 4}, {2}, {3}} {
					f.Do(machine.Submit{Channel: messages.ChannelMessage, Type: uint32(kind), Payload: body})
				}
			}
			if f.Number < 12 {
				f.Do(machine.Submit{Channel: messages.ChannelPacket, Payload: []byte("state of the world")})
			}
		}
		hosts[i] = w.AddHost([]string{"client", "server"}[i], e, sim.HostOptions{
			Frame: 50 * time.Millisecond,
			Phase: time.Duration(i) * 25 * time.Millisecond, App: app,
		})
	}
	x.client = hosts[0]
	path := sim.Path{Delay: 20 * time.Millisecond}
	lossy := path
	lossy.Outages = []sim.Outage{{From: machine.Instant(45 * time.Millisecond), For: 10 * time.Millisecond}}
	w.Connect(hosts[0], hosts[1], lossy, path).Tap(0, func(s sim.Tapped) { x.seen = append(x.seen, s) })
	if err := w.Run(machine.Instant(700 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	return x
}

// carried returns the ids of the messages that each packet of the client carries.
func (x *example) carried(t *testing.T) map[uint32][]uint16 {
	t.Helper()
	list := map[uint32][]uint16{}
	for _, s := range x.seen {
		if s.From != x.client {
			continue
		}
		var p wire.Packet
		if err := x.profile.Parse(s.Bytes, len(s.Bytes), &p); err != nil {
			t.Fatal(err)
		}
		section, err := x.profile.Messages.Open(s.Bytes, 8*p.PayloadOffset)
		if err != nil {
			t.Fatal(err)
		}
		var m wire.Message
		for section.Next(&m) {
			list[p.Header.Sequence] = append(list[p.Header.Sequence], m.ID)
		}
	}
	return list
}

// TestExample: docs/gaffer-example.pcapng is what the reference sends in the worked
// example, and the server's application takes the messages in their order.
func TestExample(t *testing.T) {
	x := playExample(t)
	if !slices.Equal(x.delivered, []uint64{0, 1, 2}) {
		t.Errorf("the server took messages %v, expected 0, 1, 2", x.delivered)
	}
	want := map[uint32][]uint16{100: {0, 1}, 101: {2}, 103: {2}}
	if got := x.carried(t); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the packets carry messages %v, expected %v", got, want)
	}
	var file bytes.Buffer
	w, err := capture.NewWriter(&file, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(capture.Interface{LinkType: 101}); err != nil {
		t.Fatal(err)
	}
	ends := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:30000"), netip.MustParseAddrPort("10.0.0.2:40000")}
	begin := machine.Instant(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	for _, s := range x.seen {
		envelope := capture.Envelope{Src: ends[0], Dst: ends[1]}
		if s.From != x.client {
			envelope.Src, envelope.Dst = ends[1], ends[0]
		}
		frame, err := capture.AppendUDP(nil, envelope, s.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteFrame(&capture.Frame{At: begin + s.At, LinkType: 101, Length: len(frame), Data: frame}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "docs/gaffer-example.pcapng", file.String())
}

package article_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/article"
	"github.com/ackscope/ackscope/machine/gaffer/gaffertest"
	"github.com/ackscope/ackscope/machine/machinetest"
	"github.com/ackscope/ackscope/sim"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// fragmentsProfile returns the profile of the recorded runs of the series' sample.
func fragmentsProfile() *wire.Profile {
	return gaffertest.Builtin(wire.ArticleFragments).WithProtocolID(0x55667788)
}

func newFragments(t *testing.T, o article.FragmentOptions) *article.Fragments {
	t.Helper()
	o.Profile = fragmentsProfile()
	e, err := article.NewFragments(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// body returns a packet's body of n bytes. Its first two bits belong to the packet
// type.
func body(n int, seed uint32) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	b[0] &^= 3
	return b
}

// TestFragmentsLossy sends packets of all sizes both ways over bad networks. A packet
// must be delivered, unchanged, exactly when the network brought all of it. A packet in
// fragments must be delivered once.
func TestFragmentsLossy(t *testing.T) {
	const first = 65500
	fragmented, lost := 0, 0
	for seed := range uint64(40) {
		w := sim.New(seed)
		rng := w.Rand("test")
		p := fragmentsProfile()
		var sent [2][][]byte
		var hosts [2]*sim.Host
		for i, name := range []string{"a", "b"} {
			app := func(f *sim.Frame) {
				if len(sent[i]) < 150 {
					b := body(1+f.Rand.IntN([]int{100, 1100, 20000}[f.Rand.IntN(3)]), f.Rand.Uint32())
					sent[i] = append(sent[i], b)
					f.Do(machine.Submit{Channel: article.ChannelFragments, Type: 1 + uint32(len(b)%3), Payload: b})
				}
			}
			hosts[i] = w.AddHost(name, newFragments(t, article.FragmentOptions{Side: machine.Side(i), First: first}),
				sim.HostOptions{Frame: 16 * time.Millisecond, App: app})
		}
		path := sim.Path{
			Delay: time.Duration(rng.IntN(80)) * time.Millisecond, Jitter: time.Duration(rng.IntN(80)) * time.Millisecond,
			Loss: []float64{0, 0.05, 0.2}[seed%3], Duplicate: 0.1,
		}
		w.Connect(hosts[0], hosts[1], path, path)
		// The naive model: which fragments of a packet arrived, by sequence.
		came := [2]map[uint32]map[int]bool{{}, {}}
		delivered := [2]map[uint32]int{{}, {}}
		w.Watch(func(s *sim.Step) {
			at := s.Host.Index
			want := false
			var pk wire.Packet
			if in, ok := s.In.(machine.Arrive); ok {
				if err := p.Parse(in.Bytes, len(in.Bytes), &pk); err != nil {
					t.Fatal(err)
				}
				want = pk.Kind == wire.KindRegular
				if parts := came[at][pk.Sequence]; !want {
					if parts == nil {
						parts = map[int]bool{}
						came[at][pk.Sequence] = parts
					}
					before := len(parts)
					parts[pk.FragmentID] = true
					want = len(parts) > before && len(parts) == pk.FragmentCount
				}
			}
			if want != (len(s.Out.Deliver) == 1) || len(s.Out.Deliver) > 1 {
				t.Fatalf("seed %d: packet %d: %d deliveries, a whole packet came: %v", seed, pk.Sequence, len(s.Out.Deliver), want)
			}
			for _, d := range s.Out.Deliver {
				b := sent[1-at][(d.ID-first)&0xffff]
				if d.ID != uint64(pk.Sequence) || d.Type != 1+uint32(len(b)%3) || !bytes.Equal(d.Payload, b) {
					t.Fatalf("seed %d: packet %d of type %d, %d bytes: not what was submitted", seed, d.ID, d.Type, len(d.Payload))
				}
				delivered[at][pk.Sequence]++
				if came[at][pk.Sequence] != nil {
					fragmented++
				}
			}
		})
		j := w.Record()
		if err := w.Run(machine.Instant(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for i := range sent {
			if len(sent[i]) != 150 {
				t.Fatalf("seed %d: %d packets sent", seed, len(sent[i]))
			}
			if missing := len(sent[i]) - len(delivered[1-i]); seed%3 == 0 && missing != 0 {
				t.Fatalf("seed %d: %d packets missing where nothing was lost", seed, missing)
			} else {
				lost += missing
			}
		}
		if seed == 2 {
			for i := range 2 {
				t.Run(fmt.Sprintf("laws of side %d", i), func(t *testing.T) {
					machinetest.Endpoint(t, func() machine.Endpoint {
						return newFragments(t, article.FragmentOptions{Side: machine.Side(i), First: first})
					}, script(j, i))
				})
			}
		}
	}
	if fragmented < 1000 || lost < 100 {
		t.Errorf("%d packets joined, %d lost: too few to say anything", fragmented, lost)
	}
}

// TestFragmentRefusals covers the edges of reassembly: order, duplicates, a different
// count, fragments of another packet, the window.
func TestFragmentRefusals(t *testing.T) {
	p := fragmentsProfile()
	whole := func(sequence uint32, b []byte) []byte {
		return p.Append(nil, &wire.Packet{Sequence: sequence, Type: 2}, b)
	}
	big := func(sequence uint32) []byte { return whole(sequence, body(2500, sequence)) }
	piece := func(sequence uint32, id, count int, of []byte) []byte {
		pk := wire.Packet{Kind: wire.KindFragment, Sequence: sequence, FragmentID: id, FragmentCount: count}
		return p.Append(nil, &pk, of[id*1024:min(len(of), (id+1)*1024)])
	}
	for _, c := range []struct {
		name string
		in   [][]byte
		want []uint64
	}{
		{"backwards", [][]byte{piece(5, 2, 3, big(5)), piece(5, 1, 3, big(5)), piece(5, 0, 3, big(5))}, []uint64{5}},
		{
			"duplicates",
			[][]byte{piece(5, 0, 3, big(5)), piece(5, 0, 3, big(5)), piece(5, 1, 3, big(5)), piece(5, 1, 3, big(5))},
			nil,
		},
		{"all twice", [][]byte{
			piece(5, 0, 3, big(5)), piece(5, 1, 3, big(5)), piece(5, 2, 3, big(5)),
			piece(5, 0, 3, big(5)), piece(5, 1, 3, big(5)), piece(5, 2, 3, big(5)),
		}, []uint64{5}},
		{"another count", [][]byte{piece(5, 0, 3, big(5)), piece(5, 1, 4, big(5)), piece(5, 2, 3, big(5))}, nil},
		{"another packet", [][]byte{piece(5, 0, 3, big(6)), piece(5, 1, 3, big(6)), piece(5, 2, 3, big(6))}, nil},
		{"mixed packets", [][]byte{piece(5, 0, 3, big(5)), piece(5, 1, 3, big(6)), piece(5, 2, 3, big(5))}, nil},
		{
			"at the window's edge",
			[][]byte{piece(5, 0, 3, big(5)), piece(5, 1, 3, big(5)), whole(68, body(9, 1)), piece(5, 2, 3, big(5))},
			[]uint64{68, 5},
		},
		{
			"out of the window",
			[][]byte{piece(5, 0, 3, big(5)), piece(5, 1, 3, big(5)), whole(69, body(9, 1)), piece(5, 2, 3, big(5))},
			[]uint64{69},
		},
		{
			"late altogether",
			[][]byte{whole(69, body(9, 1)), piece(5, 0, 3, big(5)), piece(5, 1, 3, big(5)), piece(5, 2, 3, big(5))},
			[]uint64{69},
		},
		{"over the wrap", [][]byte{
			piece(65535, 0, 3, big(65535)), piece(0, 0, 3, big(0)), piece(65535, 1, 3, big(65535)), piece(0, 1, 3, big(0)),
			piece(65535, 2, 3, big(65535)), piece(0, 2, 3, big(0)),
		}, []uint64{65535, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newFragments(t, article.FragmentOptions{})
			var out machine.Effects
			for _, b := range c.in {
				if err := e.Step(0, machine.Arrive{Bytes: b}, &out); err != nil {
					t.Fatal(err)
				}
			}
			var got []uint64
			for _, d := range out.Deliver {
				got = append(got, d.ID)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("delivered %v, expected %v", got, c.want)
			}
		})
	}
}

// TestFragmentSizes: 1024 bytes are sent whole, 255 fragments are the most, and a
// refused packet uses no sequence.
func TestFragmentSizes(t *testing.T) {
	const around = 4 + 2 + 4 // CRC, sequence, end check
	e := newFragments(t, article.FragmentOptions{})
	sequence := uint32(0)
	for _, c := range []struct {
		packet, datagrams, last int
		kind                    uint32
	}{
		{1024, 1, 1024, 1},
		{1025, 2, 9 + 1, 1},
		{2048, 2, 9 + 1024, 3},
		{around, 0, 0, 1},
		{100, 0, 0, 0},
		{100, 0, 0, 4},
		{255*1024 + 1, 0, 0, 1},
		{255 * 1024, 255, 9 + 1024, 2},
	} {
		var out machine.Effects
		var b []byte
		if n := c.packet - around; n > 0 {
			b = body(n, 7)
		}
		err := e.Step(0, machine.Submit{Channel: article.ChannelFragments, Type: c.kind, Payload: b}, &out)
		if (err != nil) != (c.datagrams == 0) || len(out.Transmit) != c.datagrams {
			t.Fatalf("a packet of %d bytes, type %d: %d datagrams, error %v, expected %d", c.packet, c.kind, len(out.Transmit),
				err, c.datagrams)
		}
		if err != nil {
			continue
		}
		if last := out.Transmit[c.datagrams-1].Bytes; len(last) != c.last {
			t.Errorf("a packet of %d bytes: the last datagram has %d, expected %d", c.packet, len(last), c.last)
		}
		if got := out.Events[0].Sequence; got != sequence {
			t.Errorf("sequence %d, expected %d", got, sequence)
		}
		sequence++
	}
}

// packetBody is the body of a packet in the recorded runs.
type packetBody struct {
	kind  uint32
	bytes []byte
}

// TestFragmentsInterop runs the reference as both ends of the recorded runs of the
// series' sample. It must send the datagrams that the real end sent. It must deliver
// the packets that the real end logged as received.
func TestFragmentsInterop(t *testing.T) {
	p := fragmentsProfile()
	for _, run := range []string{"article-fragments-clean", "article-fragments-loss5"} {
		lines := gaffertest.ReadLog(t, run)
		sent := map[string]map[uint32]packetBody{}
		flows := map[string][]gaffertest.TappedDatagram{}
		for _, side := range []string{"client", "server"} {
			path := gaffertest.Capture(t, run, side)
			near := gaffertest.NearFlows(t, path, lines)
			if len(near) != 1 {
				t.Fatalf("%s at the %s: %d flows, expected 1", run, side, len(near))
			}
			for _, flow := range near {
				flows[side] = flow
			}
			sent[side] = resend(t, run+" at the "+side, flows[side], logged(lines, side, "sent"))
		}
		for side, peer := range map[string]string{"client": "server", "server": "client"} {
			name := run + " at the " + side
			e := newFragments(t, article.FragmentOptions{})
			want := logged(lines, side, "received")
			got, joined := 0, 0
			for _, x := range flows[side] {
				if x.Own {
					continue
				}
				var out machine.Effects
				if err := e.Step(x.At, machine.Arrive{Bytes: x.Bytes}, &out); err != nil {
					t.Fatalf("%s: frame %d: %v", name, x.Frame, err)
				}
				for _, d := range out.Deliver {
					if got >= len(want) {
						t.Fatalf("%s: frame %d: packet %d delivered, the log has no more", name, x.Frame, d.ID)
					}
					again := p.Append(nil, &wire.Packet{Type: d.Type, Sequence: uint32(d.ID)}, d.Payload)
					if l := want[got]; uint32(d.ID) != l.Seq || len(again) != l.Bytes {
						t.Fatalf("%s: frame %d: packet %d of %d bytes delivered, the log has packet %d of %d", name, x.Frame, d.ID,
							len(again), l.Seq, l.Bytes)
					}
					if s := sent[peer][uint32(d.ID)]; s.kind != d.Type || !bytes.Equal(s.bytes, d.Payload) {
						t.Fatalf("%s: frame %d: packet %d is not what the %s sent", name, x.Frame, d.ID, peer)
					}
					if len(again) > 1024 {
						joined++
					}
					got++
				}
			}
			if got != len(want) || got < 100 || joined < 15 {
				t.Errorf("%s: %d packets delivered, %d of them joined, the log has %d", name, got, joined, len(want))
			}
		}
	}
}

// logged returns an endpoint's log lines of one event.
func logged(lines []gaffertest.LogLine, side, event string) (out []gaffertest.LogLine) {
	for _, l := range lines {
		if l.Endpoint == side && l.Event == event {
			out = append(out, l)
		}
	}
	return out
}

// resend makes a reference send the packets that the endpoint at the tap sent. It
// compares the datagrams with the capture and the packets with the log. It returns the
// bodies by sequence.
func resend(t *testing.T, name string, flow []gaffertest.TappedDatagram,
	want []gaffertest.LogLine,
) map[uint32]packetBody {
	t.Helper()
	p := fragmentsProfile()
	e := newFragments(t, article.FragmentOptions{})
	bodies := map[uint32]packetBody{}
	var own []gaffertest.TappedDatagram
	for _, x := range flow {
		if x.Own {
			own = append(own, x)
		}
	}
	for i := 0; i < len(own); {
		first := own[i]
		datagrams, packet := 1, first.Bytes
		var pk wire.Packet
		if err := p.Parse(first.Bytes, len(first.Bytes), &pk); err != nil {
			t.Fatalf("%s: frame %d: %v", name, first.Frame, err)
		}
		if pk.Kind == wire.KindFragment {
			datagrams, packet = pk.FragmentCount, nil
			if i+datagrams > len(own) {
				t.Fatalf("%s: frame %d: %d fragments, the capture ends after %d", name, first.Frame, datagrams, len(own)-i)
			}
			for _, x := range own[i : i+datagrams] {
				packet = append(packet, x.Bytes[9:]...)
			}
			if err := p.Parse(packet, len(packet), &pk); err != nil {
				t.Fatalf("%s: frame %d and on: %v", name, first.Frame, err)
			}
		}
		n := len(bodies)
		if n >= len(want) || want[n].Seq != pk.Sequence || want[n].Bytes != len(packet) {
			t.Fatalf("%s: frame %d: packet %d of %d bytes is not the log's number %d", name, first.Frame, pk.Sequence,
				len(packet), n)
		}
		b := bytes.Clone(packet[pk.PayloadOffset : pk.PayloadOffset+pk.PayloadLen])
		b[0] &^= 3 // the packet type
		bodies[pk.Sequence] = packetBody{pk.Type, b}
		var out machine.Effects
		if err := e.Step(first.At, machine.Submit{Channel: article.ChannelFragments, Type: pk.Type, Payload: b},
			&out); err != nil {
			t.Fatalf("%s: frame %d: %v", name, first.Frame, err)
		}
		if len(out.Transmit) != datagrams {
			t.Fatalf("%s: frame %d: %d datagrams, the reference sends %d", name, first.Frame, datagrams, len(out.Transmit))
		}
		for k, x := range out.Transmit {
			if !bytes.Equal(x.Bytes, own[i+k].Bytes) {
				t.Fatalf("%s: frame %d: % x, the reference sends % x", name, own[i+k].Frame, own[i+k].Bytes, x.Bytes)
			}
		}
		i += datagrams
	}
	if len(bodies) != len(want) {
		t.Errorf("%s: %d packets in the capture, %d in the log", name, len(bodies), len(want))
	}
	return bodies
}

package capture

import (
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// tapCopy is one capture of a datagram.
type tapCopy struct {
	at        time.Duration
	envelope  Envelope
	payload   string
	device    uint32 // of a cooked header
	kind      byte   // packet type of a cooked header
	iface     int    // of a pcapng file
	file      int
	truncated int
}

// TestDuplicates distinguishes a datagram that one tap captured twice from one
// that was sent twice.
func TestDuplicates(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	long := strings.Repeat("a longer payload ", 10)
	zero := four
	zero.ID = 0
	at := func(ttl uint8, e Envelope) Envelope { e.TTL = ttl; return e }
	numbered := func(id uint16, e Envelope) Envelope { e.ID = id; return e }
	reply := Envelope{Src: four.Dst, Dst: four.Src, TTL: four.TTL, ID: four.ID}
	for name, c := range map[string]struct {
		first, second tapCopy
		want          bool
	}{
		"mirror port": {
			tapCopy{0, four, "x", 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, "x", 2, 0, 0, 0, 0},
			true,
		},
		"mirror port, long": {
			tapCopy{0, four, long, 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, long, 2, 0, 0, 0, 0},
			true,
		},
		"mirror port, out of order": {
			tapCopy{20 * us, four, "x", 2, 0, 0, 0, 0},
			tapCopy{0, four, "x", 2, 0, 0, 0, 0},
			true,
		},
		"behind a router": {
			tapCopy{0, four, "x", 2, 0, 0, 0, 0},
			tapCopy{ms, at(60, four), "x", 2, 0, 0, 0, 0},
			true,
		},
		"behind a router, id 0": {
			tapCopy{0, zero, "x", 2, 0, 0, 0, 0},
			tapCopy{ms, at(60, zero), "x", 2, 0, 0, 0, 0},
			true,
		},
		"behind a router, IPv6": {
			tapCopy{0, six, "x", 2, 0, 0, 0, 0},
			tapCopy{ms, at(60, six), "x", 2, 0, 0, 0, 0},
			true,
		},
		"bridge and port": {
			tapCopy{0, zero, "x", 2, 0, 0, 0, 0},
			tapCopy{5 * us, zero, "x", 3, 0, 0, 0, 0},
			true,
		},
		"two interfaces of a file": {
			tapCopy{0, zero, "x", 2, 0, 0, 0, 0},
			tapCopy{5 * us, zero, "x", 2, 0, 1, 0, 0},
			true,
		},
		"loopback on any": {
			tapCopy{0, six, "x", 1, 4, 0, 0, 0},
			tapCopy{5 * us, six, "x", 1, 0, 0, 0, 0},
			true,
		},
		"empty payload": {
			tapCopy{0, four, "", 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, "", 2, 0, 0, 0, 0},
			true,
		},
		"relay, numbered anew": {
			tapCopy{0, four, long, 2, 0, 0, 0, 0},
			tapCopy{20 * us, numbered(78, four), long, 2, 0, 0, 0, 0},
			false,
		},
		"relay, id 0": {
			tapCopy{0, zero, long, 2, 0, 0, 0, 0},
			tapCopy{3 * us, zero, long, 2, 0, 0, 0, 0},
			false,
		},
		"relay, IPv6": {
			tapCopy{0, six, long, 2, 0, 0, 0, 0},
			tapCopy{3 * us, six, long, 2, 0, 0, 0, 0},
			false,
		},
		"the id comes round": {
			tapCopy{0, four, long, 2, 0, 0, 0, 0},
			tapCopy{time.Second, four, long, 2, 0, 0, 0, 0},
			false,
		},
		"a path that duplicates": {
			tapCopy{0, four, long, 2, 0, 0, 0, 0},
			tapCopy{2 * ms, four, long, 2, 0, 0, 0, 0},
			false,
		},
		"another way round the world": {
			tapCopy{0, four, long, 2, 0, 0, 0, 0},
			tapCopy{80 * ms, at(50, four), long, 2, 0, 0, 0, 0},
			false,
		},
		"another payload": {
			tapCopy{0, four, "x", 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, "y", 3, 0, 0, 0, 0},
			false,
		},
		"another payload of 20": {
			tapCopy{0, four, "abcdefgh.jklmnopqrst", 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, "abcdefgh!jklmnopqrst", 3, 0, 0, 0, 0},
			false,
		},
		"another head of a long one": {
			tapCopy{0, four, "x" + long, 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, "y" + long, 3, 0, 0, 0, 0},
			false,
		},
		"another end of a long one": {
			tapCopy{0, four, long + "x", 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, long + "y", 3, 0, 0, 0, 0},
			false,
		},
		"another length": {
			tapCopy{0, four, "\x00", 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, "\x00\x00", 3, 0, 0, 0, 0},
			false,
		},
		"the other direction": {
			tapCopy{0, four, "x", 2, 4, 0, 0, 0},
			tapCopy{20 * us, reply, "x", 2, 0, 0, 0, 0},
			false,
		},
		"another file": {
			tapCopy{0, four, "x", 2, 0, 0, 0, 0},
			tapCopy{20 * us, four, "x", 3, 0, 0, 1, 0},
			false,
		},
		"mirror port with a snap cut": {
			tapCopy{0, four, long, 2, 0, 0, 0, 100},
			tapCopy{20 * us, four, long, 2, 0, 0, 0, 100},
			true,
		},
		"another TTL, five ms and one": {
			tapCopy{0, four, "x", 2, 0, 0, 0, 0},
			tapCopy{5*ms + 1, at(3, four), "x", 2, 0, 0, 0, 0},
			false,
		},
	} {
		d := NewDecoder(DecodeOptions{})
		var p Packet
		for i, s := range []tapCopy{c.first, c.second} {
			data := udpPacket(t, s.envelope, s.payload)
			protocol := etherIPv4
			if s.envelope.Src.Addr().Is6() {
				protocol = etherIPv6
			}
			data = join(protocol, 0, 0, int(s.device), 1, []byte{s.kind, 6}, "\x02\x00\x00\x00\x00\x01\x00\x00", data)
			f := Frame{
				Ref: machine.MakeRef(s.file, uint64(i+1)), At: machine.Instant(time.Hour + s.at), LinkType: LinkSLL2,
				Interface: s.iface, Length: len(data), Data: data[:len(data)-s.truncated],
			}
			d.Decode(&f, &p)
			if p.Transport != UDP || string(p.Payload) != s.payload[:len(s.payload)-s.truncated] {
				t.Fatalf("%s: %+v", name, p)
			}
			if want := i == 1 && c.want; p.Duplicate != want {
				t.Errorf("%s: capture %d is marked as a duplicate: %v", name, i+1, p.Duplicate)
			}
		}
		if n := d.Duplicates(); (n == 1) != c.want {
			t.Errorf("%s: %d duplicates are counted", name, n)
		}
	}
}

// TestDuplicateFragments: a datagram whose every fragment is captured twice is
// returned once, in either order of the fragments.
func TestDuplicateFragments(t *testing.T) {
	packet := udpPacket(t, four, strings.Repeat("x", 100))
	a, b := fragmentOf(packet, 5, 0, 64, true), fragmentOf(packet, 5, 64, 108, false)
	for _, order := range [][][]byte{{a, a, b, b}, {a, b, a, b}, {b, b, a, a}} {
		d := NewDecoder(DecodeOptions{})
		whole, duplicates := 0, 0
		for i, data := range order {
			var p Packet
			feed(t, d, uint64(i+1), time.Duration(i)*10*time.Microsecond, data, 1<<20, &p)
			if p.Transport == UDP {
				whole++
			}
			if p.Duplicate {
				duplicates++
			}
		}
		if st := d.FragmentStats(); whole != 1 || duplicates != 2 || st.Held != 0 {
			t.Errorf("%d whole, %d duplicates, %+v", whole, duplicates, st)
		}
	}
}

// TestDuplicateSegments: a TCP segment captured twice is a duplicate; a
// retransmission is not.
func TestDuplicateSegments(t *testing.T) {
	d := NewDecoder(DecodeOptions{})
	for i, c := range []struct {
		id   uint16
		want bool
	}{{7, false}, {7, true}, {8, false}} {
		e := four
		e.ID = c.id
		data, err := AppendTCP(nil, e, 100, 200, FlagACK, 500, []byte("segment"))
		if err != nil {
			t.Fatal(err)
		}
		var p Packet
		if feed(t, d, uint64(i+1), time.Duration(i)*time.Microsecond, data, 1<<20, &p); p.Duplicate != c.want {
			t.Errorf("segment %d is marked as a duplicate: %v", i+1, p.Duplicate)
		}
	}
}

// TestDuplicateTags: a trunk's frame with and without its tag, and a frame that
// the capturing host marks once as sent and once as received.
func TestDuplicateTags(t *testing.T) {
	zero := four
	zero.ID = 0
	packet := udpPacket(t, zero, "x")
	plain := Frame{Ref: 1, LinkType: LinkEthernet, Data: join(macs, etherIPv4, packet)}
	tagged := Frame{Ref: 2, LinkType: LinkEthernet, Data: join(macs, etherVLAN, 5, etherIPv4, packet)}
	retagged := Frame{Ref: 2, LinkType: LinkEthernet, Data: join(macs, etherVLAN, 6, etherIPv4, packet)}
	out, in := plain, plain
	out.Options, in.Options = little().option(packetFlags, uint32(2)), little().option(packetFlags, uint32(1))
	for name, c := range map[string]struct {
		first, second Frame
		want          bool
	}{
		"tag taken off": {tagged, plain, true},
		"tag put on":    {plain, tagged, true},
		"tag changed":   {tagged, retagged, true},
		"out and in":    {out, in, true},
		"tag twice":     {tagged, tagged, false},
		"out twice":     {out, out, false},
	} {
		d := NewDecoder(DecodeOptions{})
		var p Packet
		d.Decode(&c.first, &p)
		if d.Decode(&c.second, &p); p.Duplicate != c.want || p.Transport != UDP {
			t.Errorf("%s: duplicate is %v, %+v", name, p.Duplicate, p)
		}
	}
}

// TestDuplicatesOfMany: 32 datagrams pass one point of a path, and then the next. Each copy is found, with
// any of many seeds of the table.
func TestDuplicatesOfMany(t *testing.T) {
	const datagrams, runs = 32, 200
	var frames [2 * datagrams]Frame
	for i := range frames {
		e, point := four, i/datagrams
		e.ID, e.TTL = uint16(1+i%datagrams), uint8(64-point)
		data := udpPacket(t, e, strings.Repeat(string(rune('0'+i%datagrams)), 20))
		frames[i] = Frame{
			Ref: machine.MakeRef(0, uint64(i+1)), At: machine.Instant(time.Hour + time.Duration(i)*time.Microsecond),
			LinkType: LinkRaw, Length: len(data), Data: data,
		}
	}
	for run := range runs {
		d := NewDecoder(DecodeOptions{})
		d.duplicates.seed = uint64(run)
		var p Packet
		for i := range frames {
			if d.Decode(&frames[i], &p); p.Duplicate != (i >= datagrams) {
				t.Fatalf("run %d: frame %d of %d is marked as a duplicate: %v", run, i+1, len(frames), p.Duplicate)
			}
		}
	}
}

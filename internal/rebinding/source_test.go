package rebinding

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// linkRaw is the link type of frames that begin with the IP header.
const linkRaw = 101

// datagram is a UDP datagram of a capture.
type datagram struct {
	at       machine.Instant
	src, dst netip.AddrPort
	payload  []byte
}

// load reads the UDP datagrams of a capture.
func load(t testing.TB, path string) (list []datagram) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	for {
		var f capture.Frame
		var p capture.Packet
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if decoder.Decode(&f, &p); p.Transport == capture.UDP && p.Length == len(p.Payload) {
			list = append(list, datagram{f.At, p.Src, p.Dst, slices.Clone(p.Payload)})
		}
	}
}

// frames are the frames of datagrams.
type frames struct {
	list []capture.Frame
	next int
}

// framesOf makes a capture of datagrams.
func framesOf(t testing.TB, list []datagram) *frames {
	t.Helper()
	x := &frames{}
	for i := range list {
		d := &list[i]
		b, err := capture.AppendUDP(nil, capture.Envelope{Src: d.src, Dst: d.dst, ID: uint16(i)}, d.payload)
		if err != nil {
			t.Fatal(err)
		}
		x.list = append(x.list, capture.Frame{
			Ref: machine.MakeRef(0, uint64(i+1)), At: d.at, LinkType: linkRaw, Length: len(b), Data: b,
		})
	}
	return x
}

func (x *frames) Rewind() error { x.next = 0; return nil }
func (x *frames) Close() error  { return nil }

func (x *frames) Next(f *capture.Frame) error {
	if x.next == len(x.list) {
		return io.EOF
	}
	*f = x.list[x.next]
	x.next++
	return nil
}

// analysed reads datagrams twice, as the commands do.
func analysed(t testing.TB, gafferProtocol *dissect.Protocol, list []datagram) *analyze.Session {
	t.Helper()
	s, err := analyze.RunTwice(framesOf(t, list), analyze.Options{
		Registry: dissect.NewRegistry(gafferProtocol, riptide.Protocol, srdp.Protocol),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// move gives a client another address from the nth of its datagrams on, in both directions. The
// server follows, unless deaf is set: then its datagrams go on to the old address.
func move(list []datagram, client, to netip.AddrPort, nth int, deaf bool) []datagram {
	list = slices.Clone(list)
	sent := 0
	for i := range list {
		d := &list[i]
		if d.src == client {
			if sent++; sent >= nth {
				d.src = to
			}
		} else if d.dst == client && sent >= nth && !deaf {
			d.dst = to
		}
	}
	return list
}

// busiest returns the client that sent most datagrams. Clients speak first.
func busiest(list []datagram) (client netip.AddrPort, sent int) {
	first := map[[2]netip.AddrPort]bool{}
	count := map[netip.AddrPort]int{}
	for i := range list {
		d := &list[i]
		if !first[[2]netip.AddrPort{d.dst, d.src}] {
			first[[2]netip.AddrPort{d.src, d.dst}] = true
			count[d.src]++
		}
	}
	for a, n := range count {
		if n > sent || n == sent && a.Compare(client) < 0 {
			client, sent = a, n
		}
	}
	return client, sent
}

var plain = gaffer.Protocol

package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/host"
	"github.com/ackscope/ackscope/machine"
)

// datagrams is a source of frames as an interface would show them: datagrams to a port of this host.
// Before some of them something happens.
type datagrams struct {
	to     netip.AddrPort
	left   int
	before map[int]func()
	at     machine.Instant
}

const rawIP = 101 // LINKTYPE_RAW

func (d *datagrams) Next(f *capture.Frame) error {
	if d.left == 0 {
		return io.EOF
	}
	if do := d.before[d.left]; do != nil {
		do()
	}
	d.left--
	d.at = machine.Instant(time.Now().UnixNano())
	to, size := d.to.Addr().As4(), 28+16
	b := append([]byte{0x45, 0, 0, byte(size), 0, byte(d.left), 0, 0, 64, 17, 0, 0, 127, 0, 0, 1}, to[:]...)
	b = append(b, 0x9c, 0x40, byte(d.to.Port()>>8), byte(d.to.Port()), 0, byte(size-20), 0, 0)
	b = append(b, make([]byte, 16)...)
	*f = capture.Frame{At: d.at, Data: b, Length: len(b), LinkType: rawIP}
	return nil
}

func (d *datagrams) Close() error { return nil }

// Interfaces tells the names of interfaces, as a group of package afpacket does.
func (d *datagrams) Interfaces() []capture.Interface { return []capture.Interface{{Name: "lo"}} }

// overflowing opens a socket with a small buffer, and never reads it. The function that it returns
// sends so many datagrams that the kernel drops most.
func overflowing(t *testing.T) (netip.AddrPort, func()) {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	if err := socket.SetReadBuffer(1); err != nil {
		t.Fatal(err)
	}
	client, err := net.DialUDP("udp4", nil, socket.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return socket.LocalAddr().(*net.UDPAddr).AddrPort(), func() {
		for range 100 {
			if _, err := client.Write(make([]byte, 1000)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestProbeTellsSocketDrops: with a probe, a run knows what the kernel dropped at the socket of a
// flow, up to its end. The samples are told, and a run without a probe knows nothing.
func TestProbeTellsSocketDrops(t *testing.T) {
	for _, probed := range []bool{true, false} {
		to, overflow := overflowing(t)
		src := &datagrams{to: to, left: 50, before: map[int]func(){10: overflow}}
		var told []*host.Sample
		frames := 0
		o := Options{
			Analysis: options(),
			Frame:    func(*capture.Frame) error { frames++; return nil },
			Sampled: func(s *host.Sample) error {
				if frames == 0 {
					t.Error("a sample was told before the frame that it was taken at")
				}
				told = append(told, s)
				return nil
			},
		}
		if probed {
			o.Probe = NewProbe()
			o.Probe.Opened()
		}
		s, err := Run(context.Background(), src, o)
		if err != nil || len(s.Flows()) != 1 {
			t.Fatalf("%d flows, %v", len(s.Flows()), err)
		}
		at, ok := s.Flows()[0].Host(machine.B)
		if ok != probed || probed == (len(told) < 2) {
			t.Fatalf("with a probe %v: %+v and %v, %d samples", probed, at, ok, len(told))
		}
		if probed && (at.Drops.N < 50 || told[0].Sockets[0].Drops > 0) {
			t.Errorf("%d drops of 100, at first %d", at.Drops.N, told[0].Sockets[0].Drops)
		}
	}
}

// TestFindingsAskForSamples: a finding asks the probe for a sample, and is told to the caller too.
func TestFindingsAskForSamples(t *testing.T) {
	in, err := capture.Open([]string{"-"}, capture.Options{Stdin: bytes.NewReader(recorded(t))})
	if err != nil {
		t.Fatal(err)
	}
	found, o := 0, options()
	o.Found = func(*analyze.Finding) { found++ }
	p := NewProbe()
	p.off = true // else a sample would answer
	if _, err := Run(context.Background(), in, Options{Analysis: o, Probe: p}); err != nil || found == 0 || !p.asked {
		t.Errorf("%v; %d findings, the probe was asked: %v", err, found, p.asked)
	}
}

// TestSampledEndsRun: an error of Sampled ends the run.
func TestSampledEndsRun(t *testing.T) {
	to, _ := overflowing(t)
	full := errors.New("no space left")
	src := &datagrams{to: to, left: 50}
	_, err := Run(context.Background(), src, Options{
		Analysis: options(), Probe: NewProbe(), Sampled: func(*host.Sample) error { return full },
	})
	if !errors.Is(err, full) || src.left != 49 {
		t.Errorf("%v, %d frames are left", err, src.left)
	}
}

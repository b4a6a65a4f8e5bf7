package simulate

import (
	"fmt"
	"io"
	"strings"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/reader"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// wiretap writes what passes one link as IP packets.
type wiretap struct {
	s      *Simulation
	save   func(*capture.Frame) error
	ids    []uint16 // of IP, by host
	packet []byte
	err    error
}

// TapAt returns the tap's place on the way from a to b, from 0 to 1.
func (s *Simulation) TapAt() (at float64, err error) {
	switch s.Flags.Tap {
	case "a", "client":
	case "b", "server":
		at = 1
	case "between":
		at = 0.5
	default:
		if at, err = ParseShare(s.Flags.Tap); err != nil {
			return 0, fmt.Errorf("--tap %q: expected a, b, between or a share of the way", s.Flags.Tap)
		}
	}
	return at, nil
}

// TapInto makes the tap write the capture. end completes the capture after the
// run. *failed then holds the tap's own error.
func (s *Simulation) TapInto(at float64, to io.Writer) (end func() error, failed *error, err error) {
	t := &wiretap{s: s, ids: make([]uint16, len(s.Addrs))}
	if end, err = t.saveTo(to); err != nil {
		return nil, nil, err
	}
	for i, link := range s.Links {
		see := t.datagram
		if s.Stream {
			see = t.segments(link, uint32(i))
		}
		link.Tap(at, func(seen sim.Tapped) {
			if t.err == nil {
				t.err = see(seen)
			}
		})
	}
	return end, &t.err, nil
}

// rawIP is the link type of packets that begin with their IP header.
const rawIP = 101

// saveTo starts the capture, in the format that its name implies. end completes
// it.
func (t *wiretap) saveTo(to io.Writer) (end func() error, err error) {
	f := t.s.Flags
	if strings.HasSuffix(f.Write, ".pcap") {
		w, err := capture.NewClassicWriter(to, rawIP, 0, capture.Nanoseconds, reader.FlushSaved)
		if err != nil {
			return nil, err
		}
		t.save = w.WriteFrame
		return w.Close, nil
	}
	w, err := capture.NewWriter(to,
		capture.WriterOptions{Application: "ackscope simulate", Comments: []string{"simulated traffic, " + t.s.describe()}})
	if err != nil {
		return nil, err
	}
	if _, err := w.AddInterface(capture.Interface{Name: "tap " + f.Tap, LinkType: rawIP}); err != nil {
		return nil, err
	}
	// The tap drops nothing, and the file says so: missing packets never
	// existed.
	w.SetStatistics(0, capture.Statistics{Known: capture.KnownOSDropped})
	t.save = func(frame *capture.Frame) error { return w.WriteFrame(frame) }
	return w.Close, nil
}

func (t *wiretap) envelope(seen *sim.Tapped) capture.Envelope {
	from, to := seen.From.Index, seen.To.Index
	t.ids[from]++
	return capture.Envelope{Src: t.s.Addrs[from], Dst: t.s.Addrs[to], TTL: 64, ID: t.ids[from]}
}

func (t *wiretap) datagram(seen sim.Tapped) (err error) {
	if t.packet, err = capture.AppendUDP(t.packet[:0], t.envelope(&seen), seen.Bytes); err != nil {
		return err
	}
	return t.write(&seen)
}

func (t *wiretap) write(seen *sim.Tapped) error {
	return t.save(&capture.Frame{At: Epoch + seen.At, LinkType: rawIP, Length: len(t.packet), Data: t.packet})
}

// segments returns a function that cuts a link's stream into TCP segments. A
// segment acknowledges what its sender has read.
func (t *wiretap) segments(link *sim.Link, number uint32) func(sim.Tapped) error {
	first := func(h *sim.Host) uint32 { return 0x10000000*uint32(h.Index+1) + number<<16 }
	read := map[*sim.Host]uint32{}
	t.s.World.Watch(func(step *sim.Step) {
		in, ok := step.In.(machine.Bytes)
		if ok && (step.Host == link.A && in.From == link.PeerOfA || step.Host == link.B && in.From == link.PeerOfB) {
			read[step.Host] += uint32(len(in.Bytes))
		}
	})
	return func(seen sim.Tapped) (err error) {
		seq, ack, flags := first(seen.From)+1+uint32(seen.Offset), first(seen.To)+1+read[seen.From], uint8(capture.FlagACK)
		switch seen.Kind {
		case machine.OpenStream:
			seq, flags = seq-1, capture.FlagSYN|capture.FlagACK
			if seen.From == link.A {
				ack, flags = 0, capture.FlagSYN
			}
		case machine.CloseStream:
			flags |= capture.FlagFIN
		default:
			flags |= capture.FlagPSH
		}
		if t.packet,
			err = capture.AppendTCP(t.packet[:0], t.envelope(&seen), seq, ack, flags, 65535, seen.Bytes); err != nil {
			return err
		}
		return t.write(&seen)
	}
}

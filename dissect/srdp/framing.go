package srdp

import (
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// framings returns the framings of packets in the TCP streams to proxies: the
// lengths that the profiles define.
func framings(known []dissect.Profile) (out []dissect.Framing) {
	for i := range known {
		p := &settingsOf(known[i].Config).Wire
		f := dissect.Framing{
			Name: fmt.Sprintf("%d-byte length", p.FramePrefix), Prefix: p.FramePrefix, BigEndian: !p.FrameLittleEndian,
			Max: wire.MaxFrame, Usual: wire.MaxFrame,
		}
		if p.FrameLittleEndian {
			f.Name += ", little-endian"
		}
		if slices.ContainsFunc(out, func(o dissect.Framing) bool { return o.Name == f.Name }) {
			continue
		}
		var codecs []*wire.Profile
		for j := range known {
			if q := &settingsOf(known[j].Config).Wire; q.FramePrefix == p.FramePrefix &&
				q.FrameLittleEndian == p.FrameLittleEndian {
				codecs = append(codecs, q)
			}
		}
		f.Weigh = weighFraming(codecs)
		out = append(out, f)
	}
	return out
}

// weighFraming returns a function that weighs a packet by the profiles with one
// framing.
func weighFraming(codecs []*wire.Profile) func(b []byte, length int) float64 {
	const (
		cannot      = -1
		command     = 7 // one of two values of a byte
		fixedLength = 6 // of an acknowledgement
		plainFlags  = 5 // only flags that the document defines
	)
	return func(b []byte, length int) float64 {
		best := float64(cannot)
		for _, p := range codecs {
			if len(b) > 0 && b[0] != p.DataCommand && b[0] != p.AckCommand {
				continue // callers ask for every byte of a stream: most bytes end here
			}
			var pk wire.Packet
			worth := float64(command)
			switch {
			case !p.Fits(b, length, &pk):
				if len(b) == 0 || len(b) == length {
					continue
				}
				worth = 0 // cut short
			case p.Contradicts(&pk):
				worth = 0
			case pk.Ack:
				worth += fixedLength
			case p.UnknownFlags(pk.Flags) == 0:
				worth += plainFlags
			}
			best = max(best, worth)
		}
		return best
	}
}

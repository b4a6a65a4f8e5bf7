package analyze

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// TestUnquoted: a second run logs no datagrams behind the last ICMP error. It ties each error to the
// same datagram as a run that logs all, also where the file has grown since the first run.
func TestUnquoted(t *testing.T) {
	const frames, quoted, grown = 3 * sentRing, sentRing / 2, sentRing
	router := netip.MustParseAddr("192.0.2.1")
	run := func(survey *Survey, upTo int) (*Session, []Quoted) {
		var ties []Quoted
		s := NewSession(Options{Registry: dissect.NewRegistry(testProtocol), Survey: survey, Sink: func(r *Record) {
			if r.Quoted != nil {
				x := *r.Quoted
				x.Flow = nil // of its run
				ties = append(ties, x)
			}
		}})
		q, r := quoter{session: s}, rand.New(rand.NewPCG(7, 8))
		for n := range upTo {
			q.at++
			id := uint32(n%60000 + 1)
			if n%1000 == 999 && (n < quoted || n >= frames) {
				back := uint32(1 + r.IntN(400)) // some lie further back than find looks
				q.icmp(router, quoteOf(capture.ReasonHost, id-back, 0, 8, ""))
				continue
			}
			to := hostB
			if n%3000 == 0 {
				to = hostC // a flow that sends little
			}
			q.datagram(hostA, to, id, 0, binary.BigEndian.AppendUint64(nil, uint64(n)))
		}
		s.Finish()
		return s, ties
	}
	first, _ := run(nil, frames)
	survey := first.Survey()
	for _, upTo := range []int{frames, frames + grown} {
		s, got := run(survey, upTo)
		_, want := run(nil, upTo)
		tied := slices.ContainsFunc(want[len(want)/2:], func(x Quoted) bool { return x.Certainty == machine.Certain })
		if !slices.Equal(got, want) || !tied {
			t.Errorf("of %d frames: %d errors, and %d in a run that logs all", upTo, len(got), len(want))
		}
		if !s.unquoted.reached {
			t.Errorf("of %d frames: each datagram was logged", upTo)
		}
	}
}

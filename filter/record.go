package filter

import (
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Record is one packet in the form that filters read. The reader of the capture
// reuses it for every packet. Goroutines must not share it while a filter runs,
// because it holds the filter's scratch buffers.
type Record struct {
	// Frame and Packet are nil if the frame of a datagram is no longer available.
	// Header fields then do not exist, but addresses and payload do.
	Frame  *capture.Frame
	Packet *capture.Packet

	Start    machine.Instant // of the capture's first frame
	Previous machine.Instant // of the previous frame; Start for the first one
	File     string          // the capture's name

	Src, Dst  netip.AddrPort
	Transport capture.Transport
	Datagram  machine.Datagram // At and Ref are set for every frame

	Flow      int // number of the flow, from 1; 0 if there is none
	Session   int // of the flow's pair of addresses, from 1
	Was       int // the flow that it continues from another address; 0 if none
	Stream    int // analyze.Flow.Stream
	Protocol  *dissect.Protocol
	Dialect   string
	Knowledge Knowledge // nil if there is no flow

	Events    []machine.Event
	Anomalies []machine.Anomaly
	// Messages are those that this packet carried. Without hindsight, as in live traffic, they
	// are those whose lives ended at it.
	Messages  []machine.Message
	Hindsight *Hindsight // nil if there is none

	// Decode dissects the datagram. It is called at most once for a record, and
	// only for a field of the record's protocol. Its result must stay valid until
	// Reset.
	Decode func(*Record) *dissect.Dissection

	Quoted Quoted // what an ICMP error concerns

	// Batched is how many datagrams the frame holds that were captured as one, of which this
	// is the Nth, from 0. Batched is 0 for a frame with one datagram.
	Batched, Nth int

	dissection *dissect.Dissection
	decoded    bool
	carried    []machine.Message // scratch of Hindsight
	moments    []machine.Event

	// Scratch space of one Match: assembled slices and texts, the left side of a
	// comparison of two fields, and the text that Append builds.
	scratch []byte
	slots   []uint64 // the left sides of sums
	uint    uint64
	int     int64
	float   float64
	bytes   []byte
	addr    netip.Addr
	count   uint64
	text    []byte
	between string // the separator of Append
}

// Quoted is what an ICMP error concerns. Its flow is 0 for other frames, and where that is
// unknown.
type Quoted struct {
	Flow      int
	Ref       machine.Ref // the frame of the datagram that the error quotes; zero if none fits
	Certainty machine.Certainty
}

// Knowledge has the figures of a flow's sides at this packet, and the facts
// about the whole flow. *analyze.Flow implements it.
type Knowledge interface {
	RTT(machine.Side) time.Duration // negative if it is not known
	Loss(machine.Side) float64      // 0 to 1; negative if it is not known
	Sent(machine.Side) (packets uint64, ok bool)
	Facts() machine.Facts
}

// Reset discards the dissection. Call it when the record holds another packet.
func (r *Record) Reset() { r.dissection, r.decoded = nil, false }

var nothing dissect.Dissection

// Dissection returns the packet's fields, dissected on the first call. It is
// empty for packets of no protocol.
func (r *Record) Dissection() *dissect.Dissection {
	if !r.decoded {
		r.decoded, r.dissection = true, &nothing
		if r.Decode != nil && r.Protocol != nil {
			r.dissection = r.Decode(r)
		}
	}
	return r.dissection
}

// word copies a text to the scratch buffer, where it is valid for one Match.
func (r *Record) word(s string) []byte {
	n := len(r.scratch)
	r.scratch = append(r.scratch, s...)
	return r.scratch[n:len(r.scratch):len(r.scratch)]
}

package filter

import (
	"net/netip"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// Record is one packet as a filter asks about it. The reader of the capture
// fills one in and uses it for every packet; it must not be shared between
// goroutines while a filter runs, since it holds the filter's scratch.
type Record struct {
	// Frame and Packet are nil for a datagram whose frame is gone; header fields
	// do not exist then, addresses and payload do.
	Frame  *capture.Frame
	Packet *capture.Packet

	Start    machine.Instant // of the capture's first frame
	Previous machine.Instant // of the frame before; Start for the first one
	File     string          // the capture's name

	Src, Dst  netip.AddrPort
	Transport capture.Transport
	Datagram  machine.Datagram // At and Ref are set for every frame

	Flow      int // number of the flow, from 1; 0 for none
	Session   int // of the flow's pair of addresses, from 1
	Stream    int // analyze.Flow.Stream
	Protocol  *dissect.Protocol
	Dialect   string
	Knowledge Knowledge // nil where there is no flow

	Events    []machine.Event
	Anomalies []machine.Anomaly
	Messages  []machine.Message // whose lives ended at this packet

	// Decode takes the datagram apart; it is asked at most once for a record, and
	// only where a field of the record's protocol is. What it gives must stay
	// valid until Reset.
	Decode func(*Record) *dissect.Dissection

	dissection *dissect.Dissection
	decoded    bool

	// Scratch of one Match: slices and texts that are put together, the left
	// side of a comparison of two fields, the text that Append builds.
	scratch []byte
	slots   []uint64 // the left sides of sums
	uint    uint64
	int     int64
	float   float64
	bytes   []byte
	addr    netip.Addr
	count   uint64
	text    []byte
	between string // what Append puts between values
}

// Knowledge gives the figures of a flow's sides at this packet, and what is
// known of the flow as a whole; *analyze.Flow does.
type Knowledge interface {
	RTT(machine.Side) time.Duration // negative where it is not known
	Loss(machine.Side) float64      // 0 to 1; negative where it is not known
	Sent(machine.Side) (packets uint64, ok bool)
	Facts() machine.Facts
}

// Reset forgets what was decoded: call it when the record holds another packet.
func (r *Record) Reset() { r.dissection, r.decoded = nil, false }

var nothing dissect.Dissection

// Dissection returns the packet's fields, taken apart on first demand; it is
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

// word keeps a text for the length of a Match, as bytes.
func (r *Record) word(s string) []byte {
	n := len(r.scratch)
	r.scratch = append(r.scratch, s...)
	return r.scratch[n:len(r.scratch):len(r.scratch)]
}

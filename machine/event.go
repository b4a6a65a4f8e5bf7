package machine

// EventKind is what happened. All protocols share these kinds. A protocol's own
// kinds start at EventProtocol, and its descriptor names them.
type EventKind uint8

const (
	EventNone      EventKind = iota
	EventSent                // Side sent the packet Sequence
	EventReceived            // Side accepted the peer's packet Sequence
	EventAcked               // Side learned that its packet Sequence arrived
	EventDuplicate           // Side refused the peer's packet as already received
	EventStale               // Side refused the peer's packet as too old
	EventRejected            // Side's application refused the peer's packet: it arrived, but was not acked
	EventLost                // Side's packet Sequence can no longer be acked
	EventResent              // Side sent the same content again
	EventDelivered           // Side's application was handed a message
	EventRegraded            // evidence after the settling horizon changed the certainty of an earlier event

	EventProtocol EventKind = 64
)

var eventWords = [...]string{
	"none", "sent", "received", "acked", "duplicate", "stale", "rejected", "lost", "resent", "delivered", "regraded",
}

// String returns the word that output uses for a shared kind, and "protocol"
// for the rest.
func (k EventKind) String() string {
	if int(k) < len(eventWords) {
		return eventWords[k]
	}
	return "protocol"
}

// Event is one fact about one endpoint. A tracker reports it once its grade is
// settled.
type Event struct {
	Kind       EventKind
	Side       Side // the endpoint that the fact belongs to
	Certainty  Certainty
	Bit        uint8   // on acked: the bit of ack_bits that named it
	Sequence   uint32  // as on the wire
	Sequence64 int64   // unwrapped; the first sequence seen of a side keeps its wire value
	At         Instant // when the frame Ref passed the tap
	Ref        Ref     // the frame that shows the fact
	By         Ref     // on acked: the frame whose header carried the ack (for a far side it is older than Ref)
	About      Ref     // the frame of the packet that the fact is about; zero when it was not captured
	RTT        int64   // on acked: the endpoint's own RTT sample in nanoseconds; negative when unknown
	Peer       Peer    // the peer in question, of endpoints that have several
	Channel    uint8   // of endpoints: as in Submit; of trackers: in which row Sequence counts, where there are several
}

// Rule describes one kind of finding, or one kind of divergence. Each protocol's
// descriptor lists both, the analyzer lists its findings, and `ackscope explain`
// prints them.
type Rule struct {
	ID       string // kebab-case, stable: scripts name it
	Severity Severity
	Summary  string // one line
	Explain  string // what it means, how it is told, what to do about it: paragraphs
	// Say formats a finding that stands for count occurrences. The figures are those
	// of the worst one. It names them with their units: "61 packets, the longest
	// wait 840 ms". It is nil if the summary is enough.
	Say func(count uint64, figures [3]float64) string
	// Absence is set by rules of findings that conclude from what did not pass the tap.
	// Where the capture is known to lack packets, such a finding is possible at most.
	Absence bool
	// Anywhere is set by rules of divergences that a packet breaks at every tap. Such a
	// divergence stays certain where the tap may stand some way off the side.
	Anywhere bool
	// Resend is set by rules that tell why something was sent again: the cause, in
	// a word or two with hyphens. Each occurrence is one packet or message.
	Resend string
	// ToldPause is set by rules that tell why a side paused. They say more than the analyzer's
	// rules "stalled" and "silence", which then report nothing about the side.
	ToldPause bool
	// CaptureLoss is set by rules that prove that the capture lacks packets. Each
	// occurrence is one place where some are missing.
	CaptureLoss bool
	// Unacked is set by rules of which each occurrence is a packet, in the frame of the
	// anomaly, that arrived and can never be acked.
	Unacked bool
	// CopyLost is set by rules of which each occurrence is a copy that was lost: the one
	// before the frame of the anomaly. About is the frame of the first copy.
	CopyLost bool
	// Origin is where the cause of what the rule finds most likely lies. Rules set it only
	// where the method Cause would not conclude it from the other fields.
	Origin Origin
	// Toward is set by rules about datagrams that died or waited on their way. It names the way, so
	// that counters of the host at its end can tell where.
	Toward Toward
}

// Toward is the way of the datagrams that a rule is about, as seen from the side of the finding.
type Toward uint8

const (
	TowardNone     Toward = iota
	TowardSide            // to the side
	TowardPeer            // from the side to its peer
	TowardSideSeen        // to the side, at whose host they were captured
	TowardTap             // from the side, lost before they were captured
)

// String returns the rule's ID.
func (r *Rule) String() string { return r.ID }

// Anomaly is one occurrence of a rule, as a tracker saw it. The analyzer
// collects a flow's anomalies of one rule and side into one finding.
type Anomaly struct {
	Rule      *Rule
	Side      Side // the side that caused it
	Certainty Certainty
	At        Instant
	Ref       Ref // the frame that shows it
	About     Ref // the frame that it refers to; zero if there is none
	// Figures are the numbers in the finding's message. Each rule sets their
	// order. The analyzer keeps those of the worst occurrence (largest
	// Figures[0]).
	Figures [3]float64
}

// Content identifies what a message says, when it is first sent. Suppose the
// same content comes to an endpoint in one flow and leaves it soon after in
// another. Then the endpoint passes messages on, and the analyzer reports Rule.
type Content struct {
	From   Side
	At     Instant
	Ref    Ref
	Hash   uint64
	Number uint32 // the kind of message, as the finding's first figure
	Rule   *Rule
}

// Effects is what one step caused. The caller owns it, passes it to the machine
// empty and reuses it: a machine must not keep anything in it.
type Effects struct {
	Events    []Event
	Anomalies []Anomaly
	Messages  []Message // that have ended, of protocols that carry messages
	Contents  []Content // of messages that are sent for the first time
	NoEvents  bool      // set by a caller that does not use Events: trackers may leave them out
	// NoMessages is set by a caller that does not use Messages. Trackers may leave them out, and need not keep what
	// only they hold. It stays the same for all steps of a tracker.
	NoMessages bool
	// NoContents is set by a caller that does not use Contents. Trackers may leave them out.
	NoContents bool
	// NewSession is set when a datagram opens another connection on the same
	// pair of addresses. The tracker's state then does not include that
	// datagram. The analyzer finishes this flow and passes the datagram to a
	// new one.
	NewSession bool

	// Only endpoints use these. Send and Hand fill them.
	Transmit []Transmission
	Deliver  []Delivery
	arena    []byte // holds the bytes of Transmit and Deliver
}

// Reset empties e and keeps its memory for reuse.
func (e *Effects) Reset() {
	e.Events, e.Anomalies, e.Messages, e.NewSession = e.Events[:0], e.Anomalies[:0], e.Messages[:0], false
	e.Contents = e.Contents[:0]
	e.Transmit, e.Deliver, e.arena = e.Transmit[:0], e.Deliver[:0], e.arena[:0]
}

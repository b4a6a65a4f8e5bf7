package export

import (
	"fmt"
	"io"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// QlogDialect is one of the two forms of qlog that ackscope writes.
type QlogDialect uint8

const (
	// IETF has the header of draft-ietf-quic-qlog-main-schema. Its events follow
	// our own schemas, and say in our terms what happened.
	IETF QlogDialect = iota
	// QVIS is the form that qvis loads: version 0.3. Each side is an endpoint, and
	// its events have the QUIC names that qvis draws.
	QVIS
)

// qlogURI identifies the events of a protocol for the draft. Private schemas
// carry a domain and a date.
const qlogURI = "https://github.com/ackscope/ackscope/112026/"

// Qlog writes a capture's flows as qlog. Each flow has two traces: what side a
// knew and what side b knew, as the tap shows it. Packet numbers are unwrapped.
// Qlog sorts events by time; if there are many, it keeps them in a temporary
// file.
type Qlog struct {
	w       io.Writer
	dialect QlogDialect
	title   string
	only    map[int]bool // numbers of the wanted flows; empty for all
	file    string       // the file of the flows, if there are several
	opened  bool         // the part before the traces was written
	traced  bool         // at least one trace was written
	sorted  sorter
	words   Notes // used only for its words
	order   uint64
	start   machine.Instant
	began   bool
	buf     []byte
	clock   Clock
	err     error
}

// NewQlog starts a file on w with a title. For each capture, call Begin, then
// Record for its records, then End.
func NewQlog(w io.Writer, d QlogDialect, title string) *Qlog {
	return &Qlog{w: w, dialect: d, title: title, words: *NewNotes()}
}

// Begin starts a capture. file, if not empty, names its traces. flows are the
// numbers of the wanted flows; without any, all are written.
func (q *Qlog) Begin(file string, flows []int) {
	q.file, q.only, q.began, q.start, q.order, q.sorted = file, map[int]bool{}, false, 0, 0, sorter{}
	for _, n := range flows {
		q.only[n] = true
	}
}

// Record adds a packet and what was settled at it. It is an analyze.Sink.
func (q *Qlog) Record(r *analyze.Record) {
	if !q.began {
		q.began, q.start = true, r.Datagram.At
	}
	f := r.Flow
	if f == nil || f.Protocol == nil || len(q.only) > 0 && !q.only[f.ID] {
		return
	}
	sent := false
	for i := range r.Events {
		e := &r.Events[i]
		x := note{
			at: e.At, side: e.Side, certainty: e.Certainty, sequence: e.Sequence64, number: -1, rtt: -1,
			other: e.About, word: uint32(e.Ref.Frame()), kind: NoteEvent,
		}
		switch e.Kind {
		case machine.EventSent:
			x.kind = NoteSent
			if e.Ref == r.Datagram.Ref {
				sent, x.length = true, uint32(max(r.Datagram.Length, 0))
			}
		case machine.EventAcked:
			x.kind, x.rtt = NoteAcked, e.RTT
			x.number = q.carrier(r, e)
		case machine.EventResent:
			x.kind = NoteResendOf
		case machine.EventReceived, machine.EventDuplicate, machine.EventStale, machine.EventRejected, machine.EventLost:
			x.kind = noteKinds[e.Kind]
			if e.About == r.Datagram.Ref {
				x.length = uint32(max(r.Datagram.Length, 0))
			}
		default:
			x.number = int64(q.words.wordOf(show.EventName(f, e.Kind)))
		}
		q.add(f, x)
	}
	// Datagrams without a sequence number were sent too.
	if d := &r.Datagram; !sent && d.Length > 0 && (r.Packet == nil || !r.Packet.Duplicate) &&
		(r.Message || r.Packet == nil || r.Packet.TCPFlags == 0) && r.Frame != nil {
		q.add(f, note{
			at: d.At, side: d.From, certainty: machine.Certain, sequence: -1, number: -1, rtt: -1,
			word: uint32(d.Ref.Frame()), kind: NoteSent, length: uint32(d.Length),
		})
	}
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		q.add(f, note{
			at: a.At, side: a.Side, certainty: a.Certainty, sequence: -1, number: int64(q.words.wordOf(a.Rule.ID)),
			rtt: -1, other: a.About, word: uint32(a.Ref.Frame()), kind: NoteFinding,
		})
	}
}

// carrier returns the number of the packet that carried an ack, if its reader
// accepted it at the same step. Otherwise it returns -1.
func (q *Qlog) carrier(r *analyze.Record, e *machine.Event) int64 {
	for i := range r.Events {
		if x := &r.Events[i]; x.Kind == machine.EventReceived && x.Side == e.Side && x.About == e.By && e.By != 0 {
			return x.Sequence64
		}
	}
	return -1
}

func (q *Qlog) add(f *analyze.Flow, x note) {
	if q.err != nil {
		return
	}
	q.order++
	x.order, x.ref = q.order, machine.Ref(2*f.ID+int(x.side))
	q.err = q.sorted.add(x)
}

// Abandon removes the temporary file of an output that will not be closed.
func (q *Qlog) Abandon() error { return q.sorted.close() }

// End writes the traces of a capture's flows.
func (q *Qlog) End(flows []*analyze.Flow) error {
	defer q.sorted.close() //nolint:errcheck // a temporary file
	if q.err == nil {
		q.err = q.sorted.sort()
	}
	q.head()
	for _, f := range flows {
		if f.Protocol == nil || len(q.only) > 0 && !q.only[f.ID] {
			continue
		}
		for _, side := range []machine.Side{machine.A, machine.B} {
			key := machine.Ref(2*f.ID + int(side))
			if q.dialect == QVIS && (!q.sorted.have || q.sorted.head.ref != key) {
				continue // qvis cannot load a trace without events
			}
			if q.traced {
				q.buf = append(q.buf, ',')
			}
			q.traced = true
			q.trace(f, side)
			for n := 0; q.err == nil && q.sorted.have && q.sorted.head.ref == key; n++ {
				from := len(q.buf)
				if n > 0 {
					q.buf = append(q.buf, ',')
				}
				q.buf = append(q.buf, '\n')
				if !q.event(f, &q.sorted.head) {
					q.buf = q.buf[:from]
					n--
				}
				if q.err = q.sorted.next(); q.err == nil {
					q.flush(32 << 10)
				}
			}
			q.buf = append(q.buf, "]}"...)
		}
	}
	return q.err
}

// Close ends the file.
func (q *Qlog) Close() error {
	q.head()
	q.buf = append(q.buf, "]}\n"...)
	q.flush(0)
	return q.err
}

func (q *Qlog) flush(over int) {
	if q.err == nil && len(q.buf) > over {
		_, q.err = q.w.Write(q.buf)
		q.buf = q.buf[:0]
	}
}

// head writes the part before the traces.
func (q *Qlog) head() {
	if q.opened {
		return
	}
	q.opened = true
	if q.dialect == IETF {
		q.buf = append(q.buf,
			`{"file_schema":"urn:ietf:params:qlog:file:contained","serialization_format":"application/qlog+json","title":`...)
		q.buf = AppendString(q.buf, q.title)
		q.buf = append(q.buf, `,"description":"What both sides of each flow knew, as ackscope reads it from a capture."`...)
	} else {
		q.buf = append(q.buf, `{"qlog_version":"0.3","qlog_format":"JSON","title":`...)
		q.buf = AppendString(q.buf, q.title)
		q.buf = append(q.buf,
			`,"description":"Not QUIC: events of another protocol under the names of QUIC's, so that qvis draws them. Packet numbers are sequence numbers, unwrapped."`...)
	}
	q.buf = append(q.buf, `,"traces":[`...)
}

// trace starts the trace of a side.
func (q *Qlog) trace(f *analyze.Flow, side machine.Side) {
	role := [...]string{"client", "server"}[side]
	group := fmt.Sprintf("flow %d", f.ID)
	if q.file != "" {
		group = q.file + ", " + group
	}
	q.buf = AppendString(append(q.buf, `{"title":`...),
		fmt.Sprintf("%s, side %s: %s, %s/%s", group, side, f.Addr(side), f.Protocol.Name, f.Config().Dialect))
	name := "as the capture shows it"
	if v := f.Facts().Vantage; v != machine.VantageUnknown {
		name += " (where it stood: " + v.String() + ")"
	}
	q.buf = AppendString(append(q.buf, `,"vantage_point":{"name":`...), name)
	if q.dialect == IETF {
		q.buf = append(append(append(q.buf, `,"type":"network","flow":"`...), role...), `"},"event_schemas":[`...)
		q.buf = append(AppendString(q.buf, qlogURI+"ackscope-"+f.Protocol.Name), ']')
		q.buf = append(q.buf,
			`,"common_fields":{"time_format":"relative_to_epoch","reference_time":{"clock_type":"system","epoch":"`...)
		q.buf = append(q.clock.Append(q.buf, q.start), `"},"group_id":`...)
		q.buf = append(AppendString(q.buf, group), `},"events":[`...)
		return
	}
	q.buf = append(append(append(q.buf, `,"type":"`...), role...), `"},"common_fields":{"protocol_type":[`...)
	q.buf = AppendString(q.buf, "ackscope-"+f.Protocol.Name)
	q.buf = append(q.buf, `],"time_format":"relative","reference_time":`...)
	q.buf = append(AppendDecimal(q.buf, int64(q.start), 6), `},"events":[`...)
}

// event writes one event. It returns false if the dialect has no such event.
func (q *Qlog) event(f *analyze.Flow, x *note) bool {
	q.buf = AppendDecimal(append(q.buf, `{"time":`...), int64(x.at.Sub(q.start)), 6)
	if q.dialect == QVIS {
		return q.qvisEvent(x)
	}
	var name, trigger string
	switch x.kind {
	case NoteSent:
		name = "packet_sent"
	case NoteAcked:
		name = "packet_acked"
	case NoteLost:
		name = "packet_lost"
	case NoteReceived:
		name = "packet_received"
	case NoteDuplicate:
		name, trigger = "packet_dropped", "duplicate"
	case NoteStale:
		name, trigger = "packet_dropped", "stale"
	case NoteRejected:
		name, trigger = "packet_dropped", "rejected"
	case NoteResendOf:
		name = "packet_resent"
	case NoteFinding:
		name = "finding"
	default:
		name = q.words.words[x.number]
	}
	q.buf = AppendString(append(q.buf, `,"name":`...), "ackscope-"+f.Protocol.Name+":"+name)
	q.buf = strconv.AppendUint(append(q.buf, `,"data":{"frame":`...), uint64(x.word), 10)
	q.buf = append(append(append(q.buf, `,"certainty":"`...), x.certainty.String()...), '"')
	if x.kind == NoteFinding {
		q.buf = AppendString(append(q.buf, `,"rule":`...), q.words.words[x.number])
	} else if x.sequence >= 0 || x.length == 0 {
		q.buf = strconv.AppendInt(append(q.buf, `,"packet_number":`...), x.sequence, 10)
	}
	if trigger != "" {
		q.buf = AppendString(append(q.buf, `,"trigger":`...), trigger)
	}
	if x.other != 0 && x.kind != NoteSent {
		q.buf = strconv.AppendUint(append(q.buf, `,"about_frame":`...), x.other.Frame(), 10)
	}
	if x.kind == NoteAcked && x.number >= 0 {
		q.buf = strconv.AppendInt(append(q.buf, `,"by_packet_number":`...), x.number, 10)
	}
	if x.rtt >= 0 {
		q.buf = AppendDecimal(append(q.buf, `,"rtt":`...), x.rtt, 6)
	}
	if x.length > 0 {
		q.buf = append(strconv.AppendUint(append(q.buf, `,"raw":{"length":`...), uint64(x.length), 10), '}')
	}
	q.buf = append(q.buf, "}}"...)
	return true
}

// qvisEvent writes one event under the name that qvis draws.
func (q *Qlog) qvisEvent(x *note) bool {
	header := func(number int64) {
		q.buf = append(q.buf, `"header":{"packet_type":"1RTT"`...)
		if number >= 0 {
			q.buf = strconv.AppendInt(append(q.buf, `,"packet_number":`...), number, 10)
		}
		q.buf = append(q.buf, '}')
	}
	var name string
	switch x.kind {
	case NoteSent:
		name = "transport:packet_sent"
	case NoteReceived, NoteAcked:
		name = "transport:packet_received"
	case NoteLost:
		name = "recovery:packet_lost"
	case NoteDuplicate, NoteStale, NoteRejected:
		name = "transport:packet_dropped"
	default:
		return false
	}
	q.buf = append(append(append(q.buf, `,"name":"`...), name...), `","data":{`...)
	if x.kind == NoteAcked {
		header(x.number)
		q.buf = append(q.buf, `,"frames":[{"frame_type":"ack","acked_ranges":[[`...)
		q.buf = strconv.AppendInt(q.buf, x.sequence, 10)
		q.buf = append(strconv.AppendInt(append(q.buf, ','), x.sequence, 10), "]]}]"...)
	} else {
		header(x.sequence)
	}
	if x.length > 0 {
		q.buf = append(strconv.AppendUint(append(q.buf, `,"raw":{"length":`...), uint64(x.length), 10), '}')
	}
	q.buf = append(q.buf, "}}"...)
	if x.kind == NoteAcked && x.rtt >= 0 {
		q.buf = AppendDecimal(append(q.buf, ",\n{\"time\":"...), int64(x.at.Sub(q.start)), 6)
		q.buf = AppendDecimal(append(q.buf, `,"name":"recovery:metrics_updated","data":{"latest_rtt":`...), x.rtt, 6)
		q.buf = append(q.buf, "}}"...)
	}
	return true
}

package export

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// Note is one inferred fact, attached to a frame. Most facts about a packet are
// known only long after its frame.
type Note struct {
	Ref       machine.Ref // the frame that it is attached to
	Kind      NoteKind
	Side      machine.Side // whose fact it is; for a finding, who caused it
	Certainty machine.Certainty
	Sequence  int64       // unwrapped
	Other     machine.Ref // the other frame of the fact; zero if there is none
	RTT       int64       // of NoteAcked, in nanoseconds; negative if unknown
	Word      string      // of NoteEvent: what happened; of NoteFinding: the rule
	Rule      *machine.Rule
}

// NoteKind is the kind of fact of a Note.
type NoteKind uint8

const (
	NoteSent      NoteKind = iota // Side sent Sequence with this frame
	NoteAcked                     // Side learned from Other that it arrived
	NoteAcks                      // this frame reported to Side that Sequence, of frame Other, arrived
	NoteLost                      // it can no longer be acked, as Other shows
	NoteReceived                  // Side accepted it, as Other shows
	NoteDuplicate                 // Side refused it as already received
	NoteStale                     // Side refused it as too old
	NoteRejected                  // Side's application refused it
	NoteResendOf                  // it is a copy of what Other carried
	NoteResentIn                  // Other is a copy of what it carried
	NoteEvent                     // anything else
	NoteFinding                   // a finding
)

// Notes collects the notes of a run over captures in bounded memory. Notes that
// do not fit are kept, sorted, in a temporary file.
type Notes struct {
	files []*sorter // by file
	words []string
	index map[string]uint32
	rules map[*machine.Rule]uint32
	table []*machine.Rule
	flows map[int]*analyze.Flow // by number
	order uint64
	err   error
}

// NewNotes returns an empty collection.
func NewNotes() *Notes {
	return &Notes{index: map[string]uint32{}, rules: map[*machine.Rule]uint32{}, flows: map[int]*analyze.Flow{}}
}

// Record adds what was settled at a packet. It is an analyze.Sink.
func (n *Notes) Record(r *analyze.Record) {
	if f := r.Flow; f != nil {
		n.flows[f.ID] = f
	}
	for i := range r.Events {
		n.event(r.Flow, &r.Events[i])
	}
	for i := range r.Anomalies {
		a := &r.Anomalies[i]
		n.finding(a.Rule, a.Side, a.Certainty, a.Ref, a.About)
	}
}

func (n *Notes) finding(rule *machine.Rule, side machine.Side, c machine.Certainty, ref, about machine.Ref) {
	k, ok := n.rules[rule]
	if !ok {
		k = uint32(len(n.table))
		n.rules[rule], n.table = k, append(n.table, rule)
	}
	n.add(note{ref: ref, other: about, kind: NoteFinding, side: side, certainty: c, word: k})
}

// ofFlows adds the findings of the analysis itself, which no record contains:
// the first frames of each finding.
func (n *Notes) ofFlows() {
	for _, id := range slices.Sorted(maps.Keys(n.flows)) {
		n.ofFlow(n.flows[id])
	}
}

// Forget adds the findings of a flow that the session removed, and forgets the
// flow.
func (n *Notes) Forget(f *analyze.Flow) {
	if n.flows[f.ID] == f {
		n.ofFlow(f)
		delete(n.flows, f.ID)
	}
}

func (n *Notes) ofFlow(f *analyze.Flow) {
	for _, x := range f.Findings() {
		if !slices.Contains(analyze.Rules, x.Rule) {
			continue
		}
		for i, ref := range x.Refs {
			n.finding(x.Rule, x.Side, x.Certainty, ref, x.Abouts[i])
		}
	}
}

var noteKinds = map[machine.EventKind]NoteKind{
	machine.EventReceived: NoteReceived, machine.EventDuplicate: NoteDuplicate, machine.EventStale: NoteStale,
	machine.EventRejected: NoteRejected, machine.EventLost: NoteLost,
}

func (n *Notes) event(f *analyze.Flow, e *machine.Event) {
	x := note{ref: e.About, other: e.Ref, side: e.Side, certainty: e.Certainty, sequence: e.Sequence64, rtt: -1}
	switch e.Kind {
	case machine.EventSent:
		x.ref, x.other, x.kind = e.Ref, 0, NoteSent
		n.add(x)
	case machine.EventAcked:
		if e.By != 0 {
			x.other = e.By
		}
		x.kind, x.rtt = NoteAcked, e.RTT
		n.add(x)
		x.ref, x.other, x.kind = x.other, x.ref, NoteAcks
		n.add(x)
	case machine.EventResent:
		x.kind = NoteResentIn
		n.add(x)
		x.ref, x.other, x.kind = e.Ref, e.About, NoteResendOf
		n.add(x)
	case machine.EventReceived, machine.EventDuplicate, machine.EventStale, machine.EventRejected, machine.EventLost:
		x.kind = noteKinds[e.Kind]
		n.add(x)
	default:
		x.ref, x.other, x.kind = e.Ref, e.About, NoteEvent
		x.word = n.wordOf(show.EventName(f, e.Kind))
		n.add(x)
	}
}

// maxWords bounds the words of events, of which there are few.
const maxWords = 1 << 12

func (n *Notes) wordOf(s string) uint32 {
	k, ok := n.index[s]
	if !ok && len(n.words) < maxWords {
		k = uint32(len(n.words))
		n.index[s], n.words = k, append(n.words, s)
	}
	return k
}

func (n *Notes) add(x note) {
	if x.ref == 0 || n.err != nil {
		return
	}
	for len(n.files) <= x.ref.File() {
		n.files = append(n.files, &sorter{})
	}
	n.order++
	x.order = n.order
	n.err = n.files[x.ref.File()].add(x)
}

// Sort ends the collection. Call it before At.
func (n *Notes) Sort() error {
	n.ofFlows()
	for _, s := range n.files {
		if n.err == nil {
			n.err = s.sort()
		}
	}
	return n.err
}

// At returns the notes of a frame, in the order in which they were settled.
// Within each file, frames must be requested in ascending order. The slice is
// valid until the next call.
func (n *Notes) At(ref machine.Ref, to []Note) ([]Note, error) {
	to = to[:0]
	if ref.File() >= len(n.files) {
		return to, nil
	}
	s := n.files[ref.File()]
	for s.have && s.head.ref <= ref {
		if x := &s.head; x.ref == ref {
			y := Note{
				Ref: x.ref, Kind: x.kind, Side: x.side, Certainty: x.certainty, Sequence: x.sequence,
				Other: x.other, RTT: x.rtt,
			}
			switch x.kind {
			case NoteFinding:
				y.Rule = n.table[x.word]
				y.Word = y.Rule.ID
			case NoteEvent:
				y.Word = n.words[x.word]
			}
			to = append(to, y)
		}
		if err := s.next(); err != nil {
			return to, err
		}
	}
	return to, nil
}

// Close removes the temporary files.
func (n *Notes) Close() error {
	var err error
	for _, s := range n.files {
		if e := s.close(); err == nil {
			err = e
		}
	}
	return err
}

// Append appends a note as a sentence, such as "a's 154 was acked in frame 294,
// RTT 66.729 ms (certain)".
func (x *Note) Append(b []byte) []byte {
	seq := func(b []byte) []byte {
		b = append(append(b, x.Side.String()...), "'s "...)
		return strconv.AppendInt(b, x.Sequence, 10)
	}
	peer := func(b []byte) []byte {
		b = append(append(b, x.Side.Other().String()...), "'s "...)
		return strconv.AppendInt(b, x.Sequence, 10)
	}
	frame := func(b []byte, before string, r machine.Ref) []byte {
		return strconv.AppendUint(append(b, before...), r.Frame(), 10)
	}
	switch x.Kind {
	case NoteSent:
		return seq(b) // always certain
	case NoteAcked:
		b = frame(append(seq(b), " was acked"...), " in frame ", x.Other)
		if x.RTT >= 0 {
			b = append(AppendDecimal(append(b, ", RTT "...), x.RTT, 6), " ms"...)
		}
	case NoteAcks:
		b = append(append(append(b, "told "...), x.Side.String()...), " that "...)
		b = append(strconv.AppendInt(b, x.Sequence, 10), " arrived"...)
		if x.Other != 0 {
			b = frame(b, ", of frame ", x.Other)
		}
	case NoteLost:
		b = append(seq(b), " can no longer be acked"...)
	case NoteReceived:
		b = append(append(append(peer(b), " was received by "...), x.Side.String()...), x.shown()...)
	case NoteDuplicate:
		b = append(append(append(peer(b), " was refused by "...), x.Side.String()...), " as a duplicate"...)
	case NoteStale:
		b = append(append(append(peer(b), " was refused by "...), x.Side.String()...), " as too old"...)
	case NoteRejected:
		b = append(append(append(peer(b), " was refused by the application of "...), x.Side.String()...), x.shown()...)
	case NoteResendOf:
		b = frame(append(b, "resend"...), " of frame ", x.Other)
	case NoteResentIn:
		b = frame(append(b, "sent again"...), " in frame ", x.Other)
	case NoteEvent:
		b = append(append(append(b, x.Side.String()...), ": "...), x.Word...)
	case NoteFinding:
		b = append(append(append(b, x.Rule.Severity.String()...), ' '), x.Word...)
		b = append(append(append(b, " of "...), x.Side.String()...), ": "...)
		b = append(b, x.Rule.Summary...)
		if x.Other != 0 {
			b = frame(b, "; see frame ", x.Other)
		}
	}
	return append(append(append(b, " ("...), x.Certainty.String()...), ')')
}

// shown names the frame that shows a fact of a far side.
func (x *Note) shown() string {
	if x.Other == 0 || x.Other == x.Ref {
		return ""
	}
	return fmt.Sprintf(", as frame %d shows", x.Other.Frame())
}

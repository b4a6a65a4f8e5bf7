package screens

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/export"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/tui/browser"
)

// Subject is what the cursor of a screen is at, for copies in other forms. A field that does not
// apply is nil.
type Subject struct {
	Entry   int // the packet; -1 for none
	Flow    *analyze.Flow
	Finding *analyze.Finding
	Message *machine.Message
	Field   *dissect.FieldSpec // the field of the packet's tree
	Bytes   []byte             // the bytes that hold it
}

// errNoSubject says that there is nothing at the cursor.
var errNoSubject = errors.New("nothing is selected here")

// packetSubject returns the selected packet.
func packetSubject(br *browser.Browser) Subject {
	x := Subject{Entry: -1, Flow: br.Focus()}
	if n := br.Selected; n >= 0 && n < br.Store.Len() {
		x.Entry, x.Flow = n, br.Store.FlowOf(n)
	}
	return x
}

// entryOf returns the packet of a frame, or -1.
func entryOf(br *browser.Browser, ref machine.Ref) int {
	if n, ok := br.Store.Find(ref); ok && ref != 0 {
		return n
	}
	return -1
}

// About implements Screen.
func (lines) About(br *browser.Browser) Subject { return packetSubject(br) }

// About implements Screen.
func (scrubber) About(br *browser.Browser) Subject { return packetSubject(br) }

// About implements Screen: an autopsy is about the flow.
func (*Autopsy) About(br *browser.Browser) Subject { return Subject{Entry: -1, Flow: br.Focus()} }

// About implements Screen.
func (t *FlowTable) About(br *browser.Browser) Subject {
	return Subject{Entry: -1, Flow: t.selected(br)}
}

// About implements Screen.
func (t *ReplayTable) About(*browser.Browser) Subject {
	if r := t.selected(); r != nil {
		return Subject{Entry: -1, Flow: r.flow}
	}
	return Subject{Entry: -1}
}

// About implements Screen.
func (t *MessageTable) About(br *browser.Browser) Subject {
	x := t.selected()
	if x == nil {
		return Subject{Entry: -1}
	}
	m := x.Message // the list may move
	return Subject{Entry: entryOf(br, m.Frames[0]), Flow: br.Store.Flow(t.flow), Message: &m}
}

// About implements Screen.
func (t *FindingTable) About(br *browser.Browser) Subject {
	r := t.selected()
	if r == nil || r.finding == nil || len(r.finding.Refs) == 0 {
		return Subject{Entry: -1}
	}
	return Subject{Entry: entryOf(br, r.finding.Refs[0]), Flow: r.finding.Flow, Finding: r.finding}
}

// About implements Screen. In the tree and the bytes it is the field at the cursor.
func (p *PacketView) About(br *browser.Browser) Subject {
	x, d := packetSubject(br), &p.detail
	if p.pane != paneTree && p.pane != paneHex || x.Entry != d.entry || d.cursor >= len(d.tree.Lines) {
		return x
	}
	x.Field = d.tree.Lines[d.cursor].Field
	if data, _, bit, bits := d.lit(); bits > 0 {
		x.Bytes = data[min(bit/8, len(data)):min((bit+bits+7)/8, len(data))]
	}
	return x
}

// Hex returns the bytes of the field at the cursor, else of the packet's payload, else of its frame.
func (x *Subject) Hex(br *browser.Browser) (string, error) {
	data := x.Bytes
	if len(data) == 0 {
		if x.Entry < 0 {
			return "", errors.New("no packet is selected here")
		}
		r, err := br.Store.Read(x.Entry)
		if err != nil {
			return "", err
		}
		if data = r.Datagram.Bytes; len(data) == 0 && r.Frame != nil {
			data = r.Frame.Data
		}
	}
	return fmt.Sprintf("%x", data), nil
}

// JSON returns the finding, the message, the packet or the flow as the commands print it with
// --json.
func (x *Subject) JSON(br *browser.Browser) (string, error) {
	var out bytes.Buffer
	s := br.Store
	file := func(ref machine.Ref) string {
		if s.Several() {
			return s.FileName(ref.File())
		}
		return ""
	}
	var err error
	switch {
	case x.Finding != nil:
		row := export.FindingRow{Finding: x.Finding, File: file(x.Finding.Refs[0]), Provisional: s.Growing()}
		if why, ok := s.Logs().Finding(x.Finding); ok {
			row.Log, row.LogWhy = why.String(), why.Why.String()
		}
		err = export.NewRows(export.Findings, export.NewLines(&out, &export.Findings.Schema)).Add(&row)
	case x.Message != nil && x.Flow != nil:
		row := export.NewMessageRow(x.Flow, x.Message, file(x.Message.Frames[0]))
		err = export.NewRows(export.Messages, export.NewLines(&out, &export.Messages.Schema)).Add(&row)
	case x.Entry >= 0:
		r, full := s.Full(x.Entry)
		if full != nil {
			return "", full
		}
		row := export.PacketRow{Reading: s.NewReading(), Source: r, File: file(r.Datagram.Ref)}
		row.Reading.Take(r)
		err = export.NewRows(export.Packets, export.NewLines(&out, &export.Packets.Schema)).Add(&row)
	case x.Flow != nil:
		row := export.FlowRow{Flow: x.Flow, File: file(x.Flow.FirstRef), Provisional: s.Growing()}
		err = export.NewRows(export.Flows, export.NewLines(&out, &export.Flows.Schema)).Add(&row)
	default:
		err = errNoSubject
	}
	return out.String(), err
}

// Filter returns a display filter that the subject passes: one for its field, else one that says
// which packet, finding, message or flow it is.
func (x *Subject) Filter(br *browser.Browser) (string, error) {
	switch {
	case x.Finding != nil:
		return fmt.Sprintf("flow == %d && finding.rule == %q && finding.side == %s", x.Finding.Flow.ID, x.Finding.Rule.ID,
			x.Finding.Side), nil
	case x.Message != nil && x.Flow != nil && x.Message.ID >= 0:
		text := fmt.Sprintf("flow == %d && message.side == %s && message.id == %d", x.Flow.ID, x.Message.From, x.Message.ID)
		if x.Message.Channel >= 0 {
			text += fmt.Sprintf(" && message.channel == %d", x.Message.Channel)
		}
		return text, nil
	case x.Entry >= 0:
		if text, ok := x.fieldFilter(br); ok {
			return text, nil
		}
		ref := br.Store.Entry(x.Entry).Ref
		text := fmt.Sprintf("frame.number == %d", ref.Frame())
		if br.Store.Several() {
			text += fmt.Sprintf(" && frame.file == %q", br.Store.FileName(ref.File()))
		}
		return text, nil
	case x.Flow != nil:
		return fmt.Sprintf("flow == %d", x.Flow.ID), nil
	}
	return "", errNoSubject
}

// fieldFilter returns a filter for the value of the field at the cursor. It returns false if the
// packet would not pass it: not every value can be written in a filter.
func (x *Subject) fieldFilter(br *browser.Browser) (string, bool) {
	if x.Field == nil {
		return "", false
	}
	f, ok := br.Table.Lookup(x.Field.Name)
	if !ok {
		return "", false
	}
	reader := br.Store.NewReader()
	r, err := reader.Read(x.Entry)
	if err != nil {
		return "", false
	}
	value := slices.Clone(f.Column().Append(nil, r, ","))
	tries := []string{f.Name}
	if len(value) > 0 {
		tries = []string{fmt.Sprintf("%s == %s", f.Name, value), fmt.Sprintf("%s == %q", f.Name, value), f.Name}
	}
	for _, text := range tries {
		compiled, err := br.Table.Compile(text)
		if err != nil {
			continue
		}
		if r, err = reader.Read(x.Entry); err == nil && compiled.Match(r) {
			return text, true
		}
	}
	return "", false
}

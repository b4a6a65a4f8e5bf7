package truth

import (
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// TestNotifyWindows: the last states of messages in the notify windows are
// those that the library reported to its application at the tap: delivered,
// lost, received. For the far side, nothing is shown as received that its log
// denies. Few messages are shown as acked only by headers on their way to it.
// What arrives after a side has left is not compared, since it is known later.
func TestNotifyWindows(t *testing.T) {
	for _, name := range []string{
		"u21n_notify_loss10.client.pcap.gz", "u21n_notify_loss10.server.pcapng.gz",
		"u210_poor_notify.client.pcap.gz", "u210_poor_notify.server.pcapng.gz",
	} {
		t.Run(name, func(t *testing.T) {
			path := testenv.Capture(t, name)
			named := ripName.FindStringSubmatch(filepath.Base(path))
			c := &ripCapture{name: named[1], tap: named[2], run: readRipRun(t, named[1])}
			in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepAll})
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			timeline := analyze.NewTimeline(in)
			if c.session,
				err = analyze.RunTwice(in,
				analyze.Options{Registry: dissect.NewRegistry(riptide.Protocol), Sink: timeline.Record}); err != nil {
				t.Fatal(err)
			}
			timeline.Attach(c.session)
			_, end := c.session.Span()
			c.last = float64(end) / 1e9
			for _, x := range c.connections(t) {
				// last is what each side's windows showed last of each message, by
				// window name.
				var last [2]map[string]map[int64]machine.Cell
				for s := range last {
					last[s] = map[string]map[int64]machine.Cell{"notify sent": {}, "notify received": {}}
				}
				w, err := timeline.Walk(x.flow, 0)
				if err != nil {
					t.Fatal(err)
				}
				ended := c.last
				for _, lines := range x.lines {
					for i := range lines {
						if lines[i].Event == "disconnected" {
							ended = min(ended, lines[i].T)
						}
					}
				}
				var v machine.View
				for r := w.Next(); r != nil && float64(r.Datagram.At)/1e9 < ended; r = w.Next() {
					for s := range last {
						v.Reset()
						w.Tracker().Inspect(machine.Side(s), &v)
						for _, window := range v.Windows {
							for i, cell := range window.Cells {
								if cells := last[s][window.Name]; cells != nil {
									cells[window.First+int64(i)] = cell
								}
							}
						}
					}
				}
				if err := w.Err(); err != nil {
					t.Fatal(err)
				}
				for s, lines := range x.lines {
					side := machine.Side(s)
					compared, premature := 0, 0
					want := map[string]map[int64]machine.Cell{"notify sent": {}, "notify received": {}}
					for i := range lines {
						switch l := &lines[i]; {
						case l.Mode != "notify":
						case l.Event == "notify_delivered":
							want["notify sent"][int64(l.Seq)] = machine.CellAcked
						case l.Event == "notify_lost":
							want["notify sent"][int64(l.Seq)] = machine.CellLost
						case l.Event == "receive":
							want["notify received"][int64(l.Seq)] = machine.CellReceived
						}
					}
					for name, cells := range last[s] {
						for id, got := range cells {
							logged, ok := want[name][id]
							switch got {
							case machine.CellAcked, machine.CellLost, machine.CellReceived:
								compared++
								if far := !c.near(&x, side) && name == "notify sent"; logged != got && far {
									premature++
								} else if logged != got {
									t.Errorf("%s, %s: message %d is shown as %c, its log says %c", x.sides[s], name, id, got.Rune(), logged.Rune())
								}
							default:
								if ok && c.near(&x, side) {
									t.Errorf("%s, %s: message %d is shown as %c, its log says %c", x.sides[s], name, id, got.Rune(), logged.Rune())
								}
							}
						}
						if len(cells) < len(want[name]) && c.near(&x, side) {
							t.Errorf("%s, %s: %d messages were shown, its log has %d", x.sides[s], name, len(cells), len(want[name]))
						}
					}
					if compared < 60 || premature > compared/20 {
						t.Errorf("%s: %d messages compared, %d of them settled too early", x.sides[s], compared, premature)
					}
				}
			}
		})
	}
}

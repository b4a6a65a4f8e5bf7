package riptide

import (
	"slices"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/riptide/tracker"
)

// readTwice runs the tracker over a flow twice, as the analyzer does with a file. The first datagrams that
// tell the dialect classify the flow. It returns the configuration of the second run, and its messages.
func readTwice(t *testing.T, list []machine.Datagram) (c *dissect.Config, messages []machine.Message) {
	t.Helper()
	classifier := newClassifier(nil)
	var v dissect.Verdict
	for i := 0; i < len(list) && v.Config == nil; i++ {
		if classifier.Feed(&list[i]); i%32 == 31 {
			v = classifier.Verdict()
		}
	}
	if v.Config == nil {
		t.Fatalf("not read: %s", v.Reason)
	}
	for range 2 {
		copied := *v.Config
		if c != nil {
			copied.Facts = c.Facts
		}
		c, messages = &copied, nil
		narrow := trackerConfig(c)
		narrow.Narrow = newNarrower(&narrow.Senders)
		tr := tracker.New(narrow, c.Facts)
		var out machine.Effects
		for i := range list {
			out.Reset()
			tr.Observe(&list[i], &out)
			messages = append(messages, out.Messages...)
		}
		out.Reset()
		tr.Finish(&out)
		messages = append(messages, out.Messages...)
		c.Facts = tr.Learned()
	}
	return c, messages
}

// TestPytideMetLate cuts captures of Pytide. A client is narrowed to it by its heartbeats, though these come
// after the datagrams that classify the flow. What its sender takes for acked is in its log, where that is
// certain. A server sends no heartbeats, so it stays open, and facts that depend on it are likely at most.
func TestPytideMetLate(t *testing.T) {
	cuts, narrowed, known := 0, 0, 0
	for _, path := range captures(t, "upy_burst.client", "upy_gap.client", "upy_loss15.client", "upy_outage_gap.client") {
		log := truthOf(t, path)
		acked := map[string][]uint16{}
		for _, l := range log.lines {
			if l.Event == "acked" && l.Seq != nil {
				acked[l.Endpoint] = append(acked[l.Endpoint], *l.Seq)
			}
		}
		for _, f := range flowsOf(t, path) {
			for tenth := 3; tenth < 7; tenth++ {
				list := f.datagrams[len(f.datagrams)*tenth/10:]
				c, messages := readTwice(t, list)
				for _, s := range []machine.Side{machine.A, machine.B} {
					who := log.endpoint(f.addrs[s])
					if who == "server" || len(list) < 100 {
						continue
					}
					cuts++
					if names, open := behavioursOf(c, s); open == 1 && names[0] == "pytide@2.1-alpha" {
						narrowed++
					}
					for i := range messages {
						m := &messages[i]
						if m.From != s || m.Mode != machine.ModeReliable || m.Acked != machine.Yes {
							continue
						}
						known++
						if m.Certainty == machine.Certain && !slices.Contains(acked[who], uint16(m.Sequence)) {
							t.Errorf("%s from tenth %d: message %d of %s is acked, certain, and its log does not say so", path, tenth,
								m.Sequence, who)
						}
					}
				}
			}
		}
	}
	if cuts < 12 || narrowed < cuts || known < 100 {
		t.Errorf("%d cuts, %d of them narrowed to Pytide, %d messages acked: too few", cuts, narrowed, known)
	}
}

package analyze

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// loopTracker follows connections whose client is A. A datagram says how each ends.
type loopTracker struct {
	testTracker
	ending machine.Ending
}

func (t *loopTracker) Observe(d *machine.Datagram, out *machine.Effects) {
	t.testTracker.Observe(d, out)
	if d.Bytes[1] == 'E' {
		t.ending = machine.Ending(d.Bytes[2])
	}
}

func (t *loopTracker) Learned() (f machine.Facts) {
	f.Opened, f.Ending, f.Client[machine.A] = true, t.ending, true
	return f
}

func (t *loopTracker) Clone() machine.Tracker { c := *t; return &c }

func loopSession() *Session {
	protocol := *testProtocol
	protocol.NewTracker = func(*dissect.Config) machine.Tracker { return &loopTracker{} }
	return NewSession(Options{Registry: dissect.NewRegistry(&protocol)})
}

// connect plays one connection: packets of both sides for a time, and its ending.
func connect(q *quoter, from netip.AddrPort, lasts time.Duration, ending machine.Ending) {
	const steps = 10
	for i := range steps {
		q.datagram(from, hostB, 0, 0, mark('.', 2*i))
		q.datagram(hostB, from, 0, 0, mark('.', 2*i))
		q.at = q.at.Add(lasts / steps)
	}
	q.datagram(from, hostB, 0, 0, mark('E', int(ending)))
}

// loops returns the findings of loops.
func loops(s *Session) (list []*Finding, text string) {
	var b strings.Builder
	for _, f := range s.Flows() {
		for _, x := range f.Findings() {
			if x.Rule == reconnectLoop {
				list = append(list, x)
				fmt.Fprintf(&b, "flow %d %v %v %d: %s", f.ID, x.Side, x.Certainty, x.Count, x.Message())
			}
		}
	}
	return list, b.String()
}

// TestReconnectLoop: young connections in a row are one finding.
func TestReconnectLoop(t *testing.T) {
	port := func(n int) netip.AddrPort { return netip.AddrPortFrom(hostA.Addr(), uint16(5000+n)) }
	type step struct {
		port   int
		wait   time.Duration
		lasts  time.Duration
		ending machine.Ending
	}
	same := func(n int, wait, lasts time.Duration, e machine.Ending) (list []step) {
		for i := range n {
			list = append(list, step{i, wait, lasts, e})
		}
		return list
	}
	const s = time.Second
	for _, c := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"three that are denied", same(3, 2*s, s, machine.EndingDenied), "flow 3 a likely 3: 3 connections within 7.0 s, " +
			"none longer than 30 s; most of them ended with: denied"},
		{"seven timeouts", same(7, 5*s, 10*s, machine.EndingTimeout), "flow 3 a likely 7: 7 connections within 100.0 s, " +
			"none longer than 30 s; most of them ended with: timeout"},
		{"twice", same(2, s, s, machine.EndingDenied), ""},
		{"long ones", same(5, s, 31*s, machine.EndingDisconnect), ""},
		{"seldom", same(5, 61*s, s, machine.EndingDisconnect), ""},
		{
			"a long one in between", append(same(2, s, s, machine.EndingTimeout),
				append([]step{{9, s, 60 * s, machine.EndingTimeout}}, same(2, s, s, machine.EndingTimeout)...)...), "",
		},
		{
			"no word about the ends", same(4, s, 3*s, machine.EndingUnknown), // the last one may go on
			"flow 4 a likely 3: 3 connections within 11.0 s, none longer than 30 s; most of them ended with: unknown",
		},
		{"no word about three, the last of which may go on", same(3, s, 3*s, machine.EndingUnknown), ""},
		{
			"from one port", []step{
				{0, 0, s, machine.EndingDenied},
				{0, 2 * s, s, machine.EndingTimeout},
				{0, 2 * s, s, machine.EndingDenied},
			}, "", // the protocol says where a session begins: the test's does not
		},
		{
			"ends of several kinds", []step{
				{0, 0, s, machine.EndingDenied},
				{1, 2 * s, s, machine.EndingUnanswered},
				{2, 2 * s, s, machine.EndingUnanswered},
			}, "flow 3 a likely 3: 3 connections within 7.0 s, none longer than 30 s; most of them ended with: no answer",
		},
	} {
		session := loopSession()
		q := quoter{session: session}
		for i, x := range c.steps {
			if i > 0 {
				q.at = q.at.Add(x.wait)
			}
			connect(&q, port(x.port), x.lasts, x.ending)
		}
		session.Finish()
		list, got := loops(session)
		if got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
		for _, x := range list {
			if int(x.Count) != len(x.Refs) || x.Refs[0].Frame() != 1 {
				t.Errorf("%s: frames %v", c.name, x.Refs)
			}
		}
	}
}

// TestReconnectCrowd: players who share an address are no loop. If one of them seems to make a
// loop all the same, that is only possible.
func TestReconnectCrowd(t *testing.T) {
	session := loopSession()
	q := quoter{session: session}
	for i := range 10 * 5 {
		from := netip.AddrPortFrom(hostA.Addr(), uint16(5000+i/10%5))
		q.datagram(from, hostB, 0, 0, mark('.', 2*i))
		q.datagram(hostB, from, 0, 0, mark('.', 2*i))
		if i%10 == 9 && i >= 10 {
			q.datagram(netip.AddrPortFrom(hostA.Addr(), uint16(5000+i/10%5-1)), hostB, 0, 0, mark('E', 3)) // the one before
		}
		q.at = q.at.Add(100 * time.Millisecond)
	}
	session.Finish()
	if _, got := loops(session); got != "" {
		t.Errorf("players at a time: %s", got)
	}
	session = loopSession()
	q = quoter{session: session}
	for i := range 6 {
		connect(&q, netip.AddrPortFrom(hostA.Addr(), uint16(5000+i)), time.Second, machine.EndingDenied)
		if i == 1 {
			q.at = q.at.Add(-time.Second)
		}
	}
	session.Finish()
	if list, got := loops(session); len(list) != 1 || list[0].Certainty != machine.Possible {
		t.Errorf("one after the other, and two at a time: %s", got)
	}
}

// TestReconnectMany: each of very many clients has a finding of its own, and captures with hostile
// times have none that cannot be said.
func TestReconnectMany(t *testing.T) {
	const clients = 33_334 // 100,000 flows
	session := loopSession()
	for i := range 3 * clients {
		n := i % clients
		f := &Flow{
			ID: i + 1, Transport: capture.UDP, First: machine.Instant(i) * 1e5, FirstRef: machine.Ref(i + 1),
			origin: endpointKey{lo: uint64(n), port: uint16(5000 + i/clients)}, answer: keyOf(hostB), pace: &[2]pace{},
			ended: &ended{fresh: &machine.Figures{Facts: machine.Facts{
				Opened: true, Client: [2]bool{true}, Ending: machine.EndingUnanswered,
			}}},
		}
		session.flows = append(session.flows, f)
		session.callers.begun(f)
	}
	for _, f := range session.flows {
		session.noteReconnect(f)
	}
	if list, _ := loops(session); len(list) != clients {
		t.Errorf("%d findings for %d clients", len(list), clients)
	}
	session = loopSession()
	q := quoter{session: session}
	for i := range 30 {
		q.at = []machine.Instant{math.MinInt64, math.MaxInt64, 0}[i%3]
		connect(&q, netip.AddrPortFrom(hostA.Addr(), uint16(5000+i)), 0, machine.EndingDenied)
	}
	session.Finish()
	list, _ := loops(session)
	for _, x := range list {
		for _, v := range x.Figures {
			if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("figures %v", x.Figures)
			}
		}
	}
}

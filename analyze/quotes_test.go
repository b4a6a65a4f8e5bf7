package analyze

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
)

// quoter feeds datagrams and ICMP errors that quote them.
type quoter struct {
	session *Session
	frame   uint64
	at      machine.Instant
}

// datagram feeds a datagram with an IP identification and a checksum.
func (q *quoter) datagram(src, dst netip.AddrPort, id uint32, sum uint16, payload []byte) machine.Ref {
	q.frame++
	ref := machine.MakeRef(0, q.frame)
	q.session.Feed(nil, &capture.Packet{
		Ref: ref, At: q.at, Transport: capture.UDP, Src: src, Dst: dst, Payload: payload, Length: len(payload), Fragments: 1,
		IPID: id, Checksum: sum, TTL: 60, Spans: []capture.Span{{Ref: ref, Offset: 42, Length: len(payload)}},
	})
	return ref
}

// icmp feeds an ICMP error.
func (q *quoter) icmp(from netip.Addr, quote capture.Quote) machine.Ref {
	q.frame++
	ref := machine.MakeRef(0, q.frame)
	quote.Protocol = capture.UDP
	q.session.Feed(nil, &capture.Packet{
		Ref: ref, At: q.at, Src: netip.AddrPortFrom(from, 0), Dst: netip.AddrPortFrom(quote.Src.Addr(), 0), Quote: &quote,
	})
	return ref
}

func quoteOf(reason capture.Reason, id uint32, sum uint16, length int, payload string) capture.Quote {
	return capture.Quote{
		Reason: reason, Src: hostA, Dst: hostB, IPID: id, Checksum: sum, Length: length, Size: length + 28,
		Payload: []byte(payload),
	}
}

// TestQuoteFinds ties ICMP errors to datagrams by each of the marks that a quote can have.
func TestQuoteFinds(t *testing.T) {
	router := netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		name    string
		quote   capture.Quote
		about   uint64 // frame; 0 for none
		certain machine.Certainty
	}{
		{"identification", quoteOf(capture.ReasonPort, 7, 0, 4, ""), 7, machine.Certain},
		{"checksum", quoteOf(capture.ReasonPort, 0, 1003, 4, ""), 3, machine.Certain},
		{"payload", quoteOf(capture.ReasonPort, 0, 0, 4, "T.\x05\x00"), 5, machine.Certain},
		{"payload alone", quoteOf(capture.ReasonPort, 0, 0, -1, "T.\x06\x00"), 6, machine.Certain},
		{"length alone", quoteOf(capture.ReasonPort, 0, 0, 4, ""), 9, machine.Likely},
		{"three bytes of payload", quoteOf(capture.ReasonPort, 0, 0, 4, "T.\x05"), 5, machine.Likely},
		{"nothing but ports", quoteOf(capture.ReasonPort, 0, 0, -1, ""), 0, machine.Possible},
		{"another identification", quoteOf(capture.ReasonPort, 77, 0, 4, ""), 0, machine.Possible},
		{"another checksum", quoteOf(capture.ReasonPort, 0, 77, 4, ""), 0, machine.Possible},
		{"another payload", quoteOf(capture.ReasonPort, 7, 1007, 4, "T.xx"), 0, machine.Possible},
		{"another length", quoteOf(capture.ReasonPort, 7, 1007, 5, ""), 0, machine.Possible},
		{"of the other side", capture.Quote{Src: hostB, Dst: hostA, Length: 4, IPID: 7}, 0, machine.Possible},
	} {
		var got *Quoted
		s := NewSession(Options{Registry: dissect.NewRegistry(testProtocol), Sink: func(r *Record) {
			if r.Packet != nil && r.Packet.Quote != nil {
				x := *r.Quoted
				if got = &x; len(r.Anomalies) != 1 || r.Flow != nil {
					t.Errorf("%s: anomalies %v of flow %v", c.name, r.Anomalies, r.Flow)
				}
			}
		}})
		q := quoter{session: s}
		for i := 1; i < 10; i++ {
			q.datagram(hostA, hostB, uint32(i), uint16(1000+i), mark('.', i))
		}
		for i := range 5 {
			q.datagram(hostB, hostA, uint32(90+i), 5, mark('.', i))
			q.datagram(hostA, netip.MustParseAddrPort("10.0.0.2:9"), uint32(i), uint16(1000+i), mark('.', i))
		}
		q.icmp(hostB.Addr(), c.quote)
		if got == nil || got.Ref.Frame() != c.about || got.Certainty != c.certain || got.Flow != s.Flows()[0] {
			t.Errorf("%s: %+v, expected frame %d, %v", c.name, got, c.about, c.certain)
			continue
		}
		if want := c.quote.Dst == hostB; got.Peer != want {
			t.Errorf("%s: said by the peer: %v", c.name, got.Peer)
		}
		if side := machine.Side(0); c.quote.Src == hostA && got.Side != side {
			t.Errorf("%s: of side %v", c.name, got.Side)
		}
	}
	s := NewSession(Options{Registry: dissect.NewRegistry(testProtocol)})
	q := quoter{session: s}
	q.datagram(hostA, hostB, 1, 1, mark('.', 1))
	q.icmp(router, quoteOf(capture.ReasonHost, 1, 1, 4, ""))
	q.icmp(router, capture.Quote{Reason: capture.ReasonPort, Src: hostC, Dst: hostD})
	if got := s.Quotes(); got != (Quotes{Errors: 2, Unknown: 1}) {
		t.Errorf("%+v", got)
	}
	l := s.Flows()[0].Findings()
	if len(l) != 1 || l[0].Rule != icmpUnreachable || l[0].Message() != `1 ICMP error, such as "host unreachable"` {
		t.Errorf("findings %v", l[0].Message())
	}
}

// TestSentLog compares the chains of the ring with a list of everything that was sent.
func TestSentLog(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var l sentLog
	flows := make([]*Flow, 40)
	for i := range flows {
		flows[i] = &Flow{ID: i}
	}
	type sent struct {
		flow int
		ref  machine.Ref
	}
	var all []sent
	for n := range 3*sentRing + 100 {
		i := r.IntN(len(flows))
		if n%5 > 0 {
			i = 0 // a busy flow, which leaves the others behind
		} else if i == 7 && n > sentRing/2 {
			i = 8 // one that ended long ago
		}
		p := &capture.Packet{Ref: machine.Ref(n + 1), Length: n % 60000}
		l.note(flows[i], machine.Side(n&1), p)
		all = append(all, sent{i, p.Ref})
		if n%997 != 0 {
			continue
		}
		for i, f := range flows {
			var want, got []machine.Ref
			for j := len(all) - 1; j >= max(0, len(all)-sentRing) && len(want) < sentSteps; j-- {
				if all[j].flow == i {
					want = append(want, all[j].ref)
				}
			}
			l.each(f, func(x *sentDatagram) bool {
				if int(x.length) != int(x.ref-1)%60000 {
					t.Fatalf("datagram %d has %d bytes", x.ref, x.length)
				}
				got = append(got, x.ref)
				return true
			})
			if !slices.Equal(got, want) {
				t.Fatalf("after %d datagrams, flow %d has %v, expected %v", n+1, i, got, want)
			}
		}
	}
	p := &capture.Packet{Payload: []byte("payload!")}
	if n := testing.AllocsPerRun(1000, func() { l.note(flows[3], machine.A, p) }); n != 0 {
		t.Errorf("%v allocations for a datagram", n)
	}
}

// TestQuoteHeads: a head agrees with the bytes that it was made of.
func TestQuoteHeads(t *testing.T) {
	for n := range 12 {
		b := []byte("abcdefghijkl")[:n]
		var want [8]byte
		copy(want[:], b)
		if got := head(b); got != binary.BigEndian.Uint64(want[:]) {
			t.Errorf("%q: %x", b, got)
		}
	}
}

// fatesTracker tells the fates of A's datagrams at the next one of B. Those above 1,000 bytes
// are lost, and so is each tenth. The others are acked.
type fatesTracker struct {
	testTracker
	open []machine.Event
	all  bool // every tenth is lost, whatever its size
}

func (t *fatesTracker) Observe(d *machine.Datagram, out *machine.Effects) {
	if d.From == machine.A {
		e := machine.Event{Kind: machine.EventAcked, About: d.Ref, Ref: d.Ref, At: d.At}
		if n := binary.LittleEndian.Uint16(d.Bytes[2:]); d.Length > 1000 && !t.all || n%10 == 9 {
			e.Kind = machine.EventLost
		}
		t.open = append(t.open, e)
		return
	}
	if !out.NoEvents {
		out.Events = append(out.Events, t.open...)
	}
	t.open = t.open[:0]
}

func (t *fatesTracker) Finish(*machine.Effects) {}

func (t *fatesTracker) Clone() machine.Tracker { c := *t; return &c }

// TestLargeLost: large datagrams die after an ICMP error that names an MTU, or they do not.
func TestLargeLost(t *testing.T) {
	for _, c := range []struct {
		name string
		mtu  int
		all  bool
		want string
	}{
		{
			"large ones die", 1028, false,
			"100% of the packets with more than 1000 bytes of payload were lost, and 13% of the others",
		},
		{"all alike", 1028, true, ""},
		{"no MTU", 0, false, ""},
		{"an MTU that would have done", 1500, false, ""},
		{"an absurd MTU", 20, false, ""},
	} {
		protocol := *testProtocol
		protocol.NewTracker = func(*dissect.Config) machine.Tracker { return &fatesTracker{all: c.all} }
		events := 0
		s := NewSession(Options{
			Registry: dissect.NewRegistry(&protocol), NoEvents: true,
			Sink: func(r *Record) { events += len(r.Events) },
		})
		q := quoter{session: s}
		for i := range 300 {
			q.at += 1e6
			payload := mark('.', i)
			if i%4 == 0 {
				payload = append(payload, make([]byte, 1100)...)
			}
			q.datagram(hostA, hostB, uint32(i+1), 0, payload)
			q.datagram(hostB, hostA, 0, 0, mark('.', i))
			if i == 100 {
				quote := quoteOf(capture.ReasonSize, uint32(i+1), 0, 1104, "")
				quote.MTU = c.mtu
				q.icmp(hostB.Addr(), quote)
			}
		}
		s.Finish()
		got := ""
		for _, x := range s.Flows()[0].Findings() {
			switch x.Rule {
			case largeLost:
				got = x.Message()
			case icmpMTU:
				if x.Certainty != machine.Certain || x.Abouts[0].Frame() != 201 {
					t.Errorf("%s: %v about %v", c.name, x.Certainty, x.Abouts)
				}
			}
		}
		if got != c.want || events > 0 {
			t.Errorf("%s: %q, expected %q; %d events for a sink that wants none", c.name, got, c.want, events)
		}
	}
}

// TestRefused: errors at the end of a connection are a note. They are a warning where the peer
// goes on for a second, whether or not more errors come.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		errors []int // ticks of 20 ms after the first error
		after  int   // ticks for which the peer goes on
		want   string
	}{
		{"at the end", []int{0, 1}, 10, ""},
		{"at the end, just", []int{0}, 49, ""},
		{"without further errors", []int{0, 1}, 60, "the peer went on for 1.2 s after the first of 2 ICMP errors"},
		{"with errors", []int{0, 55, 110}, 120, "the peer went on for 2.2 s after the first of 3 ICMP errors"},
	} {
		s := NewSession(Options{Registry: dissect.NewRegistry(testProtocol)})
		q := quoter{session: s}
		for tick := range 100 + c.after + 1 {
			q.at = machine.Instant(tick) * 2e7
			q.datagram(hostA, hostB, uint32(tick+1), 0, mark('.', tick))
			switch n := tick - 100; {
			case n < 0:
				q.datagram(hostB, hostA, uint32(tick+1), 0, mark('.', tick))
			case slices.Contains(c.errors, n):
				q.icmp(hostB.Addr(), quoteOf(capture.ReasonPort, uint32(tick+1), 0, 4, ""))
			}
		}
		s.Finish()
		got, closed := "", uint64(0)
		for _, x := range s.Flows()[0].Findings() {
			switch x.Rule {
			case icmpRefused:
				got, _, _ = strings.Cut(x.Message(), ", such as")
				if x.Side != machine.B || x.Certainty != machine.Certain {
					t.Errorf("%s: %v of %v", c.name, x.Certainty, x.Side)
				}
			case icmpClosed:
				closed = x.Count
			}
		}
		if got != c.want || closed != uint64(len(c.errors)) {
			t.Errorf("%s: %q and %d errors, expected %q", c.name, got, closed, c.want)
		}
	}
}

// TestTapMoves: a router's error about a captured datagram proves that the tap is not where the
// datagram was to go.
func TestTapMoves(t *testing.T) {
	for _, c := range []struct{ was, want machine.Vantage }{
		{machine.VantageBoth, machine.VantageA},
		{machine.VantageB, machine.VantageBetween},
		{machine.VantageA, machine.VantageA},
		{machine.VantageUnknown, machine.VantageUnknown},
	} {
		f := &Flow{rare: &rare{errors: &flowErrors{died: [2]machine.Ref{machine.B: 7}}}}
		facts := machine.Facts{Vantage: c.was}
		f.moveTap(&facts)
		if facts.Vantage != c.want || (c.was != c.want) != strings.Contains(facts.VantageReason, "frame 7") {
			t.Errorf("%v became %v: %s", c.was, facts.Vantage, facts.VantageReason)
		}
	}
}

// TestSocketPoisoned: an ICMP error about one client, and what its server's other clients see.
func TestSocketPoisoned(t *testing.T) {
	server := netip.MustParseAddrPort("10.0.0.2:2000")
	client := func(i int) netip.AddrPort { return netip.AddrPortFrom(hostA.Addr(), uint16(1000+i)) }
	for _, c := range []struct {
		name    string
		clients int
		stop    time.Duration // after the error; 0 for never
		one     bool          // one client is served on
		gone    bool          // the clients end too
		forged  bool
		want    machine.Certainty // unknown for no finding
	}{
		{name: "four clients", clients: 5, stop: 1, want: machine.Likely},
		{name: "two clients", clients: 3, stop: 1, want: machine.Possible},
		{name: "forged", clients: 5, stop: 1, forged: true, want: machine.Possible},
		{name: "one client", clients: 2, stop: 1},
		{name: "none stops", clients: 5},
		{name: "one goes on", clients: 5, stop: 1, one: true},
		{name: "all end", clients: 5, stop: 1, gone: true},
		{name: "later", clients: 5, stop: time.Second},
	} {
		s := NewSession(Options{Registry: dissect.NewRegistry(testProtocol)})
		q := quoter{session: s}
		const died = 3 * time.Second
		for tick := range 300 { // 6 s
			at := time.Duration(tick) * 20 * time.Millisecond
			for i := range c.clients {
				q.at = machine.Instant(at) + machine.Instant(i)*1e5
				if i > 0 && (!c.gone || at < died) || at < died-time.Second {
					q.datagram(client(i), server, uint32(tick), 0, mark('.', tick))
				}
				stopped := c.stop > 0 && at >= died+c.stop && (!c.one || i != 1)
				if !stopped {
					q.datagram(server, client(i), uint32(tick+1), 0, mark('.', tick))
				}
			}
			if at == died {
				id := uint32(tick + 1)
				if c.forged {
					id = 60000
				}
				q.icmp(hostA.Addr(), capture.Quote{Reason: capture.ReasonPort, Src: server, Dst: client(0), IPID: id, Length: 4})
			}
		}
		s.Finish()
		got := map[string]int{}
		for i, f := range s.Flows() {
			for _, x := range f.Findings() {
				if x.Rule == socketPoisoned {
					got[x.Message()]++
					if i == 0 || x.Side != machine.B || x.Certainty != c.want {
						t.Errorf("%s: flow %d, side %v, %v", c.name, f.ID, x.Side, x.Certainty)
					}
				}
			}
		}
		want := map[string]int{}
		if c.want != machine.Unknown {
			text := fmt.Sprintf("%d flows of its socket fell silent at an ICMP error about flow 1", c.clients-1)
			want[text] = c.clients - 1
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, expected %v", c.name, got, want)
		}
	}
}

// TestPoisonIsBounded: ICMP errors about many sockets cost work in proportion to the capture.
func TestPoisonIsBounded(t *testing.T) {
	s := NewSession(Options{Registry: dissect.NewRegistry(testProtocol)})
	q := quoter{session: s}
	for i := range 2000 {
		src := netip.AddrPortFrom(hostA.Addr(), uint16(i))
		q.at += machine.Instant(poisonWait)
		q.datagram(src, hostB, uint32(i), 0, mark('.', i))
		q.icmp(hostB.Addr(), capture.Quote{Reason: capture.ReasonPort, Src: src, Dst: hostB, Length: 4})
		if len(s.poison.watches) > poisonWatches || s.poison.looked > s.n {
			t.Fatalf("%d watches", len(s.poison.watches))
		}
	}
	if s.poison.looked == 0 {
		t.Error("no watch ended")
	}
}

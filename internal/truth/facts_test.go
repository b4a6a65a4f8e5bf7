package truth

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// event is the part of a line of `events --json` that the tests check.
type event struct {
	Protocol  string    `json:"protocol"`
	Flow      int       `json:"flow"`
	Frame     int       `json:"frame"`
	Time      time.Time `json:"time"`
	Addr      addrPort  `json:"addr"`
	Peer      addrPort  `json:"peer"`
	Event     string    `json:"event"`
	Sequence  int       `json:"sequence"`
	Certainty string    `json:"certainty"`
}

// TestFacts: all facts of the endpoint at the tap are found in time, and no
// others. They are packets received, acked, and refused as duplicate or stale.
// No claim about the far endpoint contradicts its log.
func TestFacts(t *testing.T) {
	program := testenv.Ackscope(t)
	for i, c := range captures(t) {
		if i%3 > 0 && !testenv.Whole() {
			continue
		}
		t.Run(c.name+"."+c.tap, func(t *testing.T) {
			c.span(t)
			events, err := decode[event](testenv.Output(t, program, "events", "--json", c.path))
			if err != nil {
				t.Fatal(err)
			}
			r := readRun(t, c.name)
			for _, fault := range checkFacts(r, &c, events) {
				t.Error(fault)
			}
		})
	}
}

// TestFactsCatches changes the program's output for a run, and checks that the
// oracle finds each fault.
func TestFactsCatches(t *testing.T) {
	program := testenv.Ackscope(t)
	c := captured{path: testenv.Capture(t, "reliable-dup10.server.pcap.gz"), name: "reliable-dup10", tap: "server"}
	c.span(t)
	good, err := decode[event](testenv.Output(t, program, "events", "--json", c.path))
	if err != nil {
		t.Fatal(err)
	}
	r := readRun(t, c.name)
	if faults := checkFacts(r, &c, good); len(faults) > 0 {
		t.Fatalf("the run does not hold as it is: %s", faults[0])
	}
	near := r.server
	pick := func(events []event, kind string, at func(netip.AddrPort) bool) int {
		i, n := 0, 0
		for j, e := range events {
			// The version of reliable is open, so its duplicates are likely at most.
			sure := e.Certainty == "certain" || kind == "duplicate"
			if e.Event == kind && at(e.Addr.AddrPort) && sure {
				if n++; n == 200 || kind == "duplicate" && n == 20 {
					i = j
				}
			}
		}
		return i
	}
	isNear := func(a netip.AddrPort) bool { return a == near }
	isFar := func(a netip.AddrPort) bool { return a != near }
	for _, fault := range []struct {
		name   string
		plant  func([]event) []event
		expect string
	}{
		{"a receipt left out", func(es []event) []event {
			i := pick(es, "received", isNear)
			return slices.Delete(es, i, i+1)
		}, "received"},
		{"a duplicate taken for a receipt", func(es []event) []event {
			i := pick(es, "duplicate", isNear)
			es[i].Event, es[i].Certainty = "received", "certain"
			return es
		}, "duplicate"},
		{"an ack of the packet before", func(es []event) []event {
			es[pick(es, "acked", isNear)].Sequence += 5000
			return es
		}, "acked"},
		{"an ack a second late", func(es []event) []event {
			i := pick(es, "acked", isNear)
			es[i].Time = es[i].Time.Add(time.Second)
			return es
		}, "off in time"},
		{"a far receipt of what was lost", func(es []event) []event {
			got := map[int]bool{}
			for _, l := range r.by[who{"client", 0, "received"}] {
				got[l.Seq] = true
			}
			for _, l := range r.by[who{"server", 0, "sent"}] {
				if !got[l.Seq] {
					es[pick(es, "received", isFar)].Sequence = l.Seq
					return es
				}
			}
			return nil
		}, "contradicted"},
		{"a far receipt before the fact", func(es []event) []event {
			i := pick(es, "received", isFar)
			es[i].Time = es[i].Time.Add(-time.Second)
			return es
		}, "before the fact"},
		{"a flow left out", func([]event) []event { return nil }, "no flow"},
	} {
		planted := fault.plant(slices.Clone(good))
		faults := checkFacts(r, &c, planted)
		if len(faults) == 0 || !strings.Contains(strings.Join(faults, "\n"), fault.expect) {
			t.Errorf("%s is not caught: %q, expected one that says %q", fault.name, faults, fault.expect)
		}
	}
}

// fact is one event of one packet, according to the log or to ackscope.
type fact struct {
	seq       int
	t         float64
	certainty string // ackscope's
}

// checkFacts returns one sentence for each kind of wrong fact.
func checkFacts(r *run, c *captured, events []event) (faults []string) {
	flows := map[int]map[netip.AddrPort]bool{}
	for _, e := range events {
		if e.Protocol != "gaffer" {
			continue
		}
		if flows[e.Flow] == nil {
			flows[e.Flow] = map[netip.AddrPort]bool{}
		}
		flows[e.Flow][e.Addr.AddrPort] = true
		if e.Peer.IsValid() {
			flows[e.Flow][e.Peer.AddrPort] = true
		}
	}
	found := map[who]bool{}
	for flow, ends := range flows {
		var pair []netip.AddrPort
		for a := range ends {
			pair = append(pair, a)
		}
		if len(pair) != 2 {
			faults = append(faults, fmt.Sprintf("flow %d: its events name %d addresses, expected 2", flow, len(pair)))
			continue
		}
		endpoint, conn, at, ok := r.near(c.tap, pair[0], pair[1])
		if !ok {
			faults = append(faults, fmt.Sprintf("flow %d between %v: no endpoint of the run", flow, pair))
			continue
		}
		found[who{endpoint: endpoint, conn: conn}] = true
		here := slices.DeleteFunc(slices.Clone(events), func(e event) bool {
			return e.Flow != flow ||
				e.Protocol != "gaffer"
		})
		n := newNear(r, c, endpoint, conn)
		for _, kind := range []string{"received", "acked", "duplicate", "stale"} {
			if fault := n.check(kind, factsOf(here, kind, func(a netip.AddrPort) bool { return a == at })); fault != "" {
				faults = append(faults, fault)
			}
		}
		for _, kind := range []string{"received", "acked"} {
			if fault := n.checkFar(kind, factsOf(here, kind, func(a netip.AddrPort) bool { return a != at })); fault != "" {
				faults = append(faults, fault)
			}
		}
	}
	for k, lines := range r.by {
		if k.event == "received" && len(lines) > 0 && (k.endpoint == c.tap || r.loopback()) &&
			!found[who{endpoint: k.endpoint, conn: k.conn}] {
			faults = append(faults, fmt.Sprintf("%s conn %d: no flow of it in the events", k.endpoint, k.conn))
		}
	}
	sort.Strings(faults)
	return faults
}

func factsOf(events []event, kind string, at func(netip.AddrPort) bool) (out []fact) {
	for _, e := range events {
		if e.Event == kind && at(e.Addr.AddrPort) {
			out = append(out, fact{e.Sequence, seconds(e.Time), e.Certainty})
		}
	}
	return out
}

// near has the log of the endpoint at the tap, with the times that it allows.
type near struct {
	*run
	*captured
	endpoint string
	conn     int
	sent     map[int]bool
	frames   []float64 // when it sent: each frame reads, then sends
	over     float64   // when it stopped
	doubtful map[float64]bool
}

func newNear(r *run, c *captured, endpoint string, conn int) *near {
	n := &near{
		run: r, captured: c, endpoint: endpoint, conn: conn, sent: map[int]bool{}, over: c.last,
		doubtful: map[float64]bool{},
	}
	for _, l := range n.log("sent") {
		n.sent[l.Seq] = true
		n.frames = append(n.frames, l.T)
	}
	slices.Sort(n.frames)
	if final := n.log("final"); len(final) > 0 {
		n.over = final[len(final)-1].T
	}
	return n
}

func (n *near) log(event string) []line { return n.by[who{n.endpoint, n.conn, event}] }

// late returns how much later the log may be than the frame at the tap. The log
// has the time at which the application read the packet. That is its next
// frame, at most 1/pps later, or more if the machine delayed a frame. The
// application's sends show its frames. A send within 2 ms of the datagram
// belongs to a frame that had read before.
func (n *near) late(t float64) float64 {
	usual := 0.02 + 1.5/n.pps(n.endpoint)
	i, _ := slices.BinarySearch(n.frames, math.Nextafter(t, math.Inf(1)))
	if i < len(n.frames) && n.frames[i]-t < 0.002 {
		i++
	}
	if i < len(n.frames) {
		return max(usual, n.frames[i]-t+0.005)
	}
	return usual
}

// refused reports whether only the application could know a fact. It refused
// the packet, and none of its later headers covered the packet. So nothing on
// the wire distinguishes a refusal from a receipt. Such a claim must be graded
// less than certain.
func (n *near) refused(f fact) bool {
	if f.certainty == "certain" {
		return false
	}
	for _, l := range n.log("rejected") {
		if l.Seq != f.seq || l.T-f.t < -0.005 || l.T-f.t > n.late(f.t) {
			continue
		}
		covered := slices.ContainsFunc(n.log("sent"), func(h line) bool {
			return h.T > l.T && (h.Ack-f.seq)&0xffff < 32
		})
		return !covered
	}
	return false
}

func (n *near) check(kind string, got []fact) string {
	if (kind == "duplicate" || kind == "stale") && strings.HasPrefix(n.run.name, "oldreliable") {
		return "" // it has neither check: both are a `received`
	}
	var want []fact
	for _, l := range n.log(kind) {
		if l.FragmentID == nil {
			want = append(want, fact{seq: l.Seq, t: l.T})
		}
	}
	if kind == "acked" {
		// If the capture begins in the middle, an ack may name a packet from before
		// the log and the capture.
		before := func(f fact) bool { return !n.sent[f.seq] }
		want, got = slices.DeleteFunc(want, before), slices.DeleteFunc(got, before)
	}
	missing, extra, off := n.match(want, got)

	// tcpdump was stopped before it had written all frames. The file lacks what
	// the application read after its last frame.
	missing = slices.DeleteFunc(missing, func(f fact) bool { return f.t > n.last+n.late(n.last) })
	// The endpoint reads nothing after it has stopped, and the capture cannot
	// show that.
	extra = slices.DeleteFunc(extra, func(f fact) bool { return f.t > n.over-1/n.pps(n.endpoint) })
	switch kind {
	case "received":
		for _, f := range extra {
			n.doubtful[f.t] = n.doubtful[f.t] || n.refused(f)
		}
		extra = slices.DeleteFunc(extra, n.refused)
	case "acked": // acks that only a refused packet carried
		doubtful := func(f fact) bool { return n.doubtful[f.t] && f.certainty != "certain" }
		extra, off = slices.DeleteFunc(extra, doubtful), slices.DeleteFunc(off, doubtful)
	}
	if n.liar && len(n.log("logging_starts")) > 0 {
		// The buffer never clears, and the capture begins in the middle. For an
		// entry from one wrap before, the endpoint logs `duplicate`. The capture
		// sees the packet for the first time.
		switch kind {
		case "received":
			repeated := map[int]bool{}
			for _, l := range n.log("duplicate") {
				repeated[l.Seq] = true
			}
			extra = slices.DeleteFunc(extra, func(f fact) bool { return repeated[f.seq] })
		case "duplicate":
			missing = nil
		}
	}
	if len(missing)+len(extra)+len(off) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (near) conn %d %s: %d in the log; missing %d %s; extra %d %s; off in time %d %s",
		n.endpoint, n.conn, kind, len(want), len(missing), some(missing), len(extra), some(extra), len(off), some(off))
}

// match pairs the facts of one sequence by time.
func (n *near) match(want, got []fact) (missing, extra, off []fact) {
	bySeq := func(facts []fact) map[int][]fact {
		m := map[int][]fact{}
		for _, f := range facts {
			m[f.seq] = append(m[f.seq], f)
		}
		for _, fs := range m {
			slices.SortFunc(fs, func(a, b fact) int { return cmp(a.t, b.t) })
		}
		return m
	}
	w, g := bySeq(want), bySeq(got)
	for seq, ws := range w {
		gs := g[seq]
		for i := range ws {
			switch {
			case i >= len(gs):
				missing = append(missing, ws[i])
			// The kernel stamps a frame before any program can log it. A difference
			// above 5 ms is another frame.
			case ws[i].t-gs[i].t < -0.005 || ws[i].t-gs[i].t > n.late(gs[i].t):
				off = append(off, gs[i])
			}
		}
	}
	for seq, gs := range g {
		if len(gs) > len(w[seq]) {
			extra = append(extra, gs[len(w[seq]):]...)
		}
	}
	return missing, extra, off
}

// checkFar checks that the far log does not deny what is graded certain. No
// fact may be shown by a frame older than the fact. What the near log proves
// must be found.
func (n *near) checkFar(kind string, got []fact) string {
	far, conn := other(n.endpoint), n.farConn(n.endpoint, n.conn)
	when := map[int]float64{}
	for _, l := range n.by[who{far, conn, kind}] {
		if _, seen := when[l.Seq]; !seen {
			when[l.Seq] = l.T
		}
	}
	scope := n.sent
	if kind == "acked" {
		scope = map[int]bool{}
		for _, l := range n.by[who{far, conn, "sent"}] {
			scope[l.Seq] = true
		}
	}
	var denied, early, absent []fact
	have := map[int]bool{}
	for _, f := range got {
		if f.certainty != "certain" || !scope[f.seq] {
			continue
		}
		have[f.seq] = true
		if at, logged := when[f.seq]; !logged {
			denied = append(denied, f)
		} else if at-f.t > 0.005 {
			early = append(early, f)
		}
	}
	for seq := range n.proved(kind, when) {
		if !have[seq] {
			absent = append(absent, fact{seq: seq})
		}
	}
	if len(denied)+len(early)+len(absent) == 0 {
		return ""
	}
	return fmt.Sprintf("%s (far) %s: contradicted %d %s; before the fact %d %s; proved by the near log but not "+
		"reported as certain %d %s",
		far, kind, len(denied), some(denied), len(early), some(early), len(absent), some(absent))
}

// proved returns what the near log alone proves about the far endpoint. It
// received the packets of which the near end got acks, and it read the acks in
// those packets. If the endpoint's acks are wrong, they prove nothing.
func (n *near) proved(kind string, when map[int]float64) map[int]bool {
	out := map[int]bool{}
	if n.liar {
		return out
	}
	learned := map[int]bool{}
	for _, l := range n.log("acked") {
		if n.sent[l.Seq] && n.first <= l.T && l.T <= n.last {
			learned[l.Seq] = true
		}
	}
	if kind == "received" {
		return learned
	}
	received := map[int]bool{}
	for _, l := range n.log("received") {
		received[l.Seq] = true
	}
	for _, l := range n.log("sent") {
		if !learned[l.Seq] {
			continue
		}
		bits, err := strconv.ParseUint(l.AckBits, 16, 32)
		if err != nil {
			continue
		}
		for i := range 32 {
			seq := (l.Ack - i) & 0xffff
			if _, known := when[seq]; known && bits>>i&1 == 1 && received[seq] {
				out[seq] = true
			}
		}
	}
	return out
}

func cmp(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func some(facts []fact) string {
	var b strings.Builder
	for i, f := range facts {
		if i == 6 {
			b.WriteString(" ...")
			break
		}
		fmt.Fprintf(&b, " %d", f.seq)
	}
	return "[" + strings.TrimSpace(b.String()) + "]"
}

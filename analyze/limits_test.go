package analyze

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

// peer returns the nth of many addresses.
func peer(n int) netip.AddrPort { return netip.AddrPortFrom(hostB.Addr(), uint16(n+1)) }

// mixed sends what a server sees: games that are answered and continue,
// strangers that are not answered, and conversations that no protocol explains.
// Packets are a millisecond apart.
func mixed(f *feeder) {
	for n := range 3000 {
		game := peer(n % 7)
		f.send(game, hostA, mark('.', n))
		f.send(hostA, game, mark('.', n))
		f.send(peer(1000+n), hostA, []byte("stranger"))
		f.send(peer(500+n%40), hostA, []byte("something else"))
		f.send(hostA, peer(500+n%40), []byte("answered"))
	}
}

// TestLimitsKeepTotals: for every limit, the removed and the remembered flows
// together make up the total. The games continue, so they are never removed.
func TestLimitsKeepTotals(t *testing.T) {
	all, _ := run(Options{}, mixed)
	want := all.Sum()
	for name, l := range map[string]Limits{
		"flows": {Flows: 100}, "idle": {Idle: 2 * time.Second}, "bytes": {Bytes: 7*64 + 32},
		"everything": {Flows: 60, Idle: time.Second, Bytes: 1 << 10},
	} {
		emitted, most := 0, 0
		s, _ := run(Options{Limits: l, Gone: func(f *Flow, _ Reason) {
			emitted++
			if f.Protocol != nil {
				t.Errorf("%s: flow %d, a game that goes on, was let go", name, f.ID)
			}
		}}, func(f *feeder) {
			mixed(f)
			most = len(f.session.Flows())
		})
		if l.Flows > 0 && most > l.Flows {
			t.Errorf("%s: %d flows are remembered, at most %d were asked for", name, most, l.Flows)
		}
		let := uint64(0)
		for _, r := range Reasons() {
			let += s.LetGo(r)
		}
		if name != "bytes" && (emitted == 0 || uint64(emitted) != let || s.Begun() != let+uint64(len(s.Flows()))) {
			t.Errorf("%s: %d flows began, %d are left, %d were let go, %d told", name, s.Begun(), len(s.Flows()), let, emitted)
		}
		got := s.Sum()
		for p, x := range want {
			y := got[p]
			if y == nil || y.Packets != x.Packets || y.Bytes != x.Bytes || y.Sides != x.Sides || y.Flows < x.Flows ||
				y.Findings[testRule] != x.Findings[testRule] {
				t.Errorf("%s: %+v in all, expected %+v", name, y, x)
			}
		}
	}
}

// TestLimitsLetIdleGo: a silent flow ends within twice the time. Its next
// packet begins a new flow.
func TestLimitsLetIdleGo(t *testing.T) {
	var gone []int
	s, _ := run(Options{Limits: Limits{Idle: time.Second}, Gone: func(f *Flow, why Reason) {
		if why != ReasonIdle {
			t.Errorf("flow %d was let go: %v, expected idle", f.ID, why)
		}
		gone = append(gone, f.ID)
	}}, func(f *feeder) {
		for n := range 10 {
			f.send(hostA, hostB, mark('.', n))
		}
		for n := range 2100 { // 2.1 s of another flow
			f.send(hostC, hostD, mark('.', n))
		}
		f.send(hostA, hostB, mark('.', 11))
	})
	if len(gone) != 1 || gone[0] != 1 {
		t.Fatalf("flows %v were let go, expected the first one", gone)
	}
	if l := s.Flows(); len(l) != 2 || l[0].ID != 2 || l[1].ID != 3 || l[1].A != hostA {
		t.Errorf("flows %v are left, expected 2 and a third between the first one's addresses", l)
	}
}

// TestAnswerIsLookedAt: a flow that was decided early, before its answer came,
// is examined again when the answer comes.
func TestAnswerIsLookedAt(t *testing.T) {
	s, _ := run(Options{}, func(f *feeder) {
		f.session.unansweredRoom = 64 << 10
		f.send(hostA, hostB, mark('.', 0))
		for n := range 2000 {
			f.send(peer(n), hostC, make([]byte, 100))
		}
		if f.session.Flows()[0].Pending() {
			t.Fatal("the flow that came first did not make way: this shows nothing")
		}
		for n := range 30 {
			f.send(hostA, hostB, mark('.', n))
			f.send(hostB, hostA, mark('.', n))
		}
	})
	f := s.Flows()[0]
	if f.Protocol != testProtocol || f.Packets != [2]uint64{31, 30} {
		t.Errorf("flow 1 has %v packets of %v: %s", f.Packets, f.Protocol, f.Verdict.Reason)
	}
	if sum, _ := f.Summary(machine.B); sum.Packets != 30 {
		t.Errorf("%d of 30 answers were followed", sum.Packets)
	}
}

package rebinding

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/show"
)

// moved returns another address for a client: another port of it, or another host.
func moved(client netip.AddrPort, host bool) netip.AddrPort {
	to := netip.AddrPortFrom(client.Addr(), 999)
	switch {
	case host && client.Addr().Is6():
		to = netip.MustParseAddrPort("[2001:db8::7]:999")
	case host:
		to = netip.MustParseAddrPort("198.51.100.7:999")
	}
	return to
}

// unproved are the captures whose packets do not show that the client goes on, and why.
var unproved = map[string]string{
	"article-chunks":    "the series' slices have numbers of their own chunk only",
	"article-connect":   "the handshake ends before the client moves",
	"article-fragments": "the series' fragments carry no acks, and few numbers",
	"upy200_":           "Pytide 2.0 gives all reliable messages one id",
	"t2":                "TCP", "tpy": "TCP",
}

// oneWay are captures in which the client's direction alone shows no protocol, or too few numbers.
var oneWay = []string{
	"u210_rwrap.client", "u21d_gap", "u21n_gap", "upy_gap.server", "u210_midstream.client", "upy_kick", "upy_three",
}

// rivalled are captures in which another client falls silent when the client moves.
var rivalled = []string{"u210_timeout_kill", "u21n_reject"}

func hasPrefix(name string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Every recorded capture of netcode, reliable and Riptide whose client moves is joined, and
// never at certain: no key is given.
func TestCaptures(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(filepath.Dir(testenv.Capture(t, "README.md")), "*.pcap*.gz"))
	if err != nil {
		t.Fatal(err)
	}
	count, left, mute := map[string]map[machine.Certainty]int{}, 0, 0
	for i, path := range paths {
		name := filepath.Base(path)
		skip := false
		for prefix := range unproved {
			skip = skip || strings.HasPrefix(name, prefix)
		}
		list := load(t, path)
		client, sent := busiest(list)
		if skip || sent < 50 || !testenv.Whole() && i%7 != 0 {
			left++
			continue
		}
		for _, deaf := range []bool{false, true} {
			nth := sent / 2
			if hasPrefix(name, rivalled) {
				nth = sent / 3
			}
			to := moved(client, deaf)
			s := analysed(t, plain, move(list, client, to, nth, deaf))
			f := flowOf(s, to)
			switch {
			case f == nil:
				t.Errorf("%s, deaf %v: no flow has the new address", name, deaf)
			case deaf && hasPrefix(name, oneWay) && f.Was == nil:
				mute++
			case f.Was == nil:
				t.Errorf("%s, deaf %v: the client is not joined (%s)", name, deaf, f.Verdict.Reason)
			case f.Was.Addr != client || f.Was.Certainty == machine.Certain || f.Addr(f.Was.Side) != to:
				t.Errorf("%s, deaf %v: joined as %+v", name, deaf, f.Was)
			default:
				of := show.FlowName(f)
				if count[of] == nil {
					count[of] = map[machine.Certainty]int{}
				}
				count[of][f.Was.Certainty]++
			}
		}
	}
	t.Logf("%d captures left out; %d not joined by one direction alone", left, mute)
	for of, n := range count {
		t.Logf("%s: joined: %v", of, n)
	}
}

// SRDP has no recorded captures, so simulated clients move. All are joined, and none at certain.
// A server of SRDP answers every address, so it follows.
func TestSimulatedSRDP(t *testing.T) {
	count := map[machine.Certainty]int{}
	for seed := range testenv.Rounds(10, 40, 400) {
		for i, services := range []string{"none", "any"} {
			g := simulated(t, seed+1, "srdp", "--loss", "5%", "--services", services, "--repeats", "0-3")
			sent := 0
			for i := range g.list {
				if g.list[i].src == g.client {
					sent++
				}
			}
			to := moved(g.client, i == 1)
			f := flowOf(analysed(t, plain, move(g.list, g.client, to, sent/2, false)), to)
			switch {
			case f == nil || f.Was == nil:
				t.Errorf("seed %d, services %s: the client is not joined", seed+1, services)
			case f.Was.Addr != g.client || f.Was.Certainty == machine.Certain || f.Addr(f.Was.Side) != to:
				t.Errorf("seed %d, services %s: joined as %+v", seed+1, services, f.Was)
			default:
				count[f.Was.Certainty]++
			}
		}
	}
	t.Logf("joined: %v", count)
}

// flowOf returns the last flow of an address.
func flowOf(s *analyze.Session, a netip.AddrPort) (flow *analyze.Flow) {
	for _, f := range s.Flows() {
		if f.A == a || f.B == a {
			flow = f
		}
	}
	return flow
}

// A flow that goes on from another one is not accused of where it begins. So no accusation is
// certain that the whole capture does not have too.
func TestNoAccusation(t *testing.T) {
	for _, name := range []string{
		"reliable-clean.client.pcap.gz", "reliable-clean.server.pcap.gz", "reliable-loss10.client.pcap.gz",
		"reliable-loss10.server.pcap.gz", "reliable-dup10.client.pcap.gz", "reliable-frag-heavy.server.pcap.gz",
		"u210_clean.client.pcap.gz", "u210_clean.server.pcapng.gz", "u210_loss10.server.pcap.gz",
		"u221_clean.client.pcap.gz", "u21n_notify_loss10.client.pcap.gz", "upy_clean.client.pcap.gz",
		"yojimbo-clean.client.pcap.gz", "yojimbo-testmsgs-loss10.server.pcap.gz",
	} {
		list := load(t, testenv.Capture(t, name))
		client, sent := busiest(list)
		before := accusations(analysed(t, plain, list))
		for _, deaf := range []bool{false, true} {
			s := analysed(t, plain, move(list, client, moved(client, false), sent/2, deaf))
			for _, rule := range accusations(s) {
				if !slices.Contains(before, rule) {
					t.Errorf("%s, deaf %v: %s", name, deaf, rule)
				}
			}
			if old := flowOf(s, client); deaf != slices.ContainsFunc(old.Findings(), func(x *analyze.Finding) bool {
				return x.Rule.ID == "ghost"
			}) {
				t.Errorf("%s, deaf %v: the finding ghost is wrong", name, deaf)
			}
		}
	}
}

// accusations returns the rules of certain findings that are worse than notes. Rules of how often
// something happened are left out: half a capture has other rates.
func accusations(s *analyze.Session) (rules []string) {
	for _, f := range s.Flows() {
		for _, x := range f.Findings() {
			if x.Certainty == machine.Certain && x.Rule.Severity > machine.Note && x.Rule.Origin != machine.OriginNetwork &&
				x.Rule.ID != "resend-share" {
				rules = append(rules, x.Rule.ID)
			}
		}
	}
	return rules
}

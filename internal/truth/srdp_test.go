package truth

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// srdpLine is a line of the truth of a simulated run.
type srdpLine struct {
	T           float64  `json:"t"`
	Endpoint    string   `json:"endpoint"`
	Event       string   `json:"event"`
	Peer        addrPort `json:"peer"`
	Seq64       int64    `json:"seq64"`
	ClientAddr  string   `json:"client_addr"`
	ClientPorts []uint16 `json:"client_ports"`
	ServerAddr  string   `json:"server_addr"`
	ServerPort  uint16   `json:"server_port"`
	ProxyAddr   string   `json:"proxy_addr"`
	ProxyPort   uint16   `json:"proxy_port"`
}

// srdpEvent is the part of a line of `events --json` that the tests read.
type srdpEvent struct {
	Protocol   string    `json:"protocol"`
	Time       time.Time `json:"time"`
	Frame      int       `json:"frame"`
	Addr       addrPort  `json:"addr"`
	Peer       addrPort  `json:"peer"`
	Event      string    `json:"event"`
	Sequence64 int64     `json:"sequence64"`
	Certainty  string    `json:"certainty"`
}

// srdpFact is one event of one packet: the n-th of its kind.
type srdpFact struct {
	at, peer netip.AddrPort
	event    string
	seq64    int64
	n        int
}

// srdpKinds are the facts that are compared with the truth. Deliveries and
// refused duplicates are shown by the same acknowledgements.
var srdpKinds = []string{"sent", "resent", "acked", "received", "duplicate"}

// TestSimulatedSRDP simulates a server with several clients over a grid of
// conditions, with the tap at either side and between. It compares the facts
// about the endpoints with what they did. Nothing certain may be wrong. For an
// endpoint at the tap, no fact may be missing or additional.
func TestSimulatedSRDP(t *testing.T) {
	program := testenv.Ackscope(t)
	n, stride := 0, 4 // a quarter; all of them where no check may be skipped
	switch {
	case testing.Short():
		stride = 19
	case testenv.Required():
		stride = 1
	}
	for _, form := range []string{"srdp", "srdp:proxied", "srdp:direct-le"} {
		for _, network := range []string{
			"", "--loss 10% --jitter 20ms", "--loss 30% --dup 5%", "--jitter 40ms --dup 10%",
			"--loss 5%/40% --outage 3s,1s",
		} {
			for _, calls := range []string{
				"--services any --repeats 0-4", "--services order --timeout 130ms",
				"--services dont-duplicate --repeats 3 --event-clock",
			} {
				for _, tap := range []string{"a", "b", "between", "0.2"} {
					n++
					if n%stride != 0 {
						continue
					}
					args := strings.Fields(
						fmt.Sprintf("--protocol %s %s %s --tap %s --seed %d --clients 2 --duration 6s --rate 25 --first %d/%d", form,
							network, calls, tap, n, n*1000%32768, n*777%32768))
					t.Run(strings.Join(args[1:len(args)-8], " "), func(t *testing.T) {
						t.Parallel()
						dir := t.TempDir()
						path, truthPath := filepath.Join(dir, "run.pcapng"), filepath.Join(dir, "run.truth.jsonl")
						testenv.Output(t, program, append([]string{"simulate", "-w", path, "--truth", truthPath}, args...)...)
						text, err := os.ReadFile(truthPath)
						if err != nil {
							t.Fatal(err)
						}
						lines, err := decode[srdpLine](text)
						if err != nil {
							t.Fatal(err)
						}
						events, err := decode[srdpEvent](testenv.Output(t, program, "events", "--json", path))
						if err != nil {
							t.Fatal(err)
						}
						near := map[string]string{"a": "client", "b": "server"}[tap]
						faults := checkSRDP(lines, events, near)
						if len(faults) > 0 {
							t.Errorf("%d facts differ: %s", len(faults), strings.Join(faults[:min(len(faults), 6)], "; "))
						}
					})
				}
			}
		}
	}
}

// TestSimulatedSRDPProxies does the same for clients behind a proxy, over UDP
// and TCP. The tap is at the clients, where the proxy takes the place of the
// server.
func TestSimulatedSRDPProxies(t *testing.T) {
	program := testenv.Ackscope(t)
	for n, proxy := range []string{"srdp:proxy", "srdp:tcp"} {
		t.Run(proxy, func(t *testing.T) {
			dir := t.TempDir()
			path, truthPath := filepath.Join(dir, "run.pcapng"), filepath.Join(dir, "run.truth.jsonl")
			args := strings.Fields(
				fmt.Sprintf("--protocol %s --loss 10%% --services any --repeats 0-3 --tap a --seed %d --clients 3 --duration 6s "+
					"--rate 20", proxy, n+5))
			testenv.Output(t, program, append([]string{"simulate", "-w", path, "--truth", truthPath}, args...)...)
			text, err := os.ReadFile(truthPath)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := decode[srdpLine](text)
			if err != nil {
				t.Fatal(err)
			}
			var at netip.AddrPort
			for _, l := range lines {
				if l.Event == "scenario" {
					at = netip.AddrPortFrom(netip.MustParseAddr(l.ProxyAddr), l.ProxyPort)
				}
			}
			lines = slices.DeleteFunc(lines, func(l srdpLine) bool {
				return l.Event != "scenario" &&
					!strings.HasPrefix(l.Endpoint, "client")
			})
			for i := range lines {
				lines[i].Peer = addrPort{at}
			}
			events, err := decode[srdpEvent](testenv.Output(t, program, "events", "--json", path))
			if err != nil {
				t.Fatal(err)
			}
			events = slices.DeleteFunc(events, func(e srdpEvent) bool { return e.Addr.AddrPort == at })
			if faults := checkSRDP(lines, events, "client"); len(faults) > 0 {
				t.Errorf("%d facts differ: %s", len(faults), strings.Join(faults[:min(len(faults), 6)], "; "))
			}
		})
	}
}

// TestSimulatedSRDPCatches changes the events, and checks that the oracle finds
// each fault.
func TestSimulatedSRDPCatches(t *testing.T) {
	program := testenv.Ackscope(t)
	dir := t.TempDir()
	path, truthPath := filepath.Join(dir, "run.pcapng"), filepath.Join(dir, "run.truth.jsonl")
	testenv.Output(t, program, "simulate", "--protocol", "srdp", "--loss", "10%", "--services", "any", "--duration", "5s",
		"--rate", "20", "--tap", "a", "-w", path, "--truth", truthPath)
	text, err := os.ReadFile(truthPath)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := decode[srdpLine](text)
	if err != nil {
		t.Fatal(err)
	}
	good, err := decode[srdpEvent](testenv.Output(t, program, "events", "--json", "--vantage", "a", path))
	if err != nil {
		t.Fatal(err)
	}
	if faults := checkSRDP(lines, good, "client"); len(faults) > 0 {
		t.Fatalf("the run does not hold as it is: %s", faults[0])
	}
	client := good[0].Addr.AddrPort
	if lines[0].ClientAddr != client.Addr().String() {
		client = good[0].Peer.AddrPort
	}
	pick := func(events []srdpEvent, kind string, near bool) int {
		return slices.IndexFunc(events, func(e srdpEvent) bool {
			return e.Event == kind && (e.Addr.AddrPort == client) == near && e.Certainty == "certain"
		})
	}
	for name, plant := range map[string]func([]srdpEvent) []srdpEvent{
		"a receipt left out": func(es []srdpEvent) []srdpEvent {
			i := pick(es, "received", true)
			return slices.Delete(es, i, i+1)
		},
		"an ack left out": func(es []srdpEvent) []srdpEvent {
			i := pick(es, "acked", true)
			return slices.Delete(es, i, i+1)
		},
		"an ack of another packet": func(es []srdpEvent) []srdpEvent {
			es[pick(es, "acked", true)].Sequence64 += 20000
			return es
		},
		"a far receipt that was none": func(es []srdpEvent) []srdpEvent {
			es[pick(es, "received", false)].Sequence64 += 20000
			return es
		},
		"a receipt before it happened": func(es []srdpEvent) []srdpEvent {
			e := &es[pick(es, "received", false)]
			e.Time = e.Time.Add(-time.Second)
			return es
		},
		"a copy that was not sent": func(es []srdpEvent) []srdpEvent {
			return append(es, es[pick(es, "resent", true)])
		},
	} {
		if faults := checkSRDP(lines, plant(slices.Clone(good)), "client"); len(faults) == 0 {
			t.Errorf("%s is not caught", name)
		}
	}
}

// checkSRDP returns a sentence for each wrong fact. near is the prefix of the
// names of endpoints at the tap.
func checkSRDP(lines []srdpLine, events []srdpEvent, near string) (faults []string) {
	addr := map[string]netip.AddrPort{}
	for _, l := range lines {
		if l.Event == "scenario" {
			addr["server"] = netip.AddrPortFrom(netip.MustParseAddr(l.ServerAddr), l.ServerPort)
			for i, port := range l.ClientPorts {
				addr[fmt.Sprint("client", i+1)] = netip.AddrPortFrom(netip.MustParseAddr(l.ClientAddr), port)
				if i == 0 {
					addr["client"] = addr["client1"]
				}
			}
		}
	}
	count := map[srdpFact]int{}
	numbered := func(f srdpFact) srdpFact {
		count[f]++
		f.n = count[f]
		return f
	}
	truth, nearby := map[srdpFact]float64{}, map[netip.AddrPort]bool{}
	for _, l := range lines {
		if slices.Contains(srdpKinds, l.Event) {
			truth[numbered(srdpFact{at: addr[l.Endpoint], peer: l.Peer.AddrPort, event: l.Event, seq64: l.Seq64})] = l.T
		}
		if near != "" && strings.HasPrefix(l.Endpoint, near) {
			nearby[addr[l.Endpoint]] = true
		}
	}
	clear(count)
	found := map[srdpFact]srdpEvent{}
	spoke := map[netip.AddrPort]float64{}
	for _, e := range events {
		if e.Protocol != "srdp" {
			return append(faults, fmt.Sprintf("frame %d is reported as of %s", e.Frame, e.Protocol))
		}
		if slices.Contains(srdpKinds, e.Event) {
			found[numbered(srdpFact{at: e.Addr.AddrPort, peer: e.Peer.AddrPort, event: e.Event, seq64: e.Sequence64})] = e
		}
		// At the tap the packets of a side show what it sent. Its acknowledgements
		// show what it received.
		if e.Event != "acked" {
			spoke[e.Addr.AddrPort] = max(spoke[e.Addr.AddrPort], seconds(e.Time))
		}
	}
	for f, e := range found {
		t, happened := truth[f]
		at := seconds(e.Time)
		receipt := f.event == "received" || f.event == "duplicate"
		switch {
		case e.Certainty != "certain":
			if !happened && nearby[f.at] && (f.event == "sent" || f.event == "resent") {
				faults = append(faults, fmt.Sprintf("%v %s %d (%d.), reported in frame %d, did not happen", f.at, f.event, f.seq64,
					f.n, e.Frame))
			}
		case !happened:
			faults = append(faults, fmt.Sprintf("%v %s %d (%d.), reported as certain in frame %d, did not happen", f.at, f.event,
				f.seq64, f.n, e.Frame))
		case receipt && t > at+0.001:
			faults = append(faults,
				fmt.Sprintf("%v %s %d reported at %.3f, before it happened at %.3f", f.at, f.event, f.seq64, at, t))
		case f.event == "acked" && (t < at-0.001 || t > at+0.1):
			faults = append(faults, fmt.Sprintf("%v acked %d reported at %.3f, it happened at %.3f", f.at, f.seq64, at, t))
		}
	}
	for f, t := range truth {
		if _, ok := found[f]; !ok && nearby[f.at] && t < spoke[f.at]-0.2 {
			faults = append(faults, fmt.Sprintf("%v %s %d (%d.) at %.3f is not reported", f.at, f.event, f.seq64, f.n, t))
		}
	}
	if len(truth) == 0 || len(found) < len(truth)/4 {
		faults = append(faults, fmt.Sprintf("%d facts are reported of %d that happened", len(found), len(truth)))
	}
	slices.Sort(faults)
	return faults
}

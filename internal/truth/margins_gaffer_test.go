package truth

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// The networks that are simulated: other rates than the captures have, other round
// trips, other taps. A row of each list goes with a row of the others, so that in
// rates × delays runs every pair of two values is met.
var (
	rates  = []string{"10", "20", "30", "60", "128"} // frames a second
	delays = []string{"500us", "5ms", "20ms", "80ms", "200ms"}
	paths  = []string{
		"", "--loss 5% --jitter 10ms", "--loss 20% --jitter 30ms --dup 5%", "--jitter 60ms --in-order",
		"--loss 3%/15% --outage 2s,600ms,3s",
	}
	tapped = []string{"a", "b", "between", "0.1"}
)

// networks calls run with the flags of each network: 25 of every rate and delay.
func networks(run func(n int, tap, flags string)) {
	n := 0
	for i, rate := range rates {
		for j, delay := range delays {
			tap := tapped[(n*7+i)%len(tapped)]
			if tap == "0.1" && j < 3 {
				tap = "between" // a tenth of that way is too short to tell from none
			}
			path := paths[(2*i+j)%len(paths)]
			run(n, tap, fmt.Sprintf("--rate %s --delay %s %s --tap %s --seed %d", rate, delay, path, tap, n+1))
			n++
		}
	}
}

// simulation is a simulated run, as files.
type simulation struct {
	path string
	log  []byte
}

// simulated runs `ackscope simulate`, of a program whose constants are not scaled.
func simulated(t *testing.T, dir, flags string) simulation {
	t.Helper()
	n, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	path, log := filepath.Join(dir, fmt.Sprintf("%d.pcapng", len(n))), filepath.Join(dir, "log")
	run := []string{"simulate", "-q", "-w", path, "--truth", log}
	for _, profiles := range messagesProfiles(t) {
		run = append(run, "--profiles", profiles)
	}
	testenv.Output(t, testenv.Ackscope(t), append(run, strings.Fields(flags)...)...)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return simulation{path, text}
}

// messagesProfiles returns the paths of the profiles with messages that faults have.
func messagesProfiles(t *testing.T) (paths []string) {
	t.Helper()
	for _, name := range []string{"messages", "resend", "simple"} {
		paths = append(paths, filepath.Join(testenv.Module(t), "docs", "faults-"+name+".yaml"))
	}
	return paths
}

// withMessages returns a registry that knows them.
func withMessages(t *testing.T) *dissect.Registry {
	t.Helper()
	r := registryOf()
	extra := map[string][]dissect.Profile{}
	for _, path := range messagesProfiles(t) {
		source, err := yamlfile.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list, err := yamlfile.Profiles(source, path, r)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			extra[x.Protocol] = append(extra[x.Protocol], x.Profile)
		}
	}
	var err error
	if r, err = r.Extend(dissect.Additions{Profiles: extra}); err != nil {
		t.Fatal(err)
	}
	return r
}

// ends of simulated runs.
var simulatedEnds = map[string]netip.Addr{"a": netip.MustParseAddr("10.0.0.1"), "b": netip.MustParseAddr("10.0.0.2")}

// standsAt reports of an address whether the tap of a simulated run stands there. One
// whose way to it is as short as a frame of the operating system may be taken for both.
func standsAt(tap string) func(netip.AddrPort) bool {
	return func(at netip.AddrPort) bool { return simulatedEnds[tap] == at.Addr() }
}

// faulty are runs of endpoints with each fault of a protocol, at the tap.
func faulty(t *testing.T, dir, protocol string) (list []*scene) {
	t.Helper()
	text := testenv.Output(t, testenv.Ackscope(t), "simulate", "--fault", "list", "--json", "--protocol", protocol)
	type fault struct{ Protocol, Fault, Unobservable, Explained, Scenario string }
	faults, err := decode[fault](text)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range faults {
		if x.Unobservable != "" || x.Explained != "" || strings.Contains(x.Scenario, "98%") {
			continue // the latter takes ten seconds
		}
		flags := x.Scenario + " --fault " + x.Fault + fmt.Sprintf(" --seed %d", i+1)
		for _, usual := range [][2]string{{"--loss", "5%"}, {"--duration", "8s"}, {"--protocol", map[string]string{
			"gaffer": "gaffer:reliable", "riptide": "riptide:main", "srdp": "srdp",
		}[protocol]}} {
			if !strings.Contains(x.Scenario, usual[0]) {
				flags += " " + usual[0] + " " + usual[1]
			}
		}
		wrong := "a"
		if strings.Contains(x.Scenario, "--faulty b") {
			wrong = "b"
		} else {
			flags += " --tap a"
		}
		list = append(list, &scene{
			name: "fault " + x.Fault, path: simulated(t, dir, flags).path, registry: withMessages(t),
			faulty: simulatedEnds[wrong], check: func(*ripCapture) []string { return nil },
		})
	}
	return list
}

func gafferScenes(t *testing.T) (list []*scene) {
	dir := t.TempDir()
	for _, c := range captures(t) {
		c.span(t)
		r := readRun(t, c.name)
		near := func(at netip.AddrPort) bool {
			return slices.Contains(r.clients, at) == (c.tap == "client") || r.loopback()
		}
		list = append(list, &scene{
			name: c.name + "." + c.tap, path: uncompressed(t, c.path, dir), registry: registryOf(), recorded: true,
			check: func(a *ripCapture) []string {
				return append(checkFacts(r.fresh(), &c, eventsOf(a)), strict(a, near)...)
			},
		})
	}
	list = append(list, otherCaptures(t, dir)...)
	profiles := []string{"article", "reliable", "article-crc32", "reliable-2017", "article-be"}
	networks(func(n int, tap, flags string) {
		profile := profiles[n%len(profiles)]
		flags += " --duration 9s --protocol gaffer:" + profile
		switch n % 5 {
		case 1:
			flags += " --first 65300/65500"
		case 2:
			flags += " --refuse 5%"
		case 4:
			flags += " --event-clock"
		}
		run := simulated(t, dir, flags)
		list = append(list, gafferScene(t, flags, profile, tap, run))
		if n%3 == 0 {
			list = append(list, gafferScene(t, flags+", joined", profile, "", run.joined(t)))
		}
		list = append(list, variants(t, n, flags, run, registryOf())...)
	})
	networks(func(n int, tap, flags string) {
		if n%2 == 0 {
			flags += " --duration 9s --protocol gaffer:messages --messages " + []string{"5", "20", "100"}[n%3]
			s := gafferScene(t, flags, "article", tap, simulated(t, dir, flags))
			s.registry = withMessages(t)
			run := simulation{path: s.path}
			late := &scene{name: flags + ", joined", path: run.joined(t).path, registry: s.registry, recorded: true}
			late.check = asBefore(late)
			list = append(append(list, s, late), variants(t, n/2, flags, run, s.registry)...)
		}
	})
	return append(list, faulty(t, dir, "gaffer")...)
}

// gafferScene returns the scene of a simulated run. Where a tap is named, the oracle at the tap
// knows all. Without one, only what is certain is held against the logs.
func gafferScene(t *testing.T, called, profile, tap string, run simulation) *scene {
	t.Helper()
	// The oracle knows by the name of a run what its library does.
	name := map[string]string{"reliable-2017": "oldreliable-simulated"}[profile]
	if name == "" {
		name = simulatedName
	}
	r := parseRun(t, name, run.log)
	end := map[string]string{"a": "client", "b": "server"}[tap]
	return &scene{
		name: called, path: run.path, registry: registryOf(),
		check: func(a *ripCapture) (faults []string) {
			if tap != "" {
				faults = strict(a, standsAt(tap))
			}
			if end != "" && placed(a, standsAt(tap)) {
				c := &captured{path: run.path, name: name, tap: end, first: a.first, last: a.last}
				faults = append(faults, checkFacts(r.fresh(), c, eventsOf(a))...)
			} else {
				faults = append(faults, certainFacts(r, eventsOf(a))...)
			}
			return faults
		},
	}
}

// variants gives, of every fifth of a protocol's networks each, a scene that is damaged,
// one that lacks datagrams, and one of two connections. What is certain there is held
// against what is told with the constants as they are: the logs count as if nothing
// had been altered.
func variants(t *testing.T, n int, flags string, run simulation, registry *dissect.Registry) []*scene {
	t.Helper()
	s := &scene{registry: registry, altered: true}
	switch n % 5 {
	case 0:
		s.name, s.path = flags+", damaged", run.damaged(t).path
	case 2:
		s.name, s.path = flags+", sparse", run.sparse(t).path
	case 4:
		after := []time.Duration{500 * time.Millisecond, 6 * time.Second}[n/5%2]
		s.name, s.path = flags+", again", run.again(t, run, after).path
	default:
		return nil
	}
	if s.check = asBefore(s); n%5 == 0 {
		// What a wrong bit makes of a number is told as if it had been sent.
		s.check = func(*ripCapture) []string { return nil }
	}
	return []*scene{s}
}

// placed reports whether the tap is taken to stand where it does, in all flows.
func placed(c *ripCapture, near func(netip.AddrPort) bool) bool {
	for _, f := range c.session.Flows() {
		for _, x := range []machine.Side{machine.A, machine.B} {
			if f.Protocol == nil || f.Facts().Vantage.Near(x) != near(f.Addr(x)) {
				return false
			}
		}
	}
	return true
}

// certainFacts returns a sentence for each receipt and ack that is told as certain of a
// simulated run and that no log has.
func certainFacts(r *run, events []event) (faults []string) {
	logged := map[string]int{}
	for _, endpoint := range []string{"client", "server"} {
		for _, kind := range []string{"received", "acked"} {
			for _, l := range r.by[who{endpoint, 0, kind}] {
				if l.FragmentID == nil {
					logged[fmt.Sprint(endpoint, kind, l.Seq)]++
				}
			}
		}
	}
	for _, e := range events {
		endpoint := "client"
		if e.Addr.AddrPort == r.server {
			endpoint = "server"
		}
		if e.Certainty != "certain" || e.Event != "received" && e.Event != "acked" {
			continue
		}
		key := fmt.Sprint(endpoint, e.Event, e.Sequence)
		if logged[key]--; logged[key] < 0 {
			faults = append(faults, fmt.Sprintf("%s %s %d, told as certain in frame %d, did not happen", endpoint, e.Event,
				e.Sequence, e.Frame))
		}
	}
	return faults
}

// otherCaptures are those of the article's samples and of yojimbo, decrypted. Their
// logs are of other kinds. So what is certain is held against what the unchanged constants
// tell. The tests of their packages hold that against the logs.
func otherCaptures(t *testing.T, dir string) (list []*scene) {
	t.Helper()
	for _, pattern := range []string{"article-*.pcap*.gz", "yojimbo-*.pcap*.gz"} {
		paths, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, _, _ := strings.Cut(filepath.Base(path), ".")
			s := &scene{name: filepath.Base(path), path: uncompressed(t, path, dir), registry: registryOf(), recorded: true}
			if strings.HasPrefix(name, "yojimbo") {
				s.registry = decrypting(t, name)
			}
			s.check = asBefore(s)
			list = append(list, s)
			if run := (simulation{path: s.path}); strings.HasPrefix(name, "article") {
				late := &scene{name: s.name + ", joined", path: run.joined(t).path, registry: s.registry, recorded: true}
				late.check = asBefore(late)
				list = append(list, late)
				list = append(list, variants(t, 2, s.name, run, s.registry)...)
				list = append(list, variants(t, 4, s.name, run, s.registry)...)
				list = append(list, variants(t, 9, s.name, run, s.registry)...)
			}
		}
	}
	return list
}

// asBefore returns a check that what is certain of a scene was told when it first looked.
func asBefore(*scene) func(*ripCapture) []string {
	var before map[string]bool
	return func(c *ripCapture) (faults []string) {
		told := map[string]bool{}
		for _, f := range c.session.Flows() {
			for _, e := range c.events[f.ID] {
				fact := fmt.Sprint(f.ID, e.Side, e.Kind, e.Channel, e.Sequence64)
				told[fact] = true
				if e.Certainty == machine.Certain && e.Kind != machine.EventRegraded && before != nil && !before[fact] {
					faults = append(faults, "told as certain, and not told before: "+fact)
				}
			}
			for _, m := range c.messages[f.ID] {
				fact := fmt.Sprint(f.ID, m.From, m.Channel, m.ID, m.Delivered)
				if told[fact] = true; m.Certainty == machine.Certain && before != nil && !before[fact] {
					faults = append(faults, "told as certain, and not told before: "+fact)
				}
			}
		}
		if before == nil {
			before = told
		}
		return faults
	}
}

// decrypting returns a registry with the key of a recorded run, which its log has.
func decrypting(t *testing.T, name string) *dissect.Registry {
	t.Helper()
	type config struct {
		Event      string `json:"event"`
		Endpoint   string `json:"endpoint"`
		PrivateKey string `json:"private_key"`
		ProtocolID string `json:"protocol_id"`
	}
	var keys netcode.KeyFile
	for line := range strings.Lines(string(unzip(t, testenv.Capture(t, name+".truth.jsonl.gz")))) {
		var l config
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Event == "config" && l.Endpoint == "server" {
			var key netcode.ServerKey
			if key.ProtocolID.UnmarshalYAML([]byte("0x"+l.ProtocolID)) != nil ||
				key.PrivateKey.UnmarshalYAML([]byte(l.PrivateKey)) != nil {
				t.Fatalf("%s: its key cannot be read", name)
			}
			keys.Servers = append(keys.Servers, key)
		}
	}
	if len(keys.Servers) == 0 {
		t.Fatalf("%s: the log has no key", name)
	}
	p, err := gaffer.Protocol.Extend(dissect.Additions{Keys: &dissect.File{Name: "keys", Read: func(into any) error {
		*into.(*netcode.KeyFile) = keys
		return nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return dissect.NewRegistry(p)
}

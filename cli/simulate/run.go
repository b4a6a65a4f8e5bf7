package simulate

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
)

// Run is a protocol's part of a run: its endpoints, their links, the first
// lines of the log and the summary.
type Run interface {
	// Build adds the endpoints and the links to the world.
	Build(s *Simulation) error
	// Opening writes the first lines of the log: about the run, and its
	// endpoints.
	Opening(s *Simulation, tell func(endpoint string, lines ...sim.Line))
	// Summarize prints one line per host about the run.
	Summarize(w io.Writer, s *Simulation)
}

// Simulation is a run that is set up.
type Simulation struct {
	Flags    *Flags
	Protocol *Simulator
	Run      Run
	World    *sim.World
	Ends     []*sim.End       // by host
	Roles    []sim.Role       // by host
	Addrs    []netip.AddrPort // by host
	Links    []*sim.Link      // the tap sees all of them
	Stream   bool             // over TCP
	// FinalAtEnd gives the logs' last lines the time of the end of the run, not
	// the time of the line before.
	FinalAtEnd bool

	rates    [2]float64 // frames a second, by side
	sentHash interface {
		io.Writer
		Sum([]byte) []byte
	}
}

// Epoch is the start of every run in captures. It is fixed so that runs are
// reproducible.
const Epoch = machine.Instant(1_767_225_600_000_000_000) // 2026-01-01T00:00:00Z

// Addrs are the addresses of the client and the server of one simulated flow.
var Addrs = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:30000"), netip.MustParseAddrPort("10.0.0.2:40000")}

// AddrOf returns the address of client n.
func AddrOf(client int) netip.AddrPort {
	return netip.AddrPortFrom(Addrs[0].Addr(), Addrs[0].Port()+uint16(client))
}

// NewSimulation builds the world that the flags describe. The flags must have
// been registered with the same protocols.
func NewSimulation(a *app.App, protocols Simulators, f *Flags) (*Simulation, error) {
	name, _, _ := strings.Cut(f.Protocol, ":")
	p := protocols.lookup(name)
	if p == nil {
		return nil, app.UnknownName("--protocol", f.Protocol, protocols.names())
	}
	r, err := f.begin[name](a, f)
	if err != nil {
		return nil, err
	}
	if f.Fault != "" && !p.hasFault(f.Fault) {
		return nil, protocols.unknownFault(name, f.Fault)
	}
	s := &Simulation{Flags: f, Protocol: p, Run: r, World: sim.New(f.Seed), sentHash: sha256.New()}
	if err := r.Build(s); err != nil {
		return nil, err
	}
	s.World.Watch(func(step *sim.Step) {
		for _, t := range step.Out.Transmit {
			_, _ = s.sentHash.Write(t.Bytes) // a hash never fails
		}
	})
	return s, nil
}

// ReadRates parses how many frames a second each side has. Each frame sends one
// of the unit, such as "packets".
func (s *Simulation) ReadRates(unit string) error {
	rates, err := Pair(s.Flags.Rate, ParseNumber)
	if err != nil || !(rates[0] > 0 && rates[0] <= 1e6) || !(rates[1] > 0 && rates[1] <= 1e6) {
		return fmt.Errorf("--rate %q: expected %s a second, up to a million", s.Flags.Rate, unit)
	}
	s.rates = rates
	return nil
}

// Rate returns the frames a second of a role. A proxy has the server's rate.
func (s *Simulation) Rate(role sim.Role) float64 { return s.rates[min(role, sim.Server)] }

// Add adds an endpoint to the world. Call ReadRates first.
func (s *Simulation) Add(role sim.Role, name string, at netip.AddrPort, end *sim.End) *sim.Host {
	frame := time.Duration(float64(time.Second) / s.Rate(role))
	s.Ends, s.Roles, s.Addrs = append(s.Ends, end), append(s.Roles, role), append(s.Addrs, at)
	return s.World.AddHost(name, end.Endpoint, sim.HostOptions{
		Frame: frame, Phase: time.Duration(s.World.Rand("phase " + name).Int64N(int64(frame))), FrameJitter: frame / 50,
		App: end.App, EventDriven: s.Flags.EventTime, Refuse: end.Refuse,
	})
}

// Connect adds a link that the tap sees.
func (s *Simulation) Connect(a, b *sim.Host, toB, toA sim.Path) {
	connect := s.World.Connect
	if s.Stream {
		connect = s.World.ConnectStream
	}
	s.Links = append(s.Links, connect(a, b, toB, toA))
}

// Over reports whether the applications' time is up.
func (s *Simulation) Over(now machine.Instant) bool { return now >= machine.Instant(s.Flags.Duration) }

// LogTo writes the endpoints' logs while the world runs. log may be nil. The
// result end writes the last lines.
func (s *Simulation) LogTo(log *sim.Log) (end func() error) {
	last := machine.Instant(0)
	tell := func(at machine.Instant, endpoint string, lines ...sim.Line) {
		for _, line := range lines {
			if line != nil {
				log.Tell(at, endpoint, line)
				last = max(last, at)
			}
		}
	}
	s.Run.Opening(s, func(endpoint string, lines ...sim.Line) { tell(0, endpoint, lines...) })
	s.World.Watch(func(step *sim.Step) { tell(step.At, step.Host.Name, s.Ends[step.Host.Index].Log.Step(step)...) })
	return func() error {
		if s.FinalAtEnd {
			last = s.World.Now()
		}
		for i, h := range s.World.Hosts() {
			tell(last, h.Name, s.Ends[i].Log.Final())
		}
		return log.Flush()
	}
}

// Scenario returns the line with the addresses and the parameters of the run.
func (s *Simulation) Scenario(params map[string]any) sim.Line {
	line := sim.Line{"event": "scenario", "name": "simulated", "params": params}
	var ports []uint16
	for i, at := range s.Addrs {
		role := s.Roles[i].String()
		line[role+"_addr"] = at.Addr().String()
		if s.Roles[i] == sim.Client {
			ports = append(ports, at.Port())
		} else {
			line[role+"_port"] = at.Port()
		}
	}
	line["client_ports"] = ports
	return line
}

func (s *Simulation) describe() string {
	f := s.Flags
	return fmt.Sprintf("%s, seed %d, loss %s, delay %s, jitter %s, dup %s", f.Protocol, f.Seed, f.Loss, f.Delay,
		f.Jitter, f.Dup)
}

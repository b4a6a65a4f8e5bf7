package lab

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	model "github.com/ackscope/ackscope/machine/riptide"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/sim/riptide"
	"github.com/ackscope/ackscope/sim/srdp"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// kits returns a kit of every protocol and form.
func kits(t *testing.T) map[string]func() (sim.Kit, Transport, sim.Role) {
	t.Helper()
	build := func(kit sim.Kit, err error) sim.Kit {
		if err != nil {
			t.Fatal(err)
		}
		return kit
	}
	version, ok := model.LookupVersion("2.2.1")
	if !ok {
		t.Fatal("no version 2.2.1 of Riptide")
	}
	rip := func(carrier Transport) func() (sim.Kit, Transport, sim.Role) {
		return func() (sim.Kit, Transport, sim.Role) {
			return build(
				riptide.New(riptide.Kit{
					Versions: [2]*model.Version{version, version}, Stream: carrier == TCP,
					Rate: [2]float64{20, 20},
				})), carrier, sim.Server
		}
	}
	proxied := func(via srdp.Via, carrier Transport, role sim.Role) func() (sim.Kit, Transport, sim.Role) {
		return func() (sim.Kit, Transport, sim.Role) {
			p := wire.Default()
			if via != srdp.Straight {
				p = p.In(wire.Proxied)
			}
			return build(
				srdp.New(srdp.Kit{
					Profile: &p, Via: via, Server: netip.MustParseAddrPort("127.0.0.1:9"), Rate: [2]float64{50, 50},
					Most: 20,
				})), carrier, role
		}
	}
	return map[string]func() (sim.Kit, Transport, sim.Role){
		"gaffer":      func() (sim.Kit, Transport, sim.Role) { return gafferKit(t, 0), UDP, sim.Server },
		"riptide udp": rip(UDP), "riptide tcp": rip(TCP),
		"srdp": proxied(srdp.Straight, UDP, sim.Server), "srdp behind a proxy": proxied(srdp.ViaUDP, UDP, sim.Server),
		"srdp udp proxy": proxied(srdp.ViaUDP, UDP, sim.Proxy), "srdp tcp proxy": proxied(srdp.ViaTCP, Both, sim.Proxy),
	}
}

// Whatever unknown senders send, a server continues, and ends when its context
// ends.
func TestServersStandNoise(t *testing.T) {
	for name, kitOf := range kits(t) {
		t.Run(name, func(t *testing.T) {
			kit, carrier, role := kitOf()
			var log countingWriter
			clock := StartClock()
			s := Settings{Clock: clock, Log: sim.NewLog(&log, clock.Wall(0))}
			target := listen(t)
			host, err := NewHost(HostOptions{
				Settings: s, Kit: kit, Role: role, Transport: carrier, Listen: loopback,
				Connect: addrOf(target),
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(context.Background())
			over := begin(ctx, host.Run)
			rng := rand.New(rand.NewPCG(1, uint64(len(name))))
			if carrier != TCP {
				datagrams(t, rng, host.Addr())
			}
			if carrier != UDP {
				streams(t, rng, host.Addr())
			}
			time.Sleep(50 * time.Millisecond)
			end()
			select {
			case err := <-over:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("it does not end")
			}
			if err := s.Log.Flush(); err != nil || log == 0 {
				t.Errorf("its log has %d bytes: %v", log, err)
			}
		})
	}
}

type countingWriter int

func (w *countingWriter) Write(b []byte) (int, error) {
	*w += countingWriter(len(b))
	return len(b), nil
}

func begin(ctx context.Context, run func(context.Context) error) <-chan error {
	over := make(chan error, 1)
	go func() { over <- run(ctx) }()
	return over
}

func datagrams(t *testing.T, rng *rand.Rand, to netip.AddrPort) {
	t.Helper()
	conn := listen(t)
	for range 300 {
		b := sim.Noise(rng, rng.IntN(200))
		if len(b) > 0 && rng.IntN(2) == 0 {
			b[0] = []byte{0, 1, 0x3e, 0x53, 0x41, 4}[rng.IntN(6)] // bytes at which packets begin
		}
		conn.WriteToUDPAddrPort(b, to)
	}
}

func streams(t *testing.T, rng *rand.Rand, to netip.AddrPort) {
	t.Helper()
	for n := range 12 {
		conn, err := net.Dial("tcp", to.String())
		if err != nil {
			t.Fatal(err)
		}
		b := sim.Noise(rng, 2000)
		if n%2 == 0 {
			b[0], b[1], b[2], b[3] = 8, 0, 0, 0 // a length that is accepted
		}
		conn.Write(b)
		if n%3 != 0 {
			conn.Close()
		} else {
			t.Cleanup(func() { conn.Close() })
		}
	}
}

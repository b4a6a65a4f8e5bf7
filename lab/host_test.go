package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/sim"
	"github.com/ackscope/ackscope/sim/gaffer"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

func gafferKit(t *testing.T, count uint64) *gaffer.Kit {
	t.Helper()
	profile, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	kit, err := gaffer.New(gaffer.Kit{Profile: profile, Rate: [2]float64{200, 200}, Least: 10, Most: 60, Count: count})
	if err != nil {
		t.Fatal(err)
	}
	return kit
}

// pair creates a server and clients with a relay between them.
func pair(t *testing.T, s Settings, kit sim.Kit, clients int, path sim.Path) *Group {
	t.Helper()
	server, err := NewHost(HostOptions{Settings: s, Kit: kit, Role: sim.Server, Listen: loopback})
	if err != nil {
		t.Fatal(err)
	}
	relay, err := NewRelay(RelayOptions{
		Settings: s, Listen: loopback, Target: server.Addr(), ToServer: path, ToHere: path,
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &Group{Servers: []*Host{server}, Relay: relay, Linger: 100 * time.Millisecond, Grace: 20 * time.Millisecond}
	for n := range clients {
		client, err := NewHost(HostOptions{Settings: s, Kit: kit, Role: sim.Client, N: n, Connect: relay.Addr()})
		if err != nil {
			t.Fatal(err)
		}
		g.Clients = append(g.Clients, client)
	}
	return g
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, end := context.WithTimeout(context.Background(), limit)
	t.Cleanup(end)
	return ctx
}

// With several clients, the logs of both ends must agree, and the journal must
// repeat the run.
func TestClientsLogAndJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var text bytes.Buffer
	clock := StartClock()
	s := Settings{Clock: clock, Seed: 3, Log: sim.NewLog(&text, clock.Wall(0))}
	s.Journal = NewJournal(file, 3, map[string]string{"lab": "gaffer"})
	const clients, count = 3, 60
	g := pair(t, s, gafferKit(t, count), clients, sim.Path{Loss: 0.2, Delay: 5 * time.Millisecond, Duplicate: 0.1})
	if err := g.Run(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Log.Flush(), s.Journal.Finish()); err != nil {
		t.Fatal(err)
	}

	type fact struct {
		who   string
		conn  int
		event string
		seq   uint32
	}
	counts := map[fact]int{}
	kinds := map[string]int{}
	for d := json.NewDecoder(&text); ; {
		var l struct {
			Endpoint, Event string
			Conn            int
			Seq             uint32
			T               float64
		}
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if off := time.Since(time.UnixMicro(int64(l.T * 1e6))); off < 0 || off > time.Minute {
			t.Fatalf("a line of %v ago", off)
		}
		counts[fact{l.Endpoint, l.Conn, l.Event, l.Seq}]++
		kinds[l.Endpoint+" "+l.Event]++
	}
	if kinds["client sent"] != clients*count || kinds["server sent"] != clients*count || kinds["server peer"] != clients ||
		kinds["client final"] != clients || kinds["server final"] != clients || kinds["relay flow"] != clients ||
		kinds["relay final"] != 2 {
		t.Errorf("lines of each kind: %v", kinds)
	}
	if lost := kinds["relay dropped"]; lost < clients*count/8 || lost > clients*count {
		t.Errorf("the relay lost %d of %d", lost, 2*clients*count)
	}
	for f := range counts {
		if f.event == "acked" {
			// Each end numbers connections in its own order.
			received := 0
			for conn := range clients {
				received += counts[fact{map[string]string{"client": "server", "server": "client"}[f.who], conn, "received", f.seq}]
			}
			if received == 0 {
				t.Errorf("%+v, and no other end received it", f)
			}
		}
	}

	played := replay(t, path, gafferKit(t, count))
	if !played.Finished || !played.Same || played.Sent < 2*clients*count {
		t.Errorf("played again: %+v", played)
	}
	// A journal with a changed payload must be detected.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(b, []byte(`"in":"submit"`))
	i += bytes.Index(b[i:], []byte(`"bytes":"`)) + len(`"bytes":"`)
	b[i] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if played := replay(t, path, gafferKit(t, count)); played.Same {
		t.Error("a changed payload gives the same bytes")
	}
}

func replay(t *testing.T, path string, kit sim.Kit) Played {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j, err := sim.ReadJournal(file)
	if err != nil {
		t.Fatal(err)
	}
	played, err := Play(j, kit)
	if err != nil {
		t.Fatal(err)
	}
	return played
}

// A journal numbers its endpoints: a large number must not create that many.
func TestPlayRefuses(t *testing.T) {
	j := &sim.Journal{Entries: []sim.Entry{{Host: 1 << 20, In: machine.Wake{}}}}
	if _, err := Play(j, gafferKit(t, 1)); err == nil || !strings.Contains(err.Error(), "host 1048576") {
		t.Errorf("%v, expected a complaint about the host", err)
	}
	j.Entries[0].Host = int(sim.Proxy)
	if _, err := Play(j, gafferKit(t, 1)); err == nil || !strings.Contains(err.Error(), "found a proxy") {
		t.Errorf("%v, expected a complaint about a proxy, which the protocol has not", err)
	}
}

// A server answers whoever uses its protocol, and no other sender.
func TestServerAnswersWhomItShould(t *testing.T) {
	kit := gafferKit(t, 0)
	good := kit.Profile.Append(nil, &wire.Packet{Kind: wire.KindRegular}, []byte("hello"))
	for _, c := range []struct {
		name   string
		bytes  []byte
		allow  func(netip.Addr) bool
		answer bool
	}{
		{"a packet", good, nil, true},
		{"noise", []byte{0xff, 1, 2, 3}, nil, false},
		{"a packet of one that is not allowed", good, func(netip.Addr) bool { return false }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, err := NewHost(HostOptions{
				Settings: Settings{Clock: StartClock(), Allow: c.allow}, Kit: kit, Role: sim.Server,
				Listen: loopback,
			})
			if err != nil {
				t.Fatal(err)
			}
			client := listen(t)
			ctx, end := context.WithCancel(context.Background())
			over := make(chan error, 1)
			go func() { over <- server.Run(ctx) }()
			client.WriteToUDPAddrPort(c.bytes, server.Addr())
			within := 2 * time.Second
			if !c.answer {
				within = 100 * time.Millisecond
			}
			client.SetReadDeadline(time.Now().Add(within))
			n, _, _ := client.ReadFromUDPAddrPort(make([]byte, 2048))
			if (n > 0) != c.answer {
				t.Errorf("it answers with %d bytes", n)
			}
			end()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
}

// A silent client is dropped, and gets a new endpoint when it sends again.
func TestServerLetsGo(t *testing.T) {
	kit := gafferKit(t, 0)
	kit.Idle = 60 * time.Millisecond
	var text bytes.Buffer
	clock := StartClock()
	server, err := NewHost(HostOptions{
		Settings: Settings{Clock: clock, Log: sim.NewLog(&text, clock.Wall(0))}, Kit: kit,
		Role: sim.Server, Listen: loopback,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	over := begin(ctx, server.Run)
	client := listen(t)
	packet := kit.Profile.Append(nil, &wire.Packet{Kind: wire.KindRegular}, []byte("hello"))
	for range 2 {
		client.WriteToUDPAddrPort(packet, server.Addr())
		answers := 0
		for {
			client.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			if _, _, err := client.ReadFromUDPAddrPort(make([]byte, 2048)); err != nil {
				break
			}
			answers++
		}
		if answers < 3 || answers > 60 {
			t.Errorf("%d packets to one that spoke once, expected those of 60 ms at 200 a second", answers)
		}
	}
	end()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if log := text.String(); strings.Count(log, `"event":"peer"`) != 2 || strings.Count(log, `"event":"final"`) != 2 ||
		len(server.Counts()) != 2 {
		t.Errorf("expected two conversations, each with its end:\n%s", log)
	}
}

// A client without a server runs until the context ends, and then stops.
func TestClientAlone(t *testing.T) {
	closed := listen(t)
	at := addrOf(closed)
	closed.Close()
	client, err := NewHost(HostOptions{
		Settings: Settings{Clock: StartClock()}, Kit: gafferKit(t, 0), Role: sim.Client,
		Connect: at,
	})
	if err != nil {
		t.Fatal(err)
	}
	g := Group{Clients: []*Host{client}}
	ctx := within(t, 200*time.Millisecond)
	begun := time.Now()
	if err := g.Run(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v to end", took)
	}
	if sent := client.Counts()[0].Events[machine.EventSent]; sent < 5 {
		t.Errorf("it sent %d packets in 200 ms, expected some 40", sent)
	}
}

// A run ends when an endpoint refuses an application's input.
func TestTroubleEndsTheRun(t *testing.T) {
	kit := gafferKit(t, 0)
	kit.Least, kit.Most = 40000, 40000 // more than 16 fragments
	g := pair(t, Settings{Clock: StartClock()}, kit, 1, sim.Path{})
	if err := g.Run(within(t, 20*time.Second)); err == nil || !strings.Contains(err.Error(), "fragments") {
		t.Errorf("%v, expected a complaint about fragments", err)
	}
}

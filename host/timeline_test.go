package host

import (
	"testing"
	"time"

	"github.com/ackscope/ackscope/machine"
)

const second1 = machine.Instant(time.Second)

// course is a timeline of one socket: its drops and its queue, second by second.
func course(t *testing.T, values ...[2]uint64) *Timeline {
	t.Helper()
	var line Timeline
	for i, v := range values {
		s := taken(t, second1*machine.Instant(i+1))
		s.Sockets = s.Sockets[:1]
		s.Sockets[0].Drops, s.Sockets[0].Queue = v[0], v[1]
		s.Ports = s.Ports[:1]
		s.System = 1
		line.Add(s)
	}
	return &line
}

func TestEndpoint(t *testing.T) {
	line := course(t, [2]uint64{5, 0}, [2]uint64{5, 832}, [2]uint64{5, 832}, [2]uint64{5, 832}, [2]uint64{20, 30000},
		[2]uint64{20, 0}, [2]uint64{20, 0}, [2]uint64{20, 0})
	x := line.Endpoint(server, client, 2*second1, 7*second1)
	if !x.Here || !x.Socket || x.Shared != 1 || x.Owner.PID != 812 || x.UID != 1000 || x.Why != "" || x.Closed {
		t.Errorf("%+v", x)
	}
	if want := (Change{15, true, 4 * second1, 5 * second1}); x.Drops != want {
		t.Errorf("drops %+v, expected %+v", x.Drops, want)
	}
	if x.Queue != 30000 || x.QueueAt != 5*second1 || x.Least != 832 {
		t.Errorf("queue %d at %d, least %d", x.Queue, x.QueueAt, x.Least)
	}
	// Nothing was dropped in the first three seconds, nor later than the fifth.
	for _, span := range [][2]machine.Instant{{second1, 3 * second1}, {6 * second1, 8 * second1}} {
		if x := line.Endpoint(server, client, span[0], span[1]); x.Drops.N != 0 || !x.Drops.Known {
			t.Errorf("from %d to %d: %+v", span[0], span[1], x.Drops)
		}
	}
	// Of a time without samples nothing is known.
	if x := line.Endpoint(server, client, 2*second1, 20*second1); x.Drops.Known || x.Drops.N != 15 {
		t.Errorf("beyond the samples: %+v", x.Drops)
	}
	for _, c := range []struct {
		from, to machine.Instant
		why      string
	}{
		{30 * second1, 40 * second1, "the samples of the host are of another time"},
	} {
		if x := line.Endpoint(server, client, c.from, c.to); x.Here || x.Why != c.why {
			t.Errorf("%+v, expected %q", x, c.why)
		}
	}
	if x := line.Endpoint(client, server, second1, 5*second1); x.Here || x.Why == "" {
		t.Errorf("the other host: %+v", x)
	}
	if x := line.Endpoint(second, client, second1, 5*second1); x.Socket || x.Why != "no sample looked for its port" {
		t.Errorf("a port that was not looked for: %+v", x)
	}
	if x := (&Timeline{}).Endpoint(server, client, 0, 1); x.Here || x.Why == "" {
		t.Errorf("without samples: %+v", x)
	}
}

// TestClosed: a sample that found no socket on the port shows when it was closed.
func TestClosed(t *testing.T) {
	line := course(t, [2]uint64{0, 0}, [2]uint64{0, 0})
	s := taken(t, 3*second1)
	s.Sockets, s.Ports, s.System = nil, s.Ports[:1], 1
	line.Add(s)
	x := line.Endpoint(server, client, second1, 3*second1)
	if !x.Closed || x.ClosedAt != 3*second1 || !x.Socket {
		t.Errorf("%+v", x)
	}
	if x := line.Endpoint(server, client, second1, 2*second1); x.Closed {
		t.Errorf("before: %+v", x)
	}
}

// TestRestart: the counter of a new socket begins at 0, which is no negative growth.
func TestRestart(t *testing.T) {
	line := course(t, [2]uint64{0, 0}, [2]uint64{7, 0})
	for i := 3; i <= 4; i++ {
		s := taken(t, second1*machine.Instant(i))
		s.Sockets, s.Ports, s.System = s.Sockets[:1], s.Ports[:1], 1
		s.Sockets[0].Inode, s.Sockets[0].Drops = 99, uint64(i-3)
		line.Add(s)
	}
	x := line.Endpoint(server, client, second1, 4*second1)
	if x.Drops.N != 8 || !x.Drops.Known || x.Shared != 1 {
		t.Errorf("%+v", x)
	}
}

// TestShared: of two sockets on one port, the connected one takes the datagrams of its peer; two that fit equally well
// share them.
func TestShared(t *testing.T) {
	var line Timeline
	for i := 1; i <= 2; i++ {
		s := taken(t, second1*machine.Instant(i))
		connected, other := s.Sockets[0], s.Sockets[0]
		connected.Remote, connected.Inode, connected.Drops = client, 1, uint64(10*i)
		other.Inode = 2
		s.Sockets = append(s.Sockets[:1], connected, other)
		line.Add(s)
	}
	if x := line.Endpoint(server, client, second1, 2*second1); x.Shared != 1 || x.Drops.N != 10 {
		t.Errorf("connected: %+v", x)
	}
	if x := line.Endpoint(server, third, second1, 2*second1); x.Shared != 2 {
		t.Errorf("shared: %+v", x)
	}
}

// TestBounded: the memory stays within its limit, and the counts stay exact.
func TestBounded(t *testing.T) {
	var line Timeline
	base := taken(t, 0)
	base.Sockets = base.Sockets[:1]
	const samples = 600_000
	for i := range samples {
		s := *base
		s.At = second1 * machine.Instant(i+1)
		s.Sockets = []Socket{base.Sockets[0]}
		s.Sockets[0].Drops = uint64(i)
		line.Add(&s)
		if line.points > maxPoints {
			t.Fatalf("%d moments after %d samples: expected at most %d", line.points, i+1, maxPoints)
		}
	}
	x := line.Endpoint(server, client, second1, samples*second1)
	if x.Drops.N != samples-1 || !x.Drops.Known {
		t.Errorf("%+v, expected %d", x.Drops, samples-1)
	}
	for port := range 1 << 16 {
		s := *base
		s.At = second1 * machine.Instant(samples+port+1)
		s.Sockets = []Socket{base.Sockets[0]}
		s.Sockets[0].Inode = uint64(port)
		line.Add(&s)
	}
	if line.series > maxSeries || !line.refused {
		t.Errorf("%d counters, refused %v", line.series, line.refused)
	}
}

func TestDevice(t *testing.T) {
	var line Timeline
	for i := 1; i <= 3; i++ {
		s := taken(t, second1*machine.Instant(i))
		s.Devices[1].TransmitDrops += uint64(i * 10)
		line.Add(s)
	}
	in, out := line.Device("eth0", server, second1, 3*second1)
	if in.N != 0 || out.N != 20 || !out.Known {
		t.Errorf("in %+v, out %+v", in, out)
	}
	if _, out := line.Device("eth1", server, second1, 3*second1); out.Known {
		t.Errorf("an unknown interface: %+v", out)
	}
}

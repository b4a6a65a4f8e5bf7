package rebinding

import (
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// game is the traffic of one player with a server, in which the player moves to no other address.
type game struct {
	list   []datagram
	client netip.AddrPort
}

// games simulates games of three protocols. Those of one kind begin at another number than 0.
func games(t *testing.T) (list [][]game) {
	t.Helper()
	for _, kind := range [][]string{
		{"gaffer:reliable"},
		{"gaffer:reliable", "--first", "5000"},
		{"gaffer:article", "--loss", "5%"},
		{"riptide:2.2.1"},
		{"srdp", "--loss", "5%"},
	} {
		var same []game
		for seed := range 6 {
			same = append(same, simulated(t, seed+1, kind...))
		}
		list = append(list, same)
	}
	return list
}

// simulated is a game of ten seconds of one client and a server.
func simulated(t *testing.T, seed int, kind ...string) (g game) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "game.pcapng")
	args := append([]string{"simulate"}, kind...)
	args = append(args, "--seed", strconv.Itoa(seed), "--duration", "10s", "--jitter", "5ms", "--tap", "b", "-w", path)
	if out, err := exec.Command(testenv.Ackscope(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	g.list = load(t, path)
	if g.client = g.list[0].src; g.client.Port() == simulatedPort { // SRDP's server may speak first
		g.client = g.list[0].dst
	}
	return g
}

// simulatedPort is the server's.
const simulatedPort = 40000

// played returns a game from port on, begun at a time, of which the tap sees the part from first
// to last.
func (g *game) played(port uint16, begun, first, last time.Duration) (list []datagram) {
	zero := g.list[0].at
	for _, d := range g.list {
		if after := d.at.Sub(zero) + begun; after < first || after > last {
			continue
		}
		d.at = machine.Instant(begun) + d.at - zero
		to := netip.AddrPortFrom(g.client.Addr(), port)
		if d.src == g.client {
			d.src = to
		} else {
			d.dst = to
		}
		list = append(list, d)
	}
	return list
}

// In 1,000 pairs of players behind one address, none are joined at certain, and hardly any at
// likely. In every third pair nothing but the numbers tells them apart. The first player falls
// silent, and at once the second one is seen for the first time, in the middle of its game.
func TestPairs(t *testing.T) {
	all := games(t)
	chance := rand.New(rand.NewPCG(1, 2))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(chance.Int64N(int64(most-least)))
	}
	const never = time.Hour
	names := []string{"at the same time", "one after the other", "appears when the other one vanishes"}
	var counted [3]map[machine.Certainty]int
	for pair := range testenv.Rounds(200, 1000, 10000) {
		same := all[chance.IntN(len(all))]
		one, two := &same[chance.IntN(3)], &same[3+chance.IntN(3)]
		begun, left, way := time.Duration(0), never, pair%3
		seen := time.Duration(0)
		switch way {
		case 0:
			begun = between(0, 8*time.Second) * time.Duration(chance.IntN(2))
			if chance.IntN(2) == 0 {
				left = between(time.Second, 9*time.Second)
			}
		case 1:
			left = between(time.Second, 9*time.Second)
			begun = left + between(0, 2*time.Second)
		case 2:
			left = between(2*time.Second, 9*time.Second)
			begun = between(0, 8*time.Second) - 4*time.Second
			seen = left + between(0, 100*time.Millisecond)
		}
		list := append(one.played(30001, 0, 0, left), two.played(30002, begun, seen, never)...)
		slices.SortStableFunc(list, func(x, y datagram) int { return int(x.at - y.at) })
		if len(list) == 0 {
			continue
		}
		if list[0].at < 0 {
			for i := range list {
				list[i].at += machine.Instant(4 * time.Second)
			}
		}
		s := analysed(t, plain, list)
		if counted[way] == nil {
			counted[way] = map[machine.Certainty]int{}
		}
		for _, f := range s.Flows() {
			if f.Was != nil {
				counted[way][f.Was.Certainty]++
				if f.Was.Certainty >= machine.Likely && way < 2 {
					t.Errorf("pair %d, %s: %+v", pair, names[way], f.Was)
				}
			}
		}
	}
	for way, n := range counted {
		t.Logf("%s: %v", names[way], n)
		if n[machine.Certain] > 0 || n[machine.Likely] > 10 {
			t.Errorf("%s: joined %v", names[way], n)
		}
	}
}

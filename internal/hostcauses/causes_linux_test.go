package hostcauses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/internal/testnet"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// header is the article's, with a CRC of the datagram.
var header = func() *wire.Profile {
	p, _, err := wire.Builtin(wire.ArticleCRC32)
	if err != nil {
		panic(err)
	}
	id := uint32(0x41434b53)
	p.ProtocolID = &id
	return p
}()

// end is one endpoint of the article's protocol.
type end struct {
	socket *socket
	peer   *unix.SockaddrInet4
	next   uint32
	newest uint32
	bits   uint64
	heard  bool
	refuse func(sequence uint32) bool // nil to take all
	size   func() int                 // of the next payload, in bytes
}

// read takes what has come.
func (e *end) read() {
	var buf [2048]byte
	for {
		n, ok := e.socket.read(buf[:])
		if !ok {
			return
		}
		var p wire.Packet
		if err := header.Parse(buf[:n], n, &p); err != nil || e.refuse != nil && e.refuse(p.Header.Sequence) {
			continue
		}
		s := p.Header.Sequence
		switch d := int32(s - e.newest); {
		case !e.heard:
			e.heard, e.newest, e.bits = true, s, 1
		case d > 0:
			e.bits = e.bits<<min(d, 32) | 1
			e.newest = s
		case d > -32:
			e.bits |= 1 << -d
		}
	}
}

// write sends a packet.
func (e *end) write() {
	h := wire.Header{Sequence: e.next, Ack: e.newest, AckBits: e.bits}
	e.next++
	p := wire.Packet{Header: h, HasHeader: true, Sequence: h.Sequence}
	payload := make([]byte, e.size())
	for i := range payload {
		payload[i] = byte(int(h.Sequence)*31 + i*7)
	}
	e.socket.write(header.Append(nil, &p, payload), e.peer)
}

// game is a run: a server and a client that send 60 packets a second.
type game struct {
	server, client end
	serverReads    func(tick int) bool // nil for always
	tick           func(tick int)      // called before each frame; may be nil
	burst          int                 // packets of the client in each frame
	held           time.Duration       // how long this machine held up a frame at most, unplanned
}

const (
	frame = time.Second / 60
	ticks = 60 * 3
)

func (g *game) play() {
	begin := time.Now()
	for tick := range ticks {
		if g.tick != nil {
			g.tick(tick)
		}
		if (g.serverReads == nil || g.serverReads(tick)) && !g.server.socket.closed {
			g.server.read()
		}
		g.client.read()
		if !g.server.socket.closed {
			g.server.write()
		}
		for range max(1, g.burst) {
			g.client.write()
		}
		g.held = max(g.held, time.Since(begin.Add(time.Duration(tick+1)*frame)))
		time.Sleep(time.Until(begin.Add(time.Duration(tick+1) * frame)))
	}
}

// cause is something that is planted.
type cause struct {
	name    string
	expect  string   // the verdict
	allowed []string // further verdicts that are true too
	plant   func(t *testing.T, r *rand.Rand, g *game, router, peer *namespace)
}

func small() int { return 60 }

// mixed sends every fourth packet large.
func mixed(r *rand.Rand) func() int {
	return func() int {
		if r.IntN(4) == 0 {
			return 1100 + r.IntN(100)
		}
		return 40 + r.IntN(60)
	}
}

var causes = []cause{
	{"none", "", nil, func(*testing.T, *rand.Rand, *game, *namespace, *namespace) {}},
	{"reader sleeps", "late", nil, func(_ *testing.T, r *rand.Rand, g *game, _, _ *namespace) {
		from, length := 40+r.IntN(20), 75+r.IntN(30)
		g.serverReads = func(tick int) bool { return tick < from || tick > from+length }
	}},
	{"receive buffer full", "socket", []string{"late"}, func(_ *testing.T, r *rand.Rand, g *game, _, _ *namespace) {
		g.burst = 2 + r.IntN(3)
		each := 12 + r.IntN(12)
		g.serverReads = func(tick int) bool { return tick < 60 || tick%each == 0 }
		_ = unix.SetsockoptInt(g.server.socket.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 2304+r.IntN(4000))
	}},
	{"port closed", "closed", nil, func(_ *testing.T, r *rand.Rand, g *game, _, _ *namespace) {
		at := 60 + r.IntN(40)
		g.tick = func(tick int) {
			if tick == at {
				g.server.socket.close()
			}
		}
	}},
	{"application refuses", "application", nil, func(_ *testing.T, r *rand.Rand, g *game, _, _ *namespace) {
		each := uint32(5 + r.IntN(20))
		g.server.refuse = func(s uint32) bool { return s%each == each-1 }
	}},
	{"path of small MTU", "path", []string{"elsewhere"}, func(t *testing.T, r *rand.Rand, g *game, router,
		peer *namespace,
	) {
		mtu := strconv.Itoa(600 + r.IntN(500))
		router.run(t, "ip link set vethr mtu "+mtu)
		peer.run(t, "ip link set vethp mtu "+mtu)
		g.server.size = mixed(r)
		_ = unix.SetsockoptInt(g.server.socket.fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	}},
	{"veth drops, out", "interface", nil, func(t *testing.T, r *rand.Rand, g *game, router, _ *namespace) {
		router.run(t, "ip link set veth1 mtu "+strconv.Itoa(600+r.IntN(400)))
		g.server.size = mixed(r)
	}},
	{"veth drops, in", "interface", nil, func(t *testing.T, r *rand.Rand, g *game, _, _ *namespace) {
		(*namespace)(nil).run(t, "ip link set veth0 mtu "+strconv.Itoa(600+r.IntN(400)))
		g.client.size = mixed(r)
	}},
	{"network loses, out", "elsewhere", nil, func(t *testing.T, r *rand.Rand, g *game, _, peer *namespace) {
		peer.run(t, "ip link set vethp mtu "+strconv.Itoa(600+r.IntN(400)))
		g.server.size = mixed(r)
	}},
	{"network loses, in", "elsewhere", nil, func(t *testing.T, r *rand.Rand, g *game, router, _ *namespace) {
		router.run(t, "ip link set vethr mtu "+strconv.Itoa(600+r.IntN(400)))
		g.client.size = mixed(r)
	}},
}

// Variables of the tests: how often each cause is planted, and which run the child does, with which program.
const (
	runsVariable    = "ACKSCOPE_HOSTCAUSES"
	runVariable     = "ACKSCOPE_HOSTCAUSES_RUN"
	programVariable = "ACKSCOPE_HOSTCAUSES_PROGRAM"
	keepVariable    = "ACKSCOPE_KEEP_CAPTURES"
)

// tally counts what was said of the runs of one cause.
type tally struct{ right, unknown, wrong int }

// TestPlanted plants each cause, and compares what `ackscope findings` says of the capture. A run of package live on
// the same interface is held against the same causes. ACKSCOPE_HOSTCAUSES is the number of runs of each; `make host`
// does 30 and prints the table of docs/host.md.
func TestPlanted(t *testing.T) {
	testenv.Root(t)
	testenv.Grid(t, "each run plays for three seconds")
	t.Setenv(programVariable, testenv.Ackscope(t))
	runs, err := strconv.Atoi(os.Getenv(runsVariable))
	if err != nil {
		runs = 1
	}
	counts := make([][2]tally, len(causes))
	var mu sync.Mutex
	t.Run("runs", func(t *testing.T) {
		for run := range runs {
			for i := range causes {
				t.Run(fmt.Sprintf("%s/%d", causes[i].name, run), func(t *testing.T) {
					t.Parallel()
					said := plantOnce(t, i, run)
					mu.Lock()
					defer mu.Unlock()
					for by, words := range said {
						counts[i][by].add(t, &causes[i], words)
					}
				})
			}
		}
	})
	var table strings.Builder
	for by, title := range []string{"planted", "the same, live"} {
		fmt.Fprintf(&table, "%-22s %-12s %5s %7s %5s\n", title, "verdict", "right", "unknown", "wrong")
		for i := range counts {
			c, expect := &counts[i][by], causes[i].expect
			if expect == "" {
				expect = "-"
			}
			fmt.Fprintf(&table, "%-22s %-12s %5d %7d %5d\n", causes[i].name, expect, c.right, c.unknown, c.wrong)
		}
	}
	t.Logf("\n%s", table.String())
}

// add compares the verdicts of one run with the cause.
func (c *tally) add(t *testing.T, x *cause, said []string) {
	for _, word := range said {
		if word != x.expect && word != "unknown" && !slices.Contains(x.allowed, word) {
			c.wrong++
			t.Errorf("%q was said, expected %q", said, x.expect)
			return
		}
	}
	if x.expect == "" || slices.Contains(said, x.expect) {
		c.right++
	} else {
		c.unknown++
	}
}

// plantOnce does one run in a child, and returns what the program said, and what package live.
func plantOnce(t *testing.T, number, run int) (said [2][]string) {
	t.Helper()
	var out []byte
	var err error
	for range 10 {
		child := exec.Command(os.Args[0], "-test.run=^TestRun$", "-test.v")
		child.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", runVariable, number, run))
		if out, err = child.CombinedOutput(); !bytes.Contains(out, []byte(heldMark)) {
			break // otherwise this machine added a cause of its own
		}
	}
	for by, mark := range []string{saidMark, liveMark} {
		_, text, ok := strings.Cut(string(out), mark)
		text, _, _ = strings.Cut(text, "\n")
		if err != nil || !ok {
			t.Fatalf("%v\n%s", err, out)
		}
		said[by] = strings.Fields(text)
	}
	if testing.Verbose() {
		t.Logf("%s", out)
	}
	return said
}

// saidMark and liveMark stand before the verdicts in the output of a child. heldMark stands where this machine was too
// slow for the run: a frame that is late by mostHeld is a reader that sleeps.
const (
	saidMark = "said: "
	liveMark = "said live: "
	heldMark = "held up: "
	mostHeld = 50 * time.Millisecond
)

// TestRun is one run of TestPlanted, in namespaces of its own.
func TestRun(t *testing.T) {
	number, seed := 0, uint64(0)
	if _, err := fmt.Sscanf(os.Getenv(runVariable), "%d %d", &number, &seed); err != nil {
		return // it is not the child
	}
	if !testnet.Namespaced(t) {
		return
	}
	c := causes[number]
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	router, peer := network(t)
	g := &game{
		server: end{socket: open(t, &serverAt), peer: &clientAt, size: small},
		client: end{peer: &serverAt, size: small},
	}
	peer.do(t, func() { g.client.socket = open(t, &clientAt) })
	c.plant(t, r, g, router, peer)
	path := filepath.Join(t.TempDir(), "run.pcapng")
	if keep := os.Getenv(keepVariable); keep != "" {
		path = filepath.Join(keep, strings.NewReplacer(" ", "-", ",", "").Replace(c.name)+".pcapng")
	}
	beside := beginLive(t)
	captureRun(t, path, g)
	rows := beside()
	if g.held > mostHeld {
		t.Logf("%s%v", heldMark, g.held)
		return
	}
	lines, err := exec.Command(os.Getenv(programVariable), "findings", "--json", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", saidMark, strings.Join(verdicts(t, lines), " "))
	t.Logf("%s%s", liveMark, strings.Join(verdicts(t, rows), " "))
	if testing.Verbose() {
		text, err := exec.Command(os.Getenv(programVariable), "findings", path).Output()
		t.Logf("%v\n%s", err, text)
	}
}

// captureRun captures a game on veth0.
func captureRun(t *testing.T, path string, g *game) {
	t.Helper()
	capture := exec.Command(os.Getenv(programVariable), "capture", "-i", "veth0", "-f", "udp or icmp", "-w", path,
		"--keep-root")
	var said bytes.Buffer
	capture.Stderr = &said
	if err := capture.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if info, err := os.Stat(path); err == nil && info.Size() >= 0 {
			break // it is created after the interface is open
		}
		if time.Since(begin) > 30*time.Second {
			t.Fatal("the capture did not begin")
		}
	}
	g.play()
	time.Sleep(100 * time.Millisecond) // for the last ICMP errors
	if err := capture.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := capture.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
}

// verdicts returns what findings blame, each once.
func verdicts(t *testing.T, lines []byte) (list []string) {
	add := func(word string) {
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	for line := range bytes.Lines(lines) {
		var x struct{ Rule, Host string }
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		switch x.Rule {
		case "icmp-mtu", "large-lost":
			add("path")
		case "socket-dropped":
			add("socket")
		case "read-late":
			add("late")
		}
		if x.Host != "" {
			add(x.Host)
		}
	}
	return list
}

package commoncause

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// In an IPv4 header without options, and in the UDP header behind it.
const (
	sourceAt   = 12
	targetAt   = 16
	checksumAt = 10
	udpSumAt   = 20 + 6
)

const variants = 8 // runs of each loss; the players share them

// packet is a frame of the capture that all players are copies of.
type packet struct {
	at         machine.Instant
	data       []byte
	fromClient bool
}

// runs are simulated games at a loss of the client's packets, captured at the server.
type runs struct{ made map[string][][]packet }

func (r *runs) of(t *testing.T, loss string, variant int) []packet {
	t.Helper()
	if r.made == nil {
		r.made = map[string][][]packet{}
	}
	for len(r.made[loss]) <= variant {
		path := filepath.Join(t.TempDir(), "run.pcapng")
		seed := strconv.Itoa(1 + len(r.made[loss]))
		c := exec.Command(testenv.Ackscope(t), "simulate", "gaffer:reliable", "--loss", loss+"/1%", "--seed", seed,
			"--tap", "b", "-w", path)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		r.made[loss] = append(r.made[loss], load(t, path))
	}
	return r.made[loss][variant]
}

// load reads a capture of one player.
func load(t *testing.T, path string) (list []packet) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	for {
		var f capture.Frame
		var p capture.Packet
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if decoder.Decode(&f, &p); p.Transport == capture.UDP {
			data := slices.Clone(f.Data[len(f.Data)-p.Length-28:]) // from the IPv4 header on
			list = append(list, packet{f.At, data, p.Src == netip.MustParseAddrPort("10.0.0.1:30000")})
		}
	}
}

// player is one copy of the capture.
type player struct {
	client [4]byte
	shift  time.Duration
	game   []packet
}

// outage is a time in which no packet of one direction passes, or none of both.
type outage struct {
	at         machine.Instant
	fromServer bool
	fromClient bool
}

const outageTook = 700 * time.Millisecond

// write writes a capture of these players at the server.
func write(t *testing.T, players []player, outages []outage) string {
	t.Helper()
	type copied struct {
		at   machine.Instant
		data []byte
	}
	var all []copied
	for _, p := range players {
		for i := range p.game {
			r := &p.game[i]
			at := r.at.Add(p.shift)
			if slices.ContainsFunc(outages, func(o outage) bool {
				return at > o.at && at < o.at.Add(outageTook) && (r.fromClient && o.fromClient || !r.fromClient && o.fromServer)
			}) {
				continue
			}
			data := slices.Clone(r.data)
			address := targetAt
			if r.fromClient {
				address = sourceAt
			}
			copy(data[address:], p.client[:])
			clear(data[checksumAt : checksumAt+2]) // 0 is a header that the card sums up
			clear(data[udpSumAt : udpSumAt+2])
			all = append(all, copied{at, data})
		}
	}
	slices.SortStableFunc(all, func(x, y copied) int { return int(x.at - y.at) })
	path := filepath.Join(t.TempDir(), "made.pcapng")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := capture.NewWriter(file, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(capture.Interface{LinkType: capture.LinkRaw}); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		f := capture.Frame{At: c.at, LinkType: capture.LinkRaw, Length: len(c.data), Data: c.data}
		if err := w.WriteFrame(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

type verdict struct {
	Kind, Trouble, Group, Text string
	Moments                    int
}

func ask(t *testing.T, path string) []verdict {
	t.Helper()
	c := exec.Command(testenv.Ackscope(t), "overview", "--json", path)
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var x struct {
		Common *struct{ Causes []verdict } `json:"common_cause"`
	}
	if err := json.Unmarshal(out, &x); err != nil {
		t.Fatal(err)
	}
	if x.Common == nil {
		t.Fatal("common_cause is missing: the program compared nothing")
	}
	return x.Common.Causes
}

// TestThroughTheProgram plants causes in real packets of 40 players, or of 200.
func TestThroughTheProgram(t *testing.T) {
	count := 40
	if os.Getenv("ACKSCOPE_CAUSE") != "" {
		count = 200
	}
	var games runs
	first := games.of(t, "1%", 0)[0].at
	at := func(seconds ...float64) (list []machine.Instant) {
		for _, s := range seconds {
			list = append(list, first.Add(time.Duration(s*float64(time.Second))))
		}
		return list
	}
	troubles := at(5, 8, 11)
	for _, c := range []struct {
		name      string
		loss      func(*player, int) string
		server    bool // outages of the server's packets
		client    bool // outages of the clients' packets
		kind      string
		verdict   string
		suspected bool
	}{
		{name: "none", loss: func(*player, int) string { return "3%" }},
		{
			name: "prefix", kind: "prefix", verdict: "203.0.3.0/24",
			loss: func(p *player, _ int) string {
				if p.client[2] == 3 {
					return "12%"
				}
				return "3%"
			},
		},
		{
			name: "player", kind: "player", verdict: "",
			loss: func(_ *player, i int) string {
				if i == 7 {
					return "20%"
				}
				return "2%"
			},
		},
		{name: "server", kind: "server", server: true, loss: func(*player, int) string { return "1%" }},
		{
			name: "tap", kind: "server", server: true, client: true, suspected: true,
			loss: func(*player, int) string { return "1%" },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(23, 1))
			var players []player
			for i := range count {
				p := player{client: [4]byte{203, 0, byte(i % 10), byte(1 + i)}}
				p.shift = time.Duration(random.Float64() * float64(4*time.Second))
				p.game = games.of(t, c.loss(&p, i), i%variants)
				players = append(players, p)
			}
			var outages []outage
			for _, x := range troubles {
				if c.server || c.client {
					outages = append(outages, outage{x, c.server, c.client})
				}
			}
			got := ask(t, write(t, players, outages))
			for i := range got {
				t.Logf("%s", got[i].Text)
			}
			switch {
			case c.kind == "" && len(got) > 0:
				t.Fatalf("nothing was planted, and it says %+v", got)
			case c.kind == "":
			case len(got) != 1 || got[0].Kind != c.kind || c.verdict != "" && got[0].Group != c.verdict:
				t.Fatalf("want %s %s, got %+v", c.kind, c.verdict, got)
			case strings.Contains(got[0].Text, "the machine that captured") != c.suspected:
				t.Errorf("%q: the capturing machine is suspected: %v, expected %v", got[0].Text, !c.suspected, c.suspected)
			case c.kind == "server" && got[0].Moments != len(troubles):
				t.Errorf("%d stalls, want %d", got[0].Moments, len(troubles))
			}
		})
	}
}

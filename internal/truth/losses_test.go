package truth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

var writeLosses = flag.Bool("update", false, "rewrite the table of losses")

// lossLine is a line of a log that tells what was sent and what came.
type lossLine struct {
	Event, Endpoint, Dir string
	Seq                  *int
	Conn                 int
	Flow                 *int
	Client               string
	Toward               string  `json:"relay_toward_server"`
	In                   float64 `json:"datagrams_in"`
	Dropped              float64
	C2SIn                float64 `json:"c2s_in"`
	C2SDropped           float64 `json:"c2s_dropped"`
	S2CIn                float64 `json:"s2c_in"`
	S2CDropped           float64 `json:"s2c_dropped"`
	RelayPort            int     `json:"relay_port"`
	ServerPort           int     `json:"server_port"`
}

// loggedLoss is what the log of a run says of the loss: of the client's packets, then of
// the server's. Packets count where the endpoints log their numbers, and else datagrams.
type loggedLoss struct {
	sent, lost  [2]float64
	connections int
	clients     []string // addresses of the client as the two taps see it, or empty
	ports       []string // of the server and the relay
}

func (l *loggedLoss) share(way int) float64 { return l.lost[way] / max(1, l.sent[way]) }

// numbersOf collects unwrapped sequence numbers.
type numbersOf struct {
	last int
	met  bool
	all  map[int]bool
}

func (n *numbersOf) add(seq, near int) {
	if !n.met {
		n.met, n.all, n.last = true, map[int]bool{}, near
	}
	number := n.last + int(int16(uint16(seq)-uint16(n.last)))
	n.last = max(n.last, number)
	n.all[number] = true
}

// logOf reads the losses of a run from its log. It returns false if the log does not tell.
func logOf(t *testing.T, path string) (l loggedLoss, ok bool) {
	t.Helper()
	var sent, came [2]numbersOf
	flows, conns := map[int]bool{}, map[int]bool{}
	numbered := !strings.Contains(path, "yojimbo")
	scan := bufio.NewScanner(bytes.NewReader(unzip(t, path)))
	scan.Buffer(nil, 4<<20)
	for scan.Scan() {
		var x lossLine
		if json.Unmarshal(scan.Bytes(), &x) != nil {
			continue // values of other types in lines that say nothing here
		}
		way := 0
		if x.Endpoint == "server" {
			way = 1
		}
		switch x.Event {
		case "scenario":
			l.ports = []string{":" + strconv.Itoa(x.RelayPort), ":" + strconv.Itoa(x.ServerPort)}
		case "flow":
			flows[*x.Flow] = true
			l.clients = []string{x.Client, x.Toward}
		case "final":
			if x.Endpoint == "relay" {
				if way = 0; x.Dir == "s2c" {
					way = 1
				}
				l.sent[way], l.lost[way], ok = x.In, x.Dropped, true
			}
		case "end":
			if x.Endpoint == "relay" {
				l.sent, l.lost, ok = [2]float64{x.C2SIn, x.S2CIn}, [2]float64{x.C2SDropped, x.S2CDropped}, true
			}
		case "sent":
			conns[x.Conn] = true
			if x.Seq != nil && numbered {
				sent[way].add(*x.Seq, *x.Seq)
			}
		case "received", "rejected", "stale", "duplicate":
			if x.Seq != nil && numbered && sent[1-way].met {
				came[way].add(*x.Seq, *x.Seq)
			}
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	l.connections = max(len(flows), len(conns), 1)
	for way := range sent {
		if !sent[way].met || !came[1-way].met {
			continue
		}
		l.sent[way], l.lost[way] = float64(len(sent[way].all)), 0
		for number := range sent[way].all {
			if !came[1-way].all[number] {
				l.lost[way]++
			}
		}
	}
	return l, ok
}

// lossFlow is what flows --json says of the loss.
type lossFlow struct {
	A, B, Protocol, Vantage string
	LeastA                  *float64 `json:"loss_least_a"`
	LeastB                  *float64 `json:"loss_least_b"`
	MostA                   *float64 `json:"loss_most_a"`
	MostB                   *float64 `json:"loss_most_b"`
	PathA                   *float64 `json:"path_loss_a"`
	PathB                   *float64 `json:"path_loss_b"`
}

// lossOverstated lists where the least is too much, and why.
var lossOverstated = map[string]string{
	"u210_reorder.server b": "one notify message came when no header covered it any more",
}

// rounded is how far the figures of flows --json are rounded at most.
const rounded = 1e-6

// lossUntold lists what no tap shows, and why.
var lossUntold = map[string]string{
	"article-chunks-loss25.client b":   "nothing numbers or acks the acks of slices",
	"article-chunks-loss25.server a":   "slices that never came have no number",
	"article-chunks-loss25.server b":   "nothing numbers or acks the acks of slices",
	"article-connect.client a":         "packets of the handshake have no numbers",
	"article-connect.client b":         "packets of the handshake have no numbers",
	"article-connect.server a":         "packets of the handshake have no numbers",
	"article-connect.server b":         "packets of the handshake have no numbers",
	"article-fragments-loss5.client a": "the sample sends no acks",
	"article-fragments-loss5.server b": "the sample sends no acks",
	"u210_falseack.server a":           "what was missing came again, and after outages the most is open",
}

// TestLosses compares the loss of each direction with the logs, for every capture that has
// one. Where the tap tells it, it is right to one point. Elsewhere the log's value lies
// within the bounds. Where headers come back densely, the bounds are a point apart.
func TestLosses(t *testing.T) {
	folder := filepath.Dir(testenv.Capture(t, "README.md"))
	logs, err := filepath.Glob(filepath.Join(folder, "*.truth.jsonl.gz"))
	if err != nil || len(logs) < 100 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	var table bytes.Buffer
	fmt.Fprintf(&table, "%-44s %6s  %s\n", "capture and side", "log", "said")
	lossy, told := 0, 0
	for _, path := range logs {
		base := strings.TrimSuffix(filepath.Base(path), ".truth.jsonl.gz")
		if strings.HasPrefix(base, "t") || strings.Contains(base, "midstream") {
			continue // TCP loses nothing; the log covers more than the capture
		}
		l, ok := logOf(t, path)
		if !ok || l.connections > 1 {
			continue
		}
		captures, err := filepath.Glob(filepath.Join(folder, base+".*.pcap*.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, capture := range captures {
			tap := strings.Split(filepath.Base(capture)[len(base)+1:], ".")[0]
			f, ok := lossFlowOf(t, capture)
			if !ok {
				continue
			}
			for way := range 2 {
				x, least, most, path := "a", f.LeastA, f.MostA, f.PathA
				if (way == 0) != l.isClient(f.A) {
					x, least, most, path = "b", f.LeastB, f.MostB, f.PathB
				}
				name, want := base+"."+tap+" "+x, l.share(way)
				if want >= 0.03 {
					lossy++
				}
				said := "?"
				switch {
				case least == nil || most == nil:
					if want >= 0.03 && lossUntold[name] == "" && !endToEndOpen(base, tap, way) {
						t.Errorf("%s: the log has a loss of %.1f%%, and nothing bounds it", name, 100*want)
					}
				case *most-*least <= 0.01:
					said = fmt.Sprintf("%.1f", 100**path)
					told++
					if d := *path - want; d < -0.01 || d > 0.01 {
						t.Errorf("%s: told as %.1f%%, the log has %.1f%%", name, 100**path, 100*want)
					}
				default:
					said = fmt.Sprintf("%.1f to %.1f", 100**least, 100**most)
					if *least > want+rounded && lossOverstated[name] == "" || want > *most+rounded {
						t.Errorf("%s: said to be %s, the log has %.1f%%", name, said, 100*want)
					}
					if dense(base) {
						t.Errorf("%s: said to be %s, though the headers are dense", name, said)
					}
				}
				if want >= 0.03 {
					fmt.Fprintf(&table, "%-44s %6.1f  %s\n", name, 100*want, said)
				}
				if want == 0 && least != nil && *least > 0.01 {
					t.Errorf("%s: nothing was lost, at least %.1f%% is said", name, 100**least)
				}
			}
		}
	}
	if lossy < 120 || told < 100 {
		t.Errorf("%d directions lose 3 %%, %d are told", lossy, told)
	}
	golden := filepath.Join("testdata", "losses.txt")
	if *writeLosses {
		if err := os.WriteFile(golden, table.Bytes(), 0o644); err != nil { //nolint:gosec // a table for people
			t.Fatal(err)
		}
	}
	if before, err := os.ReadFile(golden); err != nil || !bytes.Equal(before, table.Bytes()) {
		t.Errorf("%s has another table than these captures (%v): run the test with -update, and check the diff", golden, err)
	}
}

// isClient reports whether an address is the client's.
func (l *loggedLoss) isClient(address string) bool {
	for _, c := range l.clients {
		if c == address {
			return true
		}
	}
	for _, port := range l.ports {
		if strings.HasSuffix(address, port) {
			return false
		}
	}
	return len(l.clients) == 0
}

// endToEndOpen reports whether a tap at the sender sees no acks: netcode encrypts those of
// yojimbo.
func endToEndOpen(base, tap string, way int) bool {
	return strings.HasPrefix(base, "yojimbo") && (tap == "client") == (way == 0)
}

// dense reports whether every packet of a run is of a kind that headers ack, and headers
// come back at least every 16 packets.
func dense(base string) bool {
	switch {
	case strings.Contains(base, "loss9"), base == "reliable-sparse-acks":
		return false // most headers are lost, or hardly any is sent
	case base == "reliable-reject-truncate", base == "reliable-stale":
		return false // packets arrive and are never acked
	case base == "reliable-frag-heavy":
		return false // 200 packets: one point is two packets, and more are under way at the end
	}
	for _, form := range []string{"reliable-", "oldreliable-", "plain-", "crc32-"} {
		if strings.HasPrefix(base, form) {
			return true
		}
	}
	return false
}

// lossFlowOf returns the flow of a capture that has one flow of a known protocol.
func lossFlowOf(t *testing.T, capture string) (f lossFlow, ok bool) {
	t.Helper()
	n := 0
	for line := range bytes.Lines(testenv.Output(t, testenv.Ackscope(t), "flows", "--json", capture)) {
		var x lossFlow
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		if x.Protocol != "" {
			f = x
			n++
		}
	}
	return f, n == 1
}

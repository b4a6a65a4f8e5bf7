package truth

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/pcapgo"

	"github.com/ackscope/ackscope/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// line is one line of a log; see testdata/pcaps/README.md.
type line struct {
	T          float64  `json:"t"`
	Endpoint   string   `json:"endpoint"`
	Conn       int      `json:"conn"`
	Event      string   `json:"event"`
	Seq        int      `json:"seq"`
	Bytes      int      `json:"bytes"`
	Ack        int      `json:"ack"`
	AckBits    string   `json:"ack_bits"`
	Hex        string   `json:"hex"`
	FragmentID *int     `json:"fragment_id"`
	RTTms      float64  `json:"rtt_ms"`
	RTT        float64  `json:"rtt"`         // in stats and final: smoothed, ms
	PacketLoss *float64 `json:"packet_loss"` // in stats and final: percent
	Addr       string   `json:"addr"`
	Port       int      `json:"port"`
}

// who is the key of a line of the log: endpoint, connection of the endpoint,
// event.
type who struct {
	endpoint string
	conn     int
	event    string
}

// run is one recorded scenario: the logs of both endpoints.
type run struct {
	name    string
	clients []netip.AddrPort
	server  netip.AddrPort
	params  map[string]string
	by      map[who][]line
	joined  map[who]int            // by endpoint and conn: the result of farConn
	peers   map[netip.AddrPort]int // at the server: relay address -> conn
	liar    bool                   // its receiver never clears old entries, so its acks prove nothing
}

// captureName excludes the article's samples and yojimbo's encrypted runs,
// whose logs differ, and other protocols.
var captureName = regexp.MustCompile(`^((?:reliable|oldreliable|plain|crc32)-.*)\.(client|server)\.pcap(ng)?\.gz$`)

func readRun(t *testing.T, name string) *run {
	t.Helper()
	return parseRun(t, name, unzip(t, testenv.Capture(t, name+".truth.jsonl.gz")))
}

// parseRun reads the logs of a run.
func parseRun(t *testing.T, name string, text []byte) *run {
	t.Helper()
	r := &run{
		name: name, params: map[string]string{}, by: map[who][]line{}, joined: map[who]int{},
		peers: map[netip.AddrPort]int{},
	}
	scan := bufio.NewScanner(bytes.NewReader(text))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v in %.80s", name, err, scan.Bytes())
		}
		switch l.Event {
		case "scenario":
			var head struct {
				ClientAddr  netip.Addr     `json:"client_addr"`
				ClientPorts []uint16       `json:"client_ports"`
				ServerAddr  netip.Addr     `json:"server_addr"`
				ServerPort  uint16         `json:"server_port"`
				Params      map[string]any `json:"params"` // text of recorded runs, numbers of simulated ones
			}
			if err := json.Unmarshal(scan.Bytes(), &head); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, port := range head.ClientPorts {
				r.clients = append(r.clients, netip.AddrPortFrom(head.ClientAddr, port))
			}
			r.server = netip.AddrPortFrom(head.ServerAddr, head.ServerPort)
			for name, value := range head.Params {
				r.params[name] = fmt.Sprint(value)
			}
		case "peer":
			addr, err := netip.ParseAddr(l.Addr)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r.peers[netip.AddrPortFrom(addr, uint16(l.Port))] = l.Conn
		}
		k := who{l.Endpoint, l.Conn, l.Event}
		r.by[k] = append(r.by[k], l)
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	if len(r.clients) == 0 {
		t.Fatalf("%s: the log has no scenario line", name)
	}
	_, err := os.Stat(filepath.Join(testenv.Module(t), "testdata", "pcaps", name+".falseacks.json"))
	r.liar = err == nil
	return r
}

// pps returns the frames a second of an endpoint. In each frame it reads and
// sends once.
func (r *run) pps(endpoint string) float64 {
	for _, key := range []string{endpoint[:1] + "pps", "pps"} {
		if v, err := strconv.ParseFloat(r.params[key], 64); err == nil && v > 0 {
			return v
		}
	}
	return 60
}

func (r *run) loopback() bool { return r.params["lo"] != "" }

// near returns the endpoint at the tap, and its connection, for a flow between
// two addresses.
func (r *run) near(tap string, a, b netip.AddrPort) (endpoint string, conn int, at netip.AddrPort, ok bool) {
	for _, pair := range [][2]netip.AddrPort{{a, b}, {b, a}} {
		one, other := pair[0], pair[1]
		if i := slices.Index(r.clients, one); i >= 0 && (tap == "client" || r.loopback()) {
			return "client", i, one, true
		}
		if conn, known := r.peers[other]; known && one == r.server && (tap == "server" || r.loopback()) {
			return "server", conn, one, true
		}
	}
	return "", 0, netip.AddrPort{}, false
}

// farConn returns the far endpoint's number of a connection. The server numbers
// connections by arrival, and nothing in the logs connects the numbers. So
// farConn compares the sizes of received packets with those that the near end
// sent.
func (r *run) farConn(near string, conn int) int {
	k := who{endpoint: near, conn: conn}
	if _, known := r.joined[k]; !known {
		r.joined[k] = r.joinConn(near, conn)
	}
	return r.joined[k]
}

func (r *run) joinConn(near string, conn int) int {
	sizes := map[int]int{}
	for _, l := range r.by[who{near, conn, "sent"}] {
		if _, seen := sizes[l.Seq]; !seen {
			sizes[l.Seq] = l.Bytes
		}
	}
	best, most := conn, math.MinInt
	for k, lines := range r.by {
		if k.endpoint != other(near) || k.event != "received" {
			continue
		}
		fit := 0
		for _, l := range lines {
			if size, sent := sizes[l.Seq]; sent && size == l.Bytes {
				fit++
			} else {
				fit--
			}
		}
		if fit > most {
			best, most = k.conn, fit
		}
	}
	return best
}

func other(endpoint string) string {
	if endpoint == "client" {
		return "server"
	}
	return "client"
}

// captured is a shipped capture with a log, and with a tap in its name.
type captured struct {
	path, name, tap string // name: of the run; tap: client or server
	first, last     float64
}

// captures returns the captures that the oracles check.
func captures(t *testing.T) (out []captured) {
	t.Helper()
	dir := filepath.Join(testenv.Module(t), "testdata", "pcaps")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		m := captureName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, m[1]+".truth.jsonl.gz")); err != nil {
			continue
		}
		out = append(out, captured{path: filepath.Join(dir, e.Name()), name: m[1], tap: m[2]})
	}
	if len(out) < 40 {
		t.Fatalf("found %d captures with a log in %s, expected at least 40", len(out), dir)
	}
	return out
}

// span reads the times of the first and last frame with gopacket's readers. No
// analyzer can know what the log has outside of them.
func (c *captured) span(t *testing.T) {
	t.Helper()
	data := unzip(t, c.path)
	var source gopacket.PacketDataSource
	var err error
	if bytes.HasPrefix(data, []byte{0x0a, 0x0d, 0x0d, 0x0a}) {
		source, err = pcapgo.NewNgReader(bytes.NewReader(data), pcapgo.NgReaderOptions{WantMixedLinkType: true})
	} else {
		source, err = pcapgo.NewReader(bytes.NewReader(data))
	}
	if err != nil {
		t.Fatalf("%s: %v", c.path, err)
	}
	c.first, c.last = math.Inf(1), math.Inf(-1)
	for {
		_, info, err := source.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", c.path, err)
		}
		at := seconds(info.Timestamp)
		c.first, c.last = min(c.first, at), max(c.last, at)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}

// addrPort decodes "ip:port" or "[ip6]:port".
type addrPort struct{ netip.AddrPort }

func (a *addrPort) UnmarshalText(text []byte) (err error) {
	a.AddrPort, err = netip.ParseAddrPort(string(text))
	return err
}

// decode decodes JSON lines.
func decode[T any](data []byte) (out []T, err error) {
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var v T
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(out)+1, err)
		}
		out = append(out, v)
	}
}

// fresh returns the run with nothing worked out yet, to be read beside other readers.
func (r *run) fresh() *run {
	c := *r
	c.joined = map[who]int{}
	return &c
}

package realbuilds

import (
	"path/filepath"
	"testing"
)

// Taps, as the names of captures have them.
const (
	client = "client"
	server = "server"
)

// run is a recorded run of two real builds. The client's library may have a
// mistake. The server's has none.
type run struct {
	name     string
	folder   string // in testdata/pcaps; "" for realbuilds
	riptide  bool
	mistake  string         // "" for an honest run
	breaks   map[string]int // by tap: the first frame that no correct endpoint can have sent; 0 for none
	port     bool           // its library is known to differ from the others, so the oracle does not judge it
	restarts bool           // an endpoint resets: the oracle knows one session only
	likely   bool           // a capture that lacks a packet would show the same
	added    bool           // it was recorded after testdata/before.txt was written
	finding  string         // that must be told at both taps, beside any divergence
}

// honest lists the runs whose builds are both unmodified. Cuts, drops and snap
// lengths are made from these.
func (r *run) honest() bool { return r.mistake == "" }

func (r *run) capture(tap string) string { return filepath.Join(r.in(), r.name+"."+tap+".pcap.gz") }

func (r *run) in() string {
	if r.folder == "" {
		return "realbuilds"
	}
	return r.folder
}

func (r *run) taps() (list []string) {
	for _, tap := range []string{client, server} {
		if _, ok := r.breaks[tap]; ok {
			list = append(list, tap)
		}
	}
	return list
}

func at(clientTap, serverTap int) map[string]int {
	return map[string]int{client: clientTap, server: serverTap}
}

// runs are the captures of testdata/pcaps/realbuilds and family. The frames are
// those of the README.
var runs = []run{
	{name: "clean1", breaks: at(0, 0)},
	{name: "clean2", breaks: at(0, 0)},
	{name: "clean3", breaks: at(0, 0)},
	{name: "resetclient", restarts: true, breaks: at(0, 0)},
	{name: "loop31", mistake: "the loop over ack bits ends one early", breaks: at(65, 71)},
	{name: "clear5", mistake: "a jump of the window clears one entry too many", breaks: at(22, 26)},
	{name: "stale19", mistake: "a stale packet overwrites a newer slot", breaks: at(568, 576)},
	{name: "delta7", mistake: "the short form of ack is taken at 256 too", breaks: map[string]int{client: 422}},
	{name: "fragseq12", mistake: "the counter steps for every fragment", likely: true, breaks: at(19, 0)},
	{name: "fragcount14", mistake: "an empty last fragment", breaks: at(125, 124)},
	{name: "rejack6", mistake: "refused packets are acked", breaks: at(0, 0)},
	{name: "nodup9", mistake: "duplicates are handed over", breaks: at(0, 0)},
	{name: "wrap1b", mistake: "newer means larger", finding: "ack-frozen", breaks: at(0, 0)},
	{name: "bitshift", mistake: "bit 0 of ack_bits stands for ack - 1", likely: true, breaks: at(6, 9)},
	{name: "bitslag", mistake: "ack_bits are those of the header before", breaks: at(6, 10)},
	{name: "seqbyte", mistake: "only the low byte of sequence is written", breaks: at(421, 421)},
	{name: "fragsplit", mistake: "fragment 0 is shorter by its header", breaks: at(32, 34)},
	{name: "fraghead", mistake: "fragment 0 has the number of the next packet", breaks: at(3, 5)},
	{name: "prefixbit", mistake: "an unused bit of the prefix is set at times", breaks: at(188, 198)},
	{name: "ackbytes", mistake: "a byte 0xff of ack_bits is written out", breaks: at(20, 23)},
	{name: "acklong", mistake: "ack always takes two bytes", breaks: at(1, 1)},
	{name: "resetserver", added: true, restarts: true, breaks: at(0, 0)},
	{name: "resetboth", added: true, restarts: true, breaks: at(0, 0)},
	{name: "resetslow", added: true, restarts: true, breaks: at(0, 0)},
	{name: "resetearly", added: true, restarts: true, breaks: at(0, 0)},
	{name: "ripR0", riptide: true, breaks: at(0, 0)},
	{name: "ripR1", riptide: true, mistake: "the Ack is written before the window takes the message", breaks: at(4, 6)},
	{name: "ripR3", riptide: true, mistake: "the resend time is taken in milliseconds for seconds", breaks: at(0, 0)},
	{name: "rel12", folder: "family", breaks: at(0, 0)},
	{name: "rely", folder: "family", port: true, breaks: at(0, 0)},
	{name: "head-loss", folder: "family", riptide: true, breaks: at(0, 0)},
	{name: "221-gap", folder: "family", riptide: true, port: true, breaks: at(0, 0)},
}

// TestOracleAgainstReadme: the naive oracle names the frames that the README of
// the captures names, and accuses no server.
func TestOracleAgainstReadme(t *testing.T) {
	for i := range runs {
		r := &runs[i]
		if r.port || r.restarts {
			continue
		}
		for _, tap := range r.taps() {
			for _, b := range r.bound(t, tap) {
				want := 0
				if b.client {
					want = r.breaks[tap]
				}
				if got, why := b.impossible(); got != uint64(want) {
					t.Errorf("%s.%s: %s: the oracle names frame %d (%s), expected %d", r.name, tap, b, got, why, want)
				}
			}
		}
	}
}

// end is one endpoint of a run, as one tap saw it.
type end struct {
	run    *run
	tap    string
	client bool
	addr   string
	list   []datagram
}

func (e end) String() string {
	if e.client {
		return client
	}
	return server
}

// near reports whether the tap stood at this end.
func (e *end) near() bool { return e.client == (e.tap == client) }

// bound returns both ends of a run at a tap. The client sends the first datagram.
func (r *run) bound(t *testing.T, tap string) []end {
	t.Helper()
	list := load(t, r.capture(tap)).datagrams()
	first := list[0]
	return []end{{r, tap, true, first.from.String(), list}, {r, tap, false, first.to.String(), list}}
}

func (e *end) impossible() (uint64, string) {
	side := e.list[0].from
	if !e.client {
		side = e.list[0].to
	}
	if e.run.riptide {
		return impossibleRiptide(e.list, side, e.near())
	}
	return impossible(e.list, side, e.near())
}

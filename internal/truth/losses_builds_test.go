package truth

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// buildLine is a line of an endpoint's log. The endpoints are real builds of reliable.
type buildLine struct {
	T     float64
	Event string
	Seq   int
	I     int    // number of the fragment
	Hex   string // first bytes of a datagram that was sent
	Head  string // first bytes of a datagram that was read
}

// number returns the sequence and the fragment of the line's datagram.
func (l *buildLine) number(first string) (seq, fragment int) {
	b, err := hex.DecodeString(first)
	if err != nil || len(b) < 4 {
		return l.Seq, l.I
	}
	if seq = int(b[1]) | int(b[2])<<8; b[0]&1 != 0 {
		fragment = int(b[3])
	}
	return seq, fragment
}

// buildPacket is a packet that an endpoint sent, whole or in fragments.
type buildPacket struct {
	at   float64
	came map[int]float64 // when each fragment was read; 0 if it was not
}

func (p *buildPacket) lost() bool {
	for _, at := range p.came {
		if at == 0 {
			return true
		}
	}
	return false
}

// cameWithin reports whether a part of the packet was read in a time.
func (p *buildPacket) cameWithin(from, to float64) bool {
	for _, at := range p.came {
		if at > 0 && from <= at && at <= to {
			return true
		}
	}
	return false
}

// buildPackets joins the log of a sender with that of its peer. A datagram that is read belongs to
// the newest packet of its number that was sent: numbers come again after a restart.
func buildPackets(sender, peer []buildLine) (list []*buildPacket) {
	datagrams := slices.ContainsFunc(peer, func(l buildLine) bool { return l.Event == "datagram" })
	all := slices.Concat(sender, peer)
	from := make(map[int]*buildPacket)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int {
		switch a, b := &all[i], &all[k]; {
		case a.T < b.T:
			return -1
		case a.T > b.T:
			return 1
		}
		return 0
	})
	for _, i := range order {
		l := &all[i]
		switch sent := i < len(sender); {
		case sent && l.Event == "sent":
			seq, fragment := l.number(l.Hex)
			p := from[seq]
			if _, again := p.of(fragment); p == nil || again || fragment == 0 {
				p = &buildPacket{l.T, map[int]float64{}}
				from[seq] = p
				list = append(list, p)
			}
			p.came[fragment] = 0
		case !sent && datagrams && l.Event == "datagram":
			seq, fragment := l.number(l.Head)
			if at, known := from[seq].of(fragment); known && at == 0 {
				from[seq].came[fragment] = l.T
			}
		case !sent && !datagrams && l.Event == "received":
			if p := from[l.Seq]; p != nil {
				for fragment := range p.came {
					p.came[fragment] = l.T
				}
			}
		}
	}
	return list
}

func (p *buildPacket) of(fragment int) (at float64, known bool) {
	if p == nil {
		return 0, false
	}
	at, known = p.came[fragment]
	return at, known
}

// saidLoss is a line of the overview about the network.
var saidLoss = regexp.MustCompile(`^ +(?:network +)?([AB])→[AB] loss (?:between )?([0-9.]+)%(?: and ([0-9.]+)%)?`)

// lossesOf reads the losses that the overview of a capture says, in percent, by flow and side.
func lossesOf(t *testing.T, capture string) map[int][2][2]float64 {
	t.Helper()
	said, flow := map[int][2][2]float64{}, 0
	for line := range strings.Lines(string(testenv.Output(t, testenv.Ackscope(t), "overview", "--all", capture))) {
		if rest, ok := strings.CutPrefix(line, "flow "); ok {
			number, _, _ := strings.Cut(rest, " ")
			flow, _ = strconv.Atoi(number)
		}
		m := saidLoss.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		least, _ := strconv.ParseFloat(m[2], 64)
		most, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			most = least
		}
		x := said[flow]
		x[m[1][0]-'A'] = [2]float64{least, most}
		said[flow] = x
	}
	return said
}

// buildOpen lists what the overview says otherwise than the logs, and why.
var buildOpen = map[string]string{
	"resetserver.server flow 1 B": "the client's application refused 4 packets, which no header tells from a loss",
	"seqbyte.server flow 1 A":     "the sequence is one byte, so 85 packets look like copies of the first 85",
	"resetboth.client flow 2 B":   "packets of three sessions are under way at once, so the flow has those of two",
	"resetboth.client flow 3 B":   "a late packet began the flow, so its time has more packets than the flow",
	"resetboth.server flow 2 A":   "packets of three sessions are under way at once, so nothing bounds the loss",
	"resetboth.server flow 3 A":   "a late packet began the flow, so its time has more packets than the flow",
}

// TestLossesOfBuilds compares what the overview says of the loss with the logs of real builds, some
// of them wrong. The log counts packets that passed in the time of the flow. Where the overview
// says one figure, it is right to one point, or one packet. Elsewhere the log's value lies within
// the bounds.
func TestLossesOfBuilds(t *testing.T) {
	folder := filepath.Dir(testenv.Capture(t, "README.md"))
	logs, err := filepath.Glob(filepath.Join(folder, "*", "*.client.log.gz"))
	if err != nil {
		t.Fatal(err)
	}
	lossy, told, open := 0, 0, 0
	for _, path := range logs {
		base := strings.TrimSuffix(path, ".client.log.gz")
		ends := [2][]buildLine{buildLog(t, base+".client.log.gz"), nil}
		if ends[0] == nil || strings.HasSuffix(base, "rn") {
			continue // the log is text, or has no other end
		}
		ends[1] = buildLog(t, base+".server.log.gz")
		ways := [2][]*buildPacket{buildPackets(ends[0], ends[1]), buildPackets(ends[1], ends[0])}
		for tap, word := range []string{".client", ".server"} {
			said := lossesOf(t, base+word+".pcap.gz")
			for line := range bytes.Lines(testenv.Output(t, testenv.Ackscope(t), "flows", "--json", base+word+".pcap.gz")) {
				var f struct {
					Flow     int
					Protocol string
					Time     time.Time
					Last     time.Time `json:"last_time"`
				}
				if err := json.Unmarshal(line, &f); err != nil {
					t.Fatal(err)
				}
				if f.Protocol != "gaffer" {
					continue
				}
				// The logs and the tap do not note the same instant.
				from, to := seconds(f.Time)-0.005, seconds(f.Last)+0.003
				for way, list := range ways {
					list := within(list, way == tap, from, to)
					if len(list) == 0 {
						continue // the log does not have what was sent
					}
					lost := 0
					for _, p := range list {
						if p.lost() {
							lost++
						}
					}
					want, slack := 100*float64(lost)/float64(len(list)), 100/float64(len(list))+0.05
					name := filepath.Base(base) + word + " flow " + strconv.Itoa(f.Flow) + " " + string("AB"[way])
					if want >= 3 {
						lossy++
					}
					s, ok := said[f.Flow]
					least, most := s[way][0], s[way][1]
					wrong := !ok || want < least-slack || want > most+slack
					if ok && most-least <= 1 {
						told++
						wrong = want < least-1-slack || want > most+1+slack
					}
					if wrong && buildOpen[name] == "" {
						t.Errorf("%s: said to be between %.1f and %.1f%%, the log has %.1f%%", name, least, most, want)
					}
					if wrong {
						open++
					}
				}
			}
		}
	}
	if lossy < 60 || told < 50 {
		t.Errorf("%d directions lose 3 %%, %d are told", lossy, told)
	}
	if open < len(buildOpen) {
		t.Errorf("%d of %d directions are still open: remove the others from the list", open, len(buildOpen))
	}
}

// buildLog reads the log of an endpoint. It returns nil if that does not have what was sent.
func buildLog(t *testing.T, path string) (list []buildLine) {
	t.Helper()
	sends := false
	for line := range bytes.Lines(unzip(t, path)) {
		var l buildLine
		if json.Unmarshal(line, &l) != nil {
			continue // a log of Riptide, or a figure that is no number
		}
		sends = sends || l.Event == "sent"
		list = append(list, l)
	}
	if !sends {
		return nil
	}
	return list
}

// within returns the packets of a time. At the sender that is when they were sent. At the receiver
// it is from the first one that came to the last one.
func within(list []*buildPacket, atSender bool, from, to float64) []*buildPacket {
	in := func(p *buildPacket) bool {
		if atSender {
			return from <= p.at && p.at <= to
		}
		return p.cameWithin(from, to)
	}
	first := slices.IndexFunc(list, in)
	if first < 0 {
		return nil
	}
	last := len(list) - 1
	for !in(list[last]) {
		last--
	}
	return list[first : last+1]
}

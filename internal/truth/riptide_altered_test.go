package truth

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/riptidelog"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// frames is a capture held in memory.
type frames struct {
	all  []capture.Frame
	next int
}

func (f *frames) Next(out *capture.Frame) error {
	if f.next == len(f.all) {
		return io.EOF
	}
	*out = f.all[f.next]
	f.next++
	return nil
}

func (f *frames) Rewind() error { f.next = 0; return nil }

func (f *frames) Close() error { return nil }

func readFrames(t *testing.T, path string) (all []capture.Frame) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for {
		var f capture.Frame
		err := in.Next(&f)
		var cut *capture.CutError
		if errors.Is(err, io.EOF) || errors.As(err, &cut) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Data, f.Options = append([]byte(nil), f.Data...), nil
		all = append(all, f)
	}
}

// alteration changes a capture to another possible capture of the same run.
type alteration struct {
	name  string
	alter func(all []capture.Frame, rng *rand.Rand) []capture.Frame
	// nat is set if the alteration gives the client another port on the path. At
	// the server's end the logs would not have the new port.
	nat bool
}

var alterations = []alteration{
	{"joined in the middle", func(all []capture.Frame, rng *rand.Rand) []capture.Frame {
		return all[len(all)*(1+rng.IntN(7))/10:]
	}, false},
	{"without its end", func(all []capture.Frame, rng *rand.Rand) []capture.Frame {
		return all[:len(all)*(3+rng.IntN(6))/10]
	}, false},
	{"with 3 % of its frames lost", lose, false},
	{"with 3 % of its frames lost, and without its end", func(all []capture.Frame, rng *rand.Rand) []capture.Frame {
		return lose(all[:len(all)*(1+rng.IntN(9))/10], rng)
	}, false},
	{"with outages of one direction", func(all []capture.Frame, rng *rand.Rand) []capture.Frame {
		for range 3 {
			all = lack(all, rng, true)
		}
		return all
	}, false},
	{"joined in the middle, with outages", func(all []capture.Frame, rng *rand.Rand) []capture.Frame {
		all = all[len(all)*rng.IntN(5)/10:]
		return lack(lack(all, rng, false), rng, true)
	}, false},
	{"with the client's port changed on the way", rebind, true},
	{"with each frame twice", func(all []capture.Frame, _ *rand.Rand) (twice []capture.Frame) {
		for _, f := range all {
			again := f
			again.At += 20_000 // ns
			twice = append(twice, f, again)
		}
		return twice
	}, false},
}

// lack removes up to a tenth of the frames, in one piece: all of it, or what
// one end sent.
func lack(all []capture.Frame, rng *rand.Rand, oneWay bool) (some []capture.Frame) {
	if len(all) < 20 {
		return all
	}
	from := rng.IntN(len(all) * 9 / 10)
	to := from + 1 + rng.IntN(len(all)/10)
	sender, _ := ends(&all[from])
	for i := range all {
		if src, _ := ends(&all[i]); i < from || i >= to || oneWay && src != sender {
			some = append(some, all[i])
		}
	}
	return some
}

// ends returns the addresses of a frame.
func ends(f *capture.Frame) (src, dst netip.AddrPort) {
	var p capture.Packet
	capture.NewDecoder(capture.DecodeOptions{}).Decode(f, &p)
	return p.Src, p.Dst
}

// natBit distinguishes a client's second port from its first.
const natBit = 0x4000

// rebind gives most connections another client port from some frame on, like a
// NAT that has forgotten them.
func rebind(all []capture.Frame, rng *rand.Rand) (some []capture.Frame) {
	conns := map[netip.AddrPort]int{}
	seen := map[[2]netip.AddrPort]bool{}
	for i := range all {
		if src, dst := ends(&all[i]); !seen[[2]netip.AddrPort{src, dst}] {
			seen[[2]netip.AddrPort{src, dst}] = true
			conns[src]++
		}
	}
	server, _ := ends(&all[0])
	for at, n := range conns {
		if n > conns[server] {
			server = at
		}
	}
	if conns[server] == 1 {
		_, server = ends(&all[0]) // one client sent the first packet to it
	}
	from := len(all) * (2 + rng.IntN(6)) / 10
	for i, f := range all {
		var p capture.Packet
		capture.NewDecoder(capture.DecodeOptions{}).Decode(&f, &p)
		if i >= from && p.Transport == capture.UDP && len(p.Payload) > 0 && p.Fragments <= 1 {
			f.Data = append([]byte(nil), f.Data...)
			var again capture.Packet
			capture.NewDecoder(capture.DecodeOptions{}).Decode(&f, &again)
			ports := cap(f.Data) - cap(again.Payload) - 8
			if p.Src != server {
				f.Data[ports] ^= natBit >> 8
			} else {
				f.Data[ports+2] ^= natBit >> 8
			}
		}
		some = append(some, f)
	}
	return some
}

func lose(all []capture.Frame, rng *rand.Rand) (some []capture.Frame) {
	for _, f := range all {
		if rng.Float64() >= 0.03 {
			some = append(some, f)
		}
	}
	return some
}

// TestRiptideAltered alters the captures. They begin in the middle, end early,
// or have lost or duplicated frames. Nothing certain may contradict the logs.
// No error may be found in a run that had none. No connection may be classified
// as another protocol.
//
// Each capture gets one alteration in turn. SOAK_ALTERED=N applies all of them
// N times.
func TestRiptideAltered(t *testing.T) {
	testenv.Grid(t, "an analysis of each of the Riptide captures")
	seeds, _ := strconv.Atoi(os.Getenv("SOAK_ALTERED"))
	folder := filepath.Dir(testenv.Capture(t, "riptide-messages.yaml"))
	facts, turn := 0, 0
	for _, prefix := range []string{"u2", "t2", "upy", "tpy"} {
		paths, err := filepath.Glob(filepath.Join(folder, prefix+"*.pcap*.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			named := ripName.FindStringSubmatch(filepath.Base(path))
			if named == nil {
				continue
			}
			run, all := readRipRun(t, named[1]), readFrames(t, path)
			rebound(run)
			for i, a := range alterations {
				for seed := range max(seeds, 1) {
					if turn++; seeds == 0 && i != turn/len(alterations)%len(alterations) ||
						a.nat && (named[2] != "client" || named[1][0] == 't') {
						continue
					}
					hash := fnv.New64a()
					hash.Write([]byte(named[0]))
					rng := rand.New(rand.NewPCG(hash.Sum64(), uint64(seed)))
					t.Run(fmt.Sprintf("%s.%s %s", named[1], named[2], a.name), func(t *testing.T) {
						facts += altered(t, &ripCapture{name: named[1], tap: named[2], run: run}, a.alter(all, rng))
					})
				}
			}
		}
	}
	if facts < 5000 {
		t.Errorf("%d facts are certain: too few for a result", facts)
	}
}

// rebound adds the second ports of the run's clients.
func rebound(r *riptidelog.Run) {
	for port, name := range maps.Clone(r.Ports) {
		r.Ports[port^natBit] = name
	}
	for port, outer := range maps.Clone(r.Outer) {
		r.Outer[port^natBit] = outer
	}
}

// altered analyzes the frames of a capture and compares the result with the
// logs. It returns the number of certain facts.
func altered(t *testing.T, c *ripCapture, all []capture.Frame) (certain int) {
	t.Helper()
	c.events, c.messages, c.anomalies = map[int][]machine.Event{}, map[int][]machine.Message{}, map[int][]machine.Anomaly{}
	var err error
	c.session, err = analyze.RunTwice(&frames{all: all}, analyze.Options{
		Registry: dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol),
		Sink: func(r *analyze.Record) {
			if r.Flow == nil {
				return
			}
			for _, m := range r.Messages {
				m.Body, m.Data = nil, nil
				c.messages[r.Flow.ID] = append(c.messages[r.Flow.ID], m)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.session.Flows() {
		if f.Protocol != nil && f.Protocol.Name != "riptide" {
			t.Errorf("flow %d is classified as %s: %s", f.ID, f.Protocol.Name, f.Verdict.Reason)
		}
	}
	if t.Failed() {
		return 0
	}
	for _, x := range c.connections(t) {
		certain += c.certain(t, &x)
		c.errors(t, &x)
	}
	return certain
}

// certain compares what is certain of a connection's messages with the logs.
func (c *ripCapture) certain(t *testing.T, x *connection) (facts int) {
	t.Helper()
	var had [2]map[ripKey]int
	for i := range x.lines {
		had[i] = map[ripKey]int{}
		for _, l := range x.lines[i] {
			if l.Event == "receive" {
				had[i][identity(logKey(&l))]++
			}
		}
	}
	for i := range c.messages[x.flow.ID] {
		m := &c.messages[x.flow.ID][i]
		receiver := m.From.Other()
		if m.Certainty != machine.Certain || m.Delivered == machine.Unanswered || m.Mode != machine.ModeReliable &&
			m.Mode != machine.ModeNotify {
			continue
		}
		k := identity(messageKey(m))
		if c.run.Partial[x.sides[receiver]] || c.unclear(x.sides[receiver]) || k.id == 31 && x.sides[receiver] == "server" {
			continue
		}
		facts++
		switch n := had[receiver][k]; {
		case m.Delivered == machine.Yes && n == 0:
			t.Errorf("%s %+v is certain to have been handed over (frame %d, vantage %v: %s), by its log it was not",
				x.sides[receiver], k, m.DeliveredBy.Frame(), x.flow.Facts().Vantage, x.flow.Facts().VantageReason)
		case m.Delivered == machine.No && n > 0:
			t.Errorf("%s %+v is certain not to have been handed over (vantage %v), by its log it was", x.sides[receiver], k,
				x.flow.Facts().Vantage)
		}
	}
	return facts
}

// identity is the key of a message: a notify message has no id of its own.
func identity(k ripKey) ripKey {
	if k.mode == "notify" {
		k.id = -1
	}
	return k
}

// errors compares the findings of severity error with the logs.
func (c *ripCapture) errors(t *testing.T, x *connection) {
	t.Helper()
	for _, f := range x.flow.Findings() {
		if f.Rule.Severity != machine.Error {
			continue
		}
		says := fmt.Sprintf("%s of %s, %v: %s", f.Rule.ID, x.sides[f.Side], f.Certainty, f.Message())
		switch f.Rule.ID {
		case "riptide-acked-not-delivered":
			if len(undelivered(x, f.Side, 0)) == 0 {
				t.Errorf("%s; by the logs each of them was handed over", says)
			}
		case "riptide-merged-sequences":
			if c.run.Version[x.sides[f.Side]] != "2.1.0" || x.sides[f.Side] != "server" {
				t.Errorf("%s; it is %s and merges nothing", says, c.run.Version[x.sides[f.Side]])
			}
		default:
			t.Errorf("%s, in an honest run", says)
		}
	}
}

package gaffer

import (
	"encoding/hex"
	"slices"
	"testing"

	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// messageAt is one reliable message of one connection.
type messageAt struct {
	conn, channel int
	id            uint16
}

// carriersLogged returns the packets that carried each reliable message of an endpoint, in the
// order in which they were sent. They come from the plaintext that the endpoint logged.
func (r *yojimboRun) carriersLogged(t *testing.T, at string) map[messageAt][]uint32 {
	t.Helper()
	reliable, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	by, y := map[messageAt][]uint32{}, r.configuration(t)
	assemblers := map[int]*messages.Assembler{}
	var sent logLine // the connection's line stands before the lines of its datagrams
	for _, l := range r.lines {
		if l.Endpoint != at {
			continue
		}
		if l.Event == "sent" {
			sent = l
		}
		if l.Event != "netcode_tx" || l.Type != int(wire.NetcodePayload) {
			continue
		}
		plain, err := hex.DecodeString(l.Plain)
		if err != nil {
			t.Fatal(err)
		}
		var pk wire.Packet
		if err := reliable.Parse(plain, len(plain), &pk); err != nil {
			t.Fatal(err)
		}
		if int(pk.Sequence) != sent.Seq {
			t.Fatalf("%s %s: plaintext of packet %d behind the line of packet %d", r.name, at, pk.Sequence, sent.Seq)
		}
		if assemblers[sent.Conn] == nil {
			assemblers[sent.Conn] = &messages.Assembler{}
		}
		payload, whole := assemblers[sent.Conn].Add(&pk, plain[pk.PayloadOffset:])
		if whole {
			carried(t, y, payload, func(channel int, id uint16) {
				k := messageAt{sent.Conn, channel, id}
				by[k] = append(by[k], pk.Sequence)
			})
		}
	}
	return by
}

// carried calls do for each reliable message of a connection packet.
func carried(t *testing.T, y *wire.Yojimbo, payload []byte, do func(channel int, id uint16)) {
	t.Helper()
	var p wire.ConnectionPacket
	if err := y.Parse(payload, &p); err != nil {
		t.Fatal(err)
	}
	for _, e := range p.Entries {
		switch {
		case e.Block:
			do(e.Channel, e.Fragment.ID)
		case y.Channels[e.Channel].Type == wire.ReliableOrdered:
			for _, m := range p.Messages[e.First : e.First+e.Count] {
				do(e.Channel, m.ID)
			}
		}
	}
}

// TestAttemptsEqualLog: the packets that carried a message are those whose logged plaintext
// holds it, copies behind its ack too. yojimbo takes acks once a frame. So a message goes
// out once more with the header that names its ack.
func TestAttemptsEqualLog(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		for _, at := range []string{"client", "server"} {
			want := r.carriersLogged(t, at)
			sequences := map[uint64]uint32{}
			for _, p := range r.packets(t, at) {
				sequences[p.ref.Frame()] = p.sequence
			}
			told, copies := 0, 0
			for i, f := range openRun(t, r, at, r.configuration(t)) {
				for _, m := range f.effects.Messages {
					if m.From != nearSide(at) || m.Mode != machine.ModeReliable {
						continue
					}
					told++
					logged := want[messageAt{r.connOf(at, i), m.Channel, uint16(m.ID)}]
					copies += len(logged) - 1
					if m.Attempts != len(logged) {
						t.Errorf("%s.%s flow %d channel %d message %d: %d packets carried it, logged %v", name, at, i,
							m.Channel, m.ID, m.Attempts, logged)
						continue
					}
					var frames []uint32
					for _, ref := range m.Frames[:min(m.Attempts, len(m.Frames))] {
						frames = append(frames, sequences[ref.Frame()])
					}
					if logged = logged[:len(frames)]; !slices.Equal(frames, logged) {
						t.Errorf("%s.%s flow %d channel %d message %d: packets %v carried it, logged %v", name, at, i,
							m.Channel, m.ID, frames, logged)
					}
				}
			}
			if told != len(want) || copies == 0 {
				t.Errorf("%s.%s: %d messages with %d copies, logged %d messages", name, at, told, copies, len(want))
			}
		}
	}
}

// TestAttemptsAtFarTap: of what the far side sends, the packets that passed the tap count, and
// no other. They come a round trip after the ack.
func TestAttemptsAtFarTap(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		y := r.configuration(t)
		for _, at := range []string{"client", "server"} {
			passed := map[messageAt]map[uint32]bool{}
			for _, p := range r.packets(t, at) {
				if p.from == nearSide(at) {
					continue
				}
				carried(t, y, p.payload, func(channel int, id uint16) {
					k := messageAt{p.flow, channel, id}
					if passed[k] == nil {
						passed[k] = map[uint32]bool{}
					}
					passed[k][p.sequence] = true
				})
			}
			for i, f := range openRun(t, r, at, y) {
				for _, m := range f.effects.Messages {
					if m.From == nearSide(at) || m.Mode != machine.ModeReliable {
						continue
					}
					if want := len(passed[messageAt{i, m.Channel, uint16(m.ID)}]); m.Attempts != want {
						t.Errorf("%s.%s flow %d channel %d message %d: %d packets carried it, %d passed the tap", name, at, i,
							m.Channel, m.ID, m.Attempts, want)
					}
				}
			}
		}
	}
}

// TestKickedByServer: the log of a server that disconnects a client has a last packet, which it
// read in the frame of the disconnect. No header names that packet.
func TestKickedByServer(t *testing.T) {
	r := readYojimboRun(t, "yojimbo-server-kick")
	logged := r.logged("server", 0, "received")
	last := logged[len(logged)-1]
	f := openRun(t, r, "server", r.configuration(t))[0]
	for _, kind := range []machine.EventKind{machine.EventReceived, machine.EventAcked} {
		var found []machine.Certainty
		for _, e := range f.effects.Events {
			if e.Kind == kind && e.Side == machine.B && int(e.Sequence) == last.Seq {
				found = append(found, e.Certainty)
			}
		}
		if !slices.Equal(found, []machine.Certainty{machine.Likely}) {
			t.Errorf("%v of packet %d: %v, expected it once, likely", kind, last.Seq, found)
		}
	}
}

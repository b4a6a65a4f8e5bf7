package gaffer

import (
	"bytes"
	"testing"

	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/machine/gaffer/messages"
	"github.com/ackscope/ackscope/wire/bits"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// openedPacket is a connection packet as it passed the tap, decrypted and whole.
type openedPacket struct {
	flow     int
	from     machine.Side
	client   machine.Side
	ref      machine.Ref
	sequence uint32
	payload  []byte
}

// packets returns the connection packets of a run's capture.
func (r *yojimboRun) packets(t testing.TB, at string) (out []openedPacket) {
	t.Helper()
	keys, profile := r.keys(t), netcodeProfile(t)
	reliable, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		t.Fatal(err)
	}
	type flow struct {
		dec       *netcode.Decryptor
		assembler [2]messages.Assembler
	}
	flows := map[int]*flow{}
	for _, d := range r.tap(t, at) {
		f := flows[d.flow]
		if f == nil {
			f = &flow{dec: netcode.NewDecryptor(keys)}
			flows[d.flow] = f
		}
		var pk wire.Packet
		if err := profile.Parse(d.Bytes, d.Length, &pk); err != nil {
			t.Fatal(err)
		}
		if pk.NetcodeType == 0 {
			_ = f.dec.Request(&d.Datagram)
			continue
		}
		plain, err := f.dec.Open(&d.Datagram, &pk)
		if err != nil {
			t.Fatalf("frame %d: %v", d.Ref.Frame(), err)
		}
		if pk.NetcodeType != 5 {
			continue
		}
		if err := reliable.Parse(plain, len(plain), &pk); err != nil {
			t.Fatalf("frame %d: inner packet: %v", d.Ref.Frame(), err)
		}
		payload, whole := f.assembler[d.From].Add(&pk, plain[pk.PayloadOffset:])
		if !whole {
			continue
		}
		client, _ := f.dec.Client()
		out = append(out, openedPacket{d.flow, d.From, client, d.Ref, pk.Sequence, bytes.Clone(payload)})
	}
	return out
}

// TestConnectionPacketsOfCaptures: every connection packet of every capture parses to
// its last bit, and appends to the same bytes.
func TestConnectionPacketsOfCaptures(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		y := r.configuration(t)
		for _, at := range []string{"client", "server"} {
			var p wire.ConnectionPacket
			entries, messages, blocks := 0, 0, 0
			all := r.packets(t, at)
			for _, o := range all {
				if err := y.Parse(o.payload, &p); err != nil {
					t.Errorf("%s.%s frame %d: %v", name, at, o.ref.Frame(), err)
					continue
				}
				if again := y.Append(nil, &p, o.payload); !bytes.Equal(again, o.payload) {
					t.Errorf("%s.%s frame %d appends as\n%x, was\n%x", name, at, o.ref.Frame(), again, o.payload)
				}
				entries += len(p.Entries)
				messages += len(p.Messages)
				for _, e := range p.Entries {
					if e.Block {
						blocks++
					}
				}
			}
			if len(all) < 100 || messages == 0 {
				t.Errorf("%s.%s: %d packets with %d messages", name, at, len(all), messages)
			}
			t.Logf("%s.%s: %d packets, %d entries, %d messages, %d block fragments", name, at, len(all), entries,
				messages, blocks)
		}
	}
}

// TestMessagesSentEqualLog: what each sender sent for the first time is what it logged.
// On a reliable channel ids start at 0 and have no gap, and each has the logged type
// and body.
func TestMessagesSentEqualLog(t *testing.T) {
	for _, name := range yojimboRuns {
		r := readYojimboRun(t, name)
		y := r.configuration(t)
		bodies := bodiesOf(r.config.Schema)
		// The tap at an endpoint sees all that it sent.
		for _, at := range []string{"client", "server"} {
			type place struct{ conn, channel, id int }
			logged := map[place]logLine{}
			for _, l := range r.lines {
				if l.Event == "msg_sent" && l.Endpoint == at && l.ID >= 0 {
					logged[place{l.Conn, l.Channel, l.ID}] = l
				}
			}
			seen := map[place]bool{}
			var p wire.ConnectionPacket
			for _, o := range r.packets(t, at) {
				if (o.from == o.client) != (at == "client") {
					continue
				}
				if err := y.Parse(o.payload, &p); err != nil {
					t.Fatal(err)
				}
				for _, e := range p.Entries {
					if e.Block || y.Channels[e.Channel].Type != wire.ReliableOrdered {
						continue
					}
					for _, m := range p.Messages[e.First : e.First+e.Count] {
						k := place{r.connOf(at, o.flow), e.Channel, int(m.ID)}
						l, ok := logged[k]
						if !ok {
							t.Errorf("%s.%s frame %d: %+v was never logged as sent", name, at, o.ref.Frame(), k)
							continue
						}
						seen[k] = true
						var br bits.Reader
						br.Reset(o.payload, m.Body)
						v, err := bodies(m.Type, &br)
						if err != nil {
							t.Fatal(err)
						}
						if int(m.Type) != l.Type || bodyText(t, v, nil) != loggedText(t, l.Body) {
							t.Errorf("%s.%s frame %d: %+v is type %d %s, logged as type %d %s", name, at, o.ref.Frame(), k, m.Type,
								bodyText(t, v, nil), l.Type, loggedText(t, l.Body))
						}
					}
				}
			}
			for k, l := range logged {
				// The last ones were queued when the connection ended.
				if !seen[k] && !y.CarriesBlock(uint32(l.Type)) && l.T < r.lastSent(at, k.conn)-1 {
					t.Errorf("%s.%s: %+v was logged as sent at %.3f and did not pass the tap", name, at, k, l.T)
				}
			}
			if len(seen) == 0 {
				t.Errorf("%s.%s: no message was compared", name, at)
			}
		}
	}
}

// connOf returns the log's number of a flow at an endpoint. Flows come in the order of
// the clients. Clients that are denied have no connection.
func (r *yojimboRun) connOf(at string, flow int) int {
	if at == "client" {
		return flow
	}
	if r.name == "yojimbo-wrong-key" {
		return flow - 1 // the server has no connection for the first
	}
	return flow
}

// lastSent returns the time of an endpoint's last packet.
func (r *yojimboRun) lastSent(at string, conn int) (last float64) {
	for _, l := range r.lines {
		if l.Event == "sent" && l.Endpoint == at && l.Conn == conn {
			last = l.T
		}
	}
	return last
}

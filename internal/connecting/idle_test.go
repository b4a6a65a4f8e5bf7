package connecting

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// silent puts a silence into a capture, two seconds after its beginning. Then the packets of one
// port are left out, and no side acks anything new, since nothing reaches it. After a further three
// seconds they come from the port moved instead, if that is not 0. The capture ends six seconds
// after the silence. Where out is nil, both sides go on.
func silent(t *testing.T, silence time.Duration, out func(p *capture.Packet) bool, moved uint16) change {
	var first machine.Instant
	newest := map[uint16]wire.Header{} // by the port that sent it
	return func(f *capture.Frame, p *capture.Packet) bool {
		if first == 0 {
			first = f.At
		}
		if p.Src.Port() != reliablePort && p.Dst.Port() != reliablePort {
			return false // what the system of the host sent
		}
		since := f.At.Sub(first) - 2*time.Second
		if since < 0 {
			var pk wire.Packet
			if err := reliable.Parse(p.Payload, len(p.Payload), &pk); err != nil {
				t.Fatal(err)
			}
			if pk.HasHeader {
				newest[p.Src.Port()] = pk.Header
			}
			return true
		}
		f.At = f.At.Add(silence)
		switch {
		case since > 6*time.Second:
			return false
		case out == nil:
			return true
		case out(p) && (moved == 0 || since < 3*time.Second):
			return false
		}
		const udp, payload = 14 + 20, 14 + 20 + 8
		if len(f.Data) < payload+len(p.Payload) {
			t.Fatal("expected Ethernet, IPv4 without options and UDP")
		}
		f.Data = append(bytes.Clone(f.Data[:payload]), deaf(t, p.Payload, newest[p.Src.Port()])...)
		f.Length = len(f.Data)
		binary.BigEndian.PutUint16(f.Data[14+2:], uint16(f.Length-14))
		binary.BigEndian.PutUint16(f.Data[udp+4:], uint16(f.Length-udp))
		if out(p) {
			binary.BigEndian.PutUint16(f.Data[udp:], moved)
		}
		return true
	}
}

// reliable is the header of the real games.
var reliable = func() *wire.Profile {
	p, _, err := wire.Builtin(wire.Reliable)
	if err != nil {
		panic(err)
	}
	return p
}()

// deaf returns a datagram that acks what an earlier header acked.
func deaf(t *testing.T, datagram []byte, was wire.Header) []byte {
	t.Helper()
	var pk wire.Packet
	if err := reliable.Parse(datagram, len(datagram), &pk); err != nil {
		t.Fatal(err)
	}
	if !pk.HasHeader {
		return datagram
	}
	pk.Header.Ack, pk.Header.AckBits = was.Ack, was.AckBits
	return reliable.Append(nil, &pk, datagram[pk.PayloadOffset:])
}

// reliableGame is a real game at its server.
const reliableGame = "reliable-clean.server.pcap.gz"

func ofClient(p *capture.Packet) bool { return p.Src.Port() != reliablePort }
func ofServer(p *capture.Packet) bool { return p.Src.Port() == reliablePort }

const reliablePort = 40000

// TestIdleBindings puts silences into real games, after which one side is alone.
func TestIdleBindings(t *testing.T) {
	for _, c := range []struct {
		name string
		file string
		edit change
		want []string
	}{
		{"nothing of the client comes", reliableGame, silent(t, 45*time.Second, ofClient, 0), []string{
			"1 nat-idle a possible: after 45 s without a packet of either side, the peer sent 370 packets over 6.0 s, " +
				"and nothing of this side came",
		}},
		{"nothing of the server comes", reliableGame, silent(t, 45*time.Second, ofServer, 0), []string{
			"1 nat-idle b possible: after 45 s without a packet of either side, the peer sent 360 packets over 6.0 s, " +
				"and nothing of this side came",
		}},
		{"the client comes from another port", reliableGame, silent(t, 45*time.Second, ofClient, 55555), []string{
			"1 nat-idle a likely: after 45 s without a packet of either side, the peer sent 370 packets over 6.0 s, " +
				"and nothing of this side came",
		}},
		{"both go on", reliableGame, silent(t, 45*time.Second, nil, 0), nil},
		{"too short", reliableGame, silent(t, 20*time.Second, ofClient, 0), nil},
	} {
		if got := edit(t, c.file, c.edit).findings(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s, expected %s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

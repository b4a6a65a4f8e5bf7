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
)

// silent puts a silence into a capture, two seconds after its beginning. Then the packets of one
// port are left out. After a further three seconds they come from the port moved instead, if that
// is not 0. The capture ends six seconds after the silence.
func silent(silence time.Duration, out func(p *capture.Packet) bool, moved uint16) change {
	var first machine.Instant
	return func(f *capture.Frame, p *capture.Packet) bool {
		if first == 0 {
			first = f.At
		}
		since := f.At.Sub(first) - 2*time.Second
		if since < 0 {
			return true
		}
		f.At = f.At.Add(silence)
		switch {
		case since > 6*time.Second:
			return false
		case !out(p):
			return true
		case moved == 0 || since < 3*time.Second:
			return false
		}
		f.Data = bytes.Clone(f.Data)
		binary.BigEndian.PutUint16(f.Data[14+20:], moved)
		return true
	}
}

// reliableGame is a real game at its server.
const reliableGame = "reliable-clean.server.pcap.gz"

func ofClient(p *capture.Packet) bool { return p.Src.Port() != reliablePort }
func ofServer(p *capture.Packet) bool { return p.Src.Port() == reliablePort }
func ofNone(*capture.Packet) bool     { return false }

const reliablePort = 40000

// TestIdleBindings puts silences into real games, after which one side is alone.
func TestIdleBindings(t *testing.T) {
	for _, c := range []struct {
		name string
		file string
		edit change
		want []string
	}{
		{"nothing of the client comes", reliableGame, silent(45*time.Second, ofClient, 0), []string{
			"1 nat-idle a possible: after 45 s without a packet of either side, the peer sent 370 packets over 6.0 s, " +
				"and nothing of this side came",
		}},
		{"nothing of the server comes", reliableGame, silent(45*time.Second, ofServer, 0), []string{
			"1 nat-idle b possible: after 45 s without a packet of either side, the peer sent 360 packets over 6.0 s, " +
				"and nothing of this side came",
		}},
		{"the client comes from another port", reliableGame, silent(45*time.Second, ofClient, 55555), []string{
			"1 nat-idle a likely: after 45 s without a packet of either side, the peer sent 370 packets over 6.0 s, " +
				"and nothing of this side came",
		}},
		{"both go on", reliableGame, silent(45*time.Second, ofNone, 0), nil},
		{"too short", reliableGame, silent(20*time.Second, ofClient, 0), nil},
	} {
		if got := edit(t, c.file, c.edit).findings(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %s, expected %s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

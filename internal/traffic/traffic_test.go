package traffic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

func TestSameOptionsSameBytes(t *testing.T) {
	write := func(seed uint64) []byte {
		var b bytes.Buffer
		if err := Write(&b, Options{Packets: 500, Flows: 7, Loss: 0.05, Seed: seed}); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if !bytes.Equal(write(1), write(1)) {
		t.Error("the same seed gave two captures")
	}
	if bytes.Equal(write(1), write(2)) {
		t.Error("two seeds gave the same capture")
	}
}

// TestTraffic reads a capture back with gopacket. Times rise, checksums are
// right, acks name only sent packets, and the loss is about that of the
// options.
func TestTraffic(t *testing.T) {
	const packets, flows = 20000, 16
	var file bytes.Buffer
	if err := Write(&file, Options{Packets: packets, Flows: flows, Loss: 0.05, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	type end struct {
		ip   string
		port layers.UDPPort
	}
	newest := map[[2]end]int{} // from, to -> newest sequence
	seen, skipped, last := 0, 0, int64(0)
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if at := info.Timestamp.UnixNano(); at < last {
			t.Fatalf("packet %d is older than the one before it", seen)
		} else {
			last = at
		}
		p := gopacket.NewPacket(data, layers.LinkTypeEthernet, gopacket.Default)
		if p.ErrorLayer() != nil {
			t.Fatal(p.ErrorLayer().Error())
		}
		ip, udp := p.NetworkLayer().(*layers.IPv4), p.TransportLayer().(*layers.UDP)
		if checksum(ip.Contents) != 0 {
			t.Fatalf("packet %d: bad IP checksum", seen)
		}
		from, to := end{ip.SrcIP.String(), udp.SrcPort}, end{ip.DstIP.String(), udp.DstPort}
		sequence, ack := int(binary.LittleEndian.Uint16(udp.Payload)), int(binary.LittleEndian.Uint16(udp.Payload[2:]))
		before, known := newest[[2]end{from, to}]
		if known && sequence > before+1 {
			skipped += sequence - before - 1
		}
		newest[[2]end{from, to}] = max(before, sequence)
		if bits := binary.LittleEndian.Uint32(udp.Payload[4:]); bits != 0 {
			if sent, known := newest[[2]end{to, from}]; !known || ack > sent {
				t.Fatalf("packet %d acks %d, the newest that passed the tap is %d", seen, ack, sent)
			}
		}
		seen++
	}
	if seen != packets {
		t.Errorf("%d packets, expected %d", seen, packets)
	}
	if len(newest) != 2*flows {
		t.Errorf("%d directions, expected %d", len(newest), 2*flows)
	}
	if loss := float64(skipped) / packets; loss < 0.02 || loss > 0.05 { // lost before the tap, or overtaken
		t.Errorf("a share of %.3f never came first to the tap, expected about 0.03", loss)
	}
}

func BenchmarkWrite(b *testing.B) {
	for b.Loop() {
		if err := Write(io.Discard, Options{Packets: 100_000, Flows: 64, Loss: 0.05, Seed: 1}); err != nil {
			b.Fatal(err)
		}
	}
}

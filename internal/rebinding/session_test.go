package rebinding

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// If the old address speaks again, the flows are of two players, and the join is taken back.
func TestOldAddressSpeaksAgain(t *testing.T) {
	list := load(t, testenv.Capture(t, "reliable-clean.server.pcap.gz"))
	client, sent := busiest(list)
	to := moved(client, true)
	list = move(list, client, to, sent/2, false)
	if f := flowOf(analysed(t, plain, list), to); f.Was == nil {
		t.Fatal("the client is not joined")
	}
	back := list[len(list)-1]
	for i := range list {
		if list[i].src == client {
			back.src, back.dst, back.payload = client, list[i].dst, list[i].payload
		}
	}
	f := flowOf(analysed(t, plain, append(list, back)), to)
	if f.Was != nil {
		t.Errorf("joined as %+v, though the old address speaks again", f.Was)
	}
	for _, x := range f.Findings() {
		if x.Rule.ID == "rebound" {
			t.Error("the finding is still there")
		}
	}
}

// crowd makes the packets of many clients of one server. Every fiftieth moves, one after the other,
// after half of its packets or more. The numbers of each begin elsewhere.
func crowd(clients, packets int, moves bool) (list []datagram) {
	server := netip.MustParseAddrPort("10.0.0.2:40000")
	for n := range packets {
		for c := range clients {
			from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(c >> 8), byte(c)}), 30000)
			if moves && c%50 == 0 && n >= packets/2+c/10 {
				from = netip.AddrPortFrom(from.Addr(), 30001)
			}
			at := machine.Instant(n)*machine.Instant(50*time.Millisecond) + machine.Instant(c)*1000
			number := uint16(97*c + n)
			b := binary.LittleEndian.AppendUint16([]byte{0}, number)
			b = binary.LittleEndian.AppendUint16(b, number-1)
			b = binary.LittleEndian.AppendUint32(b, 1<<32-1-1<<8)
			b = append(b, "the payload of a packet"...)
			list = append(list, datagram{at, from, server, b}, datagram{at + 100, server, from, b})
		}
	}
	return list
}

// Among many clients of one server, each that moves is found.
func TestCrowd(t *testing.T) {
	const clients, packets = 500, 240
	var took [2]time.Duration
	for i, moves := range []bool{false, true} {
		src := framesOf(t, crowd(clients, packets, moves))
		began := time.Now()
		s, err := analyze.Run(src, analyze.Options{Registry: dissect.NewRegistry(plain)})
		took[i] = time.Since(began)
		if err != nil {
			t.Fatal(err)
		}
		joined, wrong := 0, 0
		for _, f := range s.Flows() {
			if f.Was == nil {
				continue
			}
			if joined++; f.Was.Addr.Addr() != f.A.Addr() {
				wrong++
			}
		}
		t.Logf("moves %v: %d flows in %v, %d joined", moves, len(s.Flows()), took[i], joined)
		if wrong > 0 || moves != (joined == clients/50) {
			t.Errorf("%d joined, %d wrongly", joined, wrong)
		}
	}
}

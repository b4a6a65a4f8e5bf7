package unit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/netip"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
)

// UID is a name of a flow that does not depend on the capture's name, nor on what else the capture
// holds. It is the first half of SHA-256 over
//
//	the transport (17 for UDP, 6 for TCP; 1 byte)
//	the address of side a (16 bytes; IPv4 mapped), its port (2 bytes)
//	the address of side b, its port
//	the time of the first packet in nanoseconds since 1970 (8 bytes)
//
// with the larger bytes of numbers first. So a flow keeps its UID if its capture is renamed, read
// again, joined with others or analysed by another version. Captures of two taps see its first
// packet at two times: they give it two UIDs. Two sessions that begin in one nanosecond share one.
type UID [16]byte

// FlowUID returns the UID of a flow.
func FlowUID(f *analyze.Flow) UID {
	b := make([]byte, 0, 45)
	number := byte(17)
	if f.Transport == capture.TCP {
		number = 6
	}
	b = append(b, number)
	for _, x := range [...]netip.AddrPort{f.A, f.B} {
		ip := x.Addr().As16()
		b = binary.BigEndian.AppendUint16(append(b, ip[:]...), x.Port())
	}
	b = binary.BigEndian.AppendUint64(b, uint64(f.First))
	sum := sha256.Sum256(b)
	return UID(sum[:16])
}

// String returns 32 hexadecimal digits.
func (u UID) String() string { return hex.EncodeToString(u[:]) }

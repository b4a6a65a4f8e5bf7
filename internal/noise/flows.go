package noise

import "encoding/binary"

// Flows returns a pcap file of raw IP packets, each of another flow.
func Flows(packets int) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	out = append(out, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	out = binary.LittleEndian.AppendUint32(out, 65535)
	out = binary.LittleEndian.AppendUint32(out, 101) // raw IP
	for n := range packets {
		p := []byte{
			0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, byte(n >> 8), byte(n), 10, 9, 9, 9, 0x30, 0x39, 0x1b,
			0x58, 0, 12, 0, 0, 1, 2, 3, 4,
		}
		for _, v := range []uint32{1700000000 + uint32(n), 0, uint32(len(p)), uint32(len(p))} {
			out = binary.LittleEndian.AppendUint32(out, v)
		}
		out = append(out, p...)
	}
	return out
}

package gaffer

import (
	"encoding/binary"
	"hash/crc32"
)

// EndCheck closes every packet of the article's frame: the hash of "end of
// packet" that the sample code computes.
const EndCheck = 0x9908ace2

const endCheckBytes = 4

// Checksum returns the CRC32 that a datagram must carry at byte at: over the
// protocol id, little-endian and never sent, and over the datagram from at on
// with the CRC itself as zeros.
func Checksum(id uint32, b []byte, at int) uint32 {
	// Four bytes on the state are four zero bytes on the state with them xored in.
	state := zeros(zeros(^uint32(0)^id, 4), 4)
	return crc32.Update(^state, crc32.IEEETable, b[at+4:])
}

// SolveProtocolID returns the only protocol id under which a datagram's CRC at
// byte at is right. The checksum is linear, so the register can be run
// backwards: from the CRC over the datagram, and over the id to its start. One
// datagram always gives an id; only others can confirm it.
func SolveProtocolID(b []byte, at int) uint32 {
	crc := uint32(b[at]) | uint32(b[at+1])<<8 | uint32(b[at+2])<<16 | uint32(b[at+3])<<24
	state := ^crc
	for i := len(b) - 1; i >= at+4; i-- {
		state = back(state, b[i])
	}
	for range 8 { // the CRC's zeros, then the id
		state = back(state, 0)
	}
	return ^state
}

// SolveID returns the only protocol id under which a whole datagram's checksum is
// right; false where the profile has no checksum or b is too short for one.
// Where ProtocolID is set, false too for a datagram that does not agree with it.
func (p *Profile) SolveID(b []byte) (uint32, bool) {
	at := p.plan.crc
	if at < 0 || len(b) < at+4 {
		return 0, false
	}
	id := SolveProtocolID(b, at)
	return id, p.ProtocolID == nil || *p.ProtocolID == id
}

// Reseal makes the checksum of changed right, for the protocol id for which that of
// the whole datagram b was. It does nothing where the profile has none.
func (p *Profile) Reseal(changed, b []byte) {
	at := p.plan.crc
	if at < 0 || len(b) < at+4 {
		return
	}
	binary.LittleEndian.PutUint32(changed[at:], Checksum(SolveProtocolID(b, at), changed, at))
}

// zeros runs the register over n zero bytes.
func zeros(state uint32, n int) uint32 {
	for range n {
		state = state>>8 ^ crc32.IEEETable[byte(state)]
	}
	return state
}

// back undoes one byte: the table's entries differ in their top byte, which
// shifting leaves alone, so it tells the index.
func back(state uint32, b byte) uint32 {
	i := crcIndex[state>>24]
	return (state^crc32.IEEETable[i])<<8 | uint32(i^b)
}

var crcIndex = func() (index [256]byte) {
	for i, v := range crc32.IEEETable {
		index[v>>24] = byte(i)
	}
	return index
}()

package gaffer

import (
	"encoding/binary"
	"hash/crc32"
)

// EndCheck is at the end of every packet in the article's frame. It is the hash of "end
// of packet" that the sample code computes.
const EndCheck = 0x9908ace2

const endCheckBytes = 4

// Checksum returns the CRC32 that a datagram must carry at byte at. The CRC covers the
// protocol id, little-endian, which is never sent. Then it covers the datagram from
// byte at on, with the CRC itself as zeros.
func Checksum(id uint32, b []byte, at int) uint32 {
	// Feeding four bytes equals XORing them into the state, then feeding four zero bytes.
	state := zeros(zeros(^uint32(0)^id, 4), 4)
	return crc32.Update(^state, crc32.IEEETable, b[at+4:])
}

// SolveProtocolID returns the only protocol id for which a datagram's CRC at byte at is
// right. The checksum is linear, so the register can run backwards: from the CRC over
// the datagram, then over the id to the start. Every datagram yields an id. Only
// further datagrams can confirm it.
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

// SolveID returns the only protocol id for which a whole datagram's checksum is right.
// It returns false if the profile has no checksum, or b is too short for one. If
// ProtocolID is set, it also returns false for a datagram that does not agree with it.
func (p *Profile) SolveID(b []byte) (uint32, bool) {
	at := p.plan.crc
	if at < 0 || len(b) < at+4 {
		return 0, false
	}
	id := SolveProtocolID(b, at)
	return id, p.ProtocolID == nil || *p.ProtocolID == id
}

// Reseal corrects the checksum of changed. The whole datagram b determines the protocol
// id. If the profile has no checksum, Reseal does nothing.
func (p *Profile) Reseal(changed, b []byte) {
	at := p.plan.crc
	if at < 0 || len(b) < at+4 {
		return
	}
	binary.LittleEndian.PutUint32(changed[at:], Checksum(SolveProtocolID(b, at), changed, at))
}

// zeros feeds n zero bytes to the register.
func zeros(state uint32, n int) uint32 {
	for range n {
		state = state>>8 ^ crc32.IEEETable[byte(state)]
	}
	return state
}

// back undoes one byte. The table's entries differ in their top byte, and shifting
// leaves that byte alone, so it identifies the index.
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

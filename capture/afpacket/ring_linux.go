package afpacket

import (
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is the memory that the kernel writes frames into and shares with us
// (TPACKET_V3). It is divided into blocks. Each block belongs either to the
// kernel, which fills it, or to us. We read it and hand it back:
//
//	block:  version, private | status, frames, offset of the first, … | frame | frame | …
//	frame:  tpacket3_hdr | sockaddr_ll | headroom | captured bytes
//	        |<------- mac (from the header's start) ------>|
//
// Source: the kernel's Documentation/networking/packet_mmap.rst and
// include/uapi/linux/if_packet.h.
type ring struct {
	memory []byte
	block  int // bytes of each block
	at     int // the block to read
	left   int // frames of it that are still to be read
	offset int // where the next of them begins, from the start of memory
	held   bool
}

const (
	// The kernel hands over a block when it is full, or retireMilliseconds old. A
	// reader that is delayed loses frames once every block has been handed over,
	// full or not. With 64 blocks, that takes more than a second of light traffic.
	retireMilliseconds = 20

	blockMost  = 1 << 20
	blockLeast = 64 << 10
	frameUnit  = 2048 // blocks hold frames of any size, but the kernel requires a frame size

	// addressOffset is the offset of a frame's sockaddr_ll: TPACKET_ALIGN of the
	// size of its header.
	addressOffset = int(unsafe.Sizeof(unix.Tpacket3Hdr{})+15) &^ 15
	overhead      = 256 // of a block and its first frame; more than their headers take

	statusOffset = int(unsafe.Offsetof(unix.TpacketBlockDesc{}.Hdr))
)

// shape returns the size and the number of blocks for a ring of about buffer
// bytes and frames of up to snap bytes. There are at least two blocks, so that
// one fills while the other is read.
func shape(buffer, snap int) (block, count int) {
	block = max(blockLeast, min(blockMost, buffer/64))
	block = max(block, snap+headroom+overhead)
	block = 1 << bits.Len(uint(block-1))
	return block, max(2, buffer/block)
}

// openRing sets up the socket to fill a ring, and maps the ring.
func openRing(fd int, o Options) (ring, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return ring{}, os.NewSyscallError("setsockopt PACKET_VERSION", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_RESERVE, headroom); err != nil {
		return ring{}, os.NewSyscallError("setsockopt PACKET_RESERVE", err)
	}
	block, count := shape(o.Buffer, o.SnapLength)
	request := unix.TpacketReq3{
		Block_size: uint32(block), Block_nr: uint32(count), Frame_size: frameUnit,
		Frame_nr:       uint32(block / frameUnit * count),
		Retire_blk_tov: retireMilliseconds,
	}
	if err := unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return ring{},
			fmt.Errorf("a ring of %d blocks of %d KiB: %w", count, block>>10,
				os.NewSyscallError("setsockopt PACKET_RX_RING", err))
	}
	memory, err := unix.Mmap(fd, 0, block*count, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return ring{memory: memory, block: block}, os.NewSyscallError("mmap", err)
}

func (r *ring) close() error {
	if r.memory == nil {
		return nil
	}
	err := unix.Munmap(r.memory)
	r.memory = nil
	return os.NewSyscallError("munmap", err)
}

func (r *ring) header() *unix.TpacketHdrV1 {
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&r.memory[r.at*r.block+statusOffset]))
}

// ready reports whether we own the block to read.
func (r *ring) ready() bool {
	return r.held || atomic.LoadUint32(&r.header().Block_status)&unix.TP_STATUS_USER != 0
}

// next returns the next frame, from its header to the end of its block. It
// returns nil if none has arrived. The previous frame is then no longer valid.
func (r *ring) next() []byte {
	for r.left == 0 {
		if r.held {
			atomic.StoreUint32(&r.header().Block_status, unix.TP_STATUS_KERNEL)
			r.held = false
			r.at = (r.at + 1) % (len(r.memory) / r.block)
		}
		if !r.ready() {
			return nil
		}
		h := r.header()
		r.held, r.left, r.offset = true, int(h.Num_pkts), r.at*r.block+int(h.Offset_to_first_pkt)
	}
	b := r.memory[r.offset : (r.at+1)*r.block]
	r.offset += int((*unix.Tpacket3Hdr)(unsafe.Pointer(&b[0])).Next_offset)
	r.left--
	return b
}

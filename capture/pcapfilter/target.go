package pcapfilter

import "golang.org/x/net/bpf"

// Target is where a program runs. It determines how packets begin and where
// their outer VLAN tag is.
type Target uint8

// The targets.
const (
	EthernetBytes  Target = iota // whole frames, as in a file
	EthernetSocket               // AF_PACKET, SOCK_RAW: frames whose outer tag is in the metadata
	CookedSocket                 // AF_PACKET, SOCK_DGRAM: no link header; type and tag are in the metadata
)

const (
	etherType   = 12
	etherHeader = 14
	// networkHeader is SKF_NET_OFF. Offsets from it count from the network header
	// that the kernel found, whatever the socket puts before it.
	networkHeader = 0xfff00000
	// scratchTag is the BPF memory cell that holds the shift (see prologue).
	scratchTag = 0
)

// prologue clears M[0], the number of bytes by which a tag inside the packet
// shifts what follows it. The test for a tag sets it to 4 where the kernel does
// not remove the outer tag. As in libpcap, a packet that does not reach that
// test is read without a shift.
func (c *code) prologue() {
	if c.tagged {
		c.shift(0)
	}
}

func (c *code) shift(by uint32) {
	c.emit(bpf.LoadConstant{Dst: bpf.RegA, Val: by}, bpf.StoreScratch{Src: bpf.RegA, N: scratchTag})
}

// load reads at an offset. With indirect it adds M[0], the shift of a tag.
func (c *code) load(indirect bool, offset uint32, size int) {
	if indirect {
		c.emit(bpf.LoadScratch{Dst: bpf.RegX, N: scratchTag}, bpf.LoadIndirect{Off: offset, Size: size})
		return
	}
	c.emit(bpf.LoadAbsolute{Off: offset, Size: size})
}

// loadType reads the EtherType that follows depth tags.
func (c *code) loadType(depth int) {
	switch {
	case c.target == EthernetBytes || c.target == EthernetSocket && depth == 0:
		c.load(false, uint32(etherType+tagBytes*depth), halfBytes)
	case c.target == EthernetSocket:
		c.load(true, uint32(etherType+tagBytes*(depth-1)), halfBytes)
	case depth == 0:
		c.emit(bpf.LoadExtension{Num: bpf.ExtProto})
	default: // one tag: it is in the metadata, or at the start of the packet
		kept, inside, done := c.label(), c.label(), c.label()
		c.emit(bpf.LoadScratch{Dst: bpf.RegA, N: scratchTag})
		c.jump(bpf.JumpEqual, 0, kept, inside)
		c.place(kept)
		c.emit(bpf.LoadExtension{Num: bpf.ExtProto})
		c.jumpTo(done)
		c.place(inside)
		c.load(false, networkHeader+2, halfBytes)
		c.place(done)
	}
}

// network returns the offset of the network header, and whether M[0] must be
// added.
func (c *code) network(depth int) (offset uint32, indirect bool) {
	switch {
	case c.target == EthernetBytes || c.target == EthernetSocket && depth == 0:
		return uint32(etherHeader + tagBytes*depth), false
	case c.target == EthernetSocket:
		return uint32(etherHeader + tagBytes*(depth-1)), true
	case depth == 0:
		return networkHeader, false
	}
	return networkHeader, true
}

func (c *code) loadNetwork(depth int, offset uint32, size int) {
	base, indirect := c.network(depth)
	c.load(indirect, base+offset, size)
}

// skipHeader loads into X by how many bytes the IPv4 header shifts what follows
// it.
func (c *code) skipHeader(depth int) {
	base, indirect := c.network(depth)
	if !indirect {
		c.emit(bpf.LoadMemShift{Off: base})
		return
	}
	c.load(true, base, oneByte)
	c.emit(
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: headerLengthMask},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftLeft, Val: 2},
		bpf.ALUOpX{Op: bpf.ALUOpAdd}, // X still holds M[0]
		bpf.TAX{},
	)
}

// loadTransport reads after the header that skipHeader has skipped.
func (c *code) loadTransport(depth int, offset uint32, size int) {
	base, _ := c.network(depth)
	c.emit(bpf.LoadIndirect{Off: base + offset, Size: size})
}

func (n tag) generate(c *code, yes, no label) {
	named := func(load func()) func(yes, no label) {
		return func(yes, no label) {
			if n.any {
				c.jumpTo(yes)
				return
			}
			load()
			c.emit(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: identifierMask})
			c.jump(bpf.JumpEqual, n.id, yes, no)
		}
	}
	isTag := func(yes, no label) {
		c.loadType(n.depth)
		for i, t := range tagTypes {
			if i == len(tagTypes)-1 {
				c.jump(bpf.JumpEqual, t, yes, no)
				break
			}
			next := c.label()
			c.jump(bpf.JumpEqual, t, yes, next)
			c.place(next)
		}
	}
	inside := func(yes, no label) {
		// The tag's number is where the network header would be without the tag.
		c.all(yes, no, isTag, named(func() { c.loadNetwork(n.depth, 0, halfBytes) }))
	}
	if c.target == EthernetBytes || n.depth > 0 {
		inside(yes, no)
		return
	}
	kept, other := c.label(), c.label()
	c.emit(bpf.LoadExtension{Num: bpf.ExtVLANTagPresent})
	c.jump(bpf.JumpEqual, 1, kept, other)
	c.place(kept)
	named(func() { c.emit(bpf.LoadExtension{Num: bpf.ExtVLANTag}) })(yes, no)
	c.place(other)
	c.shift(tagBytes)
	inside(yes, no)
}

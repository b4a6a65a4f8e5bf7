package pcapfilter

import "golang.org/x/net/bpf"

// Target is where a program runs: what its packets begin with, and who keeps
// their outer VLAN tag.
type Target uint8

// The targets.
const (
	EthernetBytes  Target = iota // whole frames, as in a file
	EthernetSocket               // AF_PACKET, SOCK_RAW: frames whose outer tag the kernel keeps
	CookedSocket                 // AF_PACKET, SOCK_DGRAM: no link header; type and tag are asked of the kernel
)

const (
	etherType   = 12
	etherHeader = 14
	// networkHeader is SKF_NET_OFF: offsets from where the kernel found the
	// network header, whatever the socket puts before it.
	networkHeader = 0xfff00000
	// scratchTag is the machine's memory cell for what prologue notes.
	scratchTag = 0
)

// prologue begins to note how far a tag that is in the packet shifts what is
// behind it: M[0] = 0. Where the kernel does not keep the outer tag, the test for
// one sets it to 4; as in libpcap, a packet that did not come to that test is
// read unshifted.
func (c *code) prologue() {
	if c.tagged {
		c.shift(0)
	}
}

func (c *code) shift(by uint32) {
	c.emit(bpf.LoadConstant{Dst: bpf.RegA, Val: by}, bpf.StoreScratch{Src: bpf.RegA, N: scratchTag})
}

// load reads at an offset of the network header's, or of what is before it.
func (c *code) load(indirect bool, offset uint32, size int) {
	if indirect {
		c.emit(bpf.LoadScratch{Dst: bpf.RegX, N: scratchTag}, bpf.LoadIndirect{Off: offset, Size: size})
		return
	}
	c.emit(bpf.LoadAbsolute{Off: offset, Size: size})
}

// loadType reads the EtherType that follows so many tags.
func (c *code) loadType(depth int) {
	switch {
	case c.target == EthernetBytes || c.target == EthernetSocket && depth == 0:
		c.load(false, uint32(etherType+tagBytes*depth), halfBytes)
	case c.target == EthernetSocket:
		c.load(true, uint32(etherType+tagBytes*(depth-1)), halfBytes)
	case depth == 0:
		c.emit(bpf.LoadExtension{Num: bpf.ExtProto})
	default: // one tag: the kernel keeps it, or it begins what the socket gives
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

// network returns where the network header begins, and whether M[0] is to be added.
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

// skipHeader puts into X how far the IPv4 header shifts what is behind it.
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
		bpf.ALUOpX{Op: bpf.ALUOpAdd}, // X is M[0] still
		bpf.TAX{},
	)
}

// loadTransport reads behind the header that skipHeader has skipped.
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
		// The tag's number is where the network header would stand without it.
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

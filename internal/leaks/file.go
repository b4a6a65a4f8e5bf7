package leaks

import "encoding/binary"

// Make returns a capture for a seed, and its marks.
func Make(seed uint64) (file []byte, m *Marks) {
	m = newMarks(seed)
	w := writer{marks: m, order: binary.AppendByteOrder(binary.LittleEndian)}
	if m.chance.IntN(2) == 0 {
		w.order = binary.BigEndian
	}
	link := linkTypes[seed%uint64(len(linkTypes))]
	if m.chance.IntN(3) == 0 {
		return w.classic(link), m
	}
	return w.pcapng(link), m
}

type writer struct {
	marks *Marks
	order binary.AppendByteOrder
	out   []byte
}

func (w *writer) u16(b []byte, v int) []byte    { return w.order.AppendUint16(b, uint16(v)) }
func (w *writer) u32(b []byte, v uint32) []byte { return w.order.AppendUint32(b, v) }

// start is the time of the first frame, in seconds since 1970. step is the time
// between two frames, in microseconds.
const (
	start = 1_790_000_000
	step  = 8000
)

// classic returns a classic pcap file in one of its three formats.
func (w *writer) classic(link int) []byte {
	const micro, nano, modified = 0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34
	magic := []uint32{micro, nano, modified}[w.marks.chance.IntN(3)]
	b := w.u32(nil, magic)
	b = w.u16(w.u16(b, 2), 4)
	b = append(b, w.marks.bytes("time zone and accuracy of a classic file", 8)...)
	b = w.u32(w.u32(b, 65535), uint32(link))
	for i, r := range w.marks.frames(link) {
		at := i * step
		if magic == nano {
			at *= 1000
		}
		unit := 1_000_000
		if magic == nano {
			unit = 1_000_000_000
		}
		b = w.u32(w.u32(b, uint32(start+at/unit)), uint32(at%unit))
		b = w.u32(w.u32(b, uint32(len(r.data))), uint32(r.length))
		if magic == modified {
			b = append(b, w.marks.bytes("interface and protocol of a modified record", 8)...)
		}
		b = append(b, r.data...)
	}
	return b
}

// option returns a pcapng option.
func (w *writer) option(code int, value []byte) []byte {
	b := w.u16(w.u16(nil, code), len(value))
	return append(append(b, value...), make([]byte, -len(value)&3)...)
}

// texts returns a text option for each code.
func (w *writer) texts(place string, codes ...int) (b []byte) {
	for _, code := range codes {
		b = append(b, w.option(code, w.marks.text(place, 8+w.marks.chance.IntN(20)))...)
	}
	return b
}

// custom returns custom options of text and of bytes, and one unknown option.
func (w *writer) custom(place string) (b []byte) {
	const number = 32473 // for examples (RFC 5612)
	for _, code := range []int{2988, 2989, 19372, 19373} {
		b = append(b, w.option(code, append(w.u32(nil, number), w.marks.text(place, 12)...))...)
	}
	return append(b, w.option(777, w.marks.bytes(place, 12))...)
}

// block writes a pcapng block.
func (w *writer) block(kind uint32, body ...[]byte) {
	b := join(body...)
	b = append(b, make([]byte, -len(b)&3)...)
	w.out = w.u32(w.u32(w.out, kind), uint32(len(b)+12))
	w.out = w.u32(append(w.out, b...), uint32(len(b)+12))
}

// pcapng returns a pcapng file with all kinds of blocks.
func (w *writer) pcapng(link int) []byte {
	for range 1 + w.marks.chance.IntN(2) {
		w.section(link)
		for _, r := range w.marks.frames(link) {
			w.packet(r)
			w.between()
		}
		w.statistics()
	}
	return w.out
}

// section writes the beginning of a section: its header, interface, names,
// secrets.
func (w *writer) section(link int) {
	m := w.marks
	const magic = 0x1a2b3c4d
	w.block(0x0a0d0d0a, w.u32(nil, magic), w.u16(nil, 1), w.u16(nil, 0), w.u32(nil, 0xffffffff), w.u32(nil,
		0xffffffff),
		w.texts("section", 1, 2, 3, 4), w.custom("custom option of a section"), w.option(0, nil))
	w.block(1, w.u16(nil, link), w.u16(nil, 0), w.u32(nil, 0),
		w.texts("interface", 1, 2, 3, 12, 15), w.option(4, join(m.ip4("address of an interface"), []byte{
			255, 255,
			255, 0,
		})),
		w.option(5, append(m.ip6("address of an interface"), 64)), w.option(6, m.mac("MAC of an interface")),
		w.option(7, m.bytes("EUI of an interface", 8)), w.option(8, m.bytes("speed of an interface", 8)),
		w.option(10, m.bytes("time zone of an interface", 4)), w.option(11, append([]byte{0},
			m.text("capture filter", 16)...)),
		w.option(13, m.bytes("FCS length of an interface", 4)), w.custom("custom option of an interface"),
		w.option(0, nil))
	name := func(kind int, address []byte) []byte {
		value := join(address, m.text("name of a host", 10), []byte{0})
		return append(append(w.u16(w.u16(nil, kind), len(value)), value...), make([]byte, -len(value)&3)...)
	}
	w.block(4, name(1, m.ip4("address with a name")), name(2, m.ip6("address with a name")), w.u32(nil, 0),
		w.texts("name server", 1, 2), w.option(3, m.ip4("address of a name server")), w.option(0, nil))
	secret := m.text("TLS secret", 40)
	w.block(10, w.u32(nil, 0x544c534b), w.u32(nil, uint32(len(secret))), secret, w.texts("secrets", 1))
}

// packet writes a frame in one of the three packet blocks.
func (w *writer) packet(r record) {
	m := w.marks
	at := uint64(start)*1_000_000 + uint64(len(w.out))*100
	data := append(append([]byte(nil), r.data...), make([]byte, -len(r.data)&3)...)
	extras := []byte(nil)
	if m.chance.IntN(3) == 0 {
		extras = join(w.texts("comment", 1, 1), w.option(2, w.u32(nil, uint32(m.chance.IntN(3)))), w.option(3,
			m.bytes("hash of a packet", 16)),
			w.option(2, m.bytes("flags of another length", 12)), w.option(4, m.bytes("count that is none", 8)),
			w.option(5, m.bytes("packet id", 8)),
			w.option(6, m.bytes("queue", 4)), w.option(7, m.bytes("verdict", 9)), w.option(8, m.bytes("process", 8)),
			w.custom("custom option of a packet"), w.option(0, nil))
	}
	lengths := [][]byte{
		w.u32(nil, uint32(at>>32)), w.u32(nil, uint32(at)), w.u32(nil, uint32(len(r.data))),
		w.u32(nil, uint32(r.length)),
	}
	switch m.chance.IntN(8) {
	case 0:
		if len(r.data) == r.length { // a simple packet block has no length of its own
			w.block(3, w.u32(nil, uint32(r.length)), data)
			return
		}
		fallthrough
	case 1:
		w.block(2, w.u16(nil, 0), w.u16(nil, 0), join(lengths...), data, extras)
	default:
		w.block(6, w.u32(nil, 0), join(lengths...), data, extras)
	}
}

// between sometimes writes a block that is no packet.
func (w *writer) between() {
	m := w.marks
	number := w.u32(nil, 32473)
	switch m.chance.IntN(40) {
	case 0:
		w.block(0x0bad, number, m.bytes("custom block", 24))
	case 1:
		w.block(0x40000bad, number, m.bytes("custom block", 24))
	case 2:
		w.block(0xabcd, m.bytes("unknown block", 24))
	case 3:
		w.block(9, []byte("__REALTIME_TIMESTAMP=1\nMESSAGE="), m.text("journal", 20), []byte{'\n'})
	case 4:
		w.block(0x80000001, m.bytes("local block", 24))
	}
}

// statistics writes the counts of the interface.
func (w *writer) statistics() {
	at := uint64(start+10) * 1_000_000
	w.block(5, w.u32(nil, 0), w.u32(nil, uint32(at>>32)), w.u32(nil, uint32(at)), w.texts("statistics", 1),
		w.option(4, w.marks.bytes("count of an interface that is none", 8)), w.option(7,
			w.marks.bytes("count of an interface that is none", 3)),
		w.custom("custom option of statistics"), w.option(0, nil))
}

package anonymise

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"strconv"
	"unsafe"
)

// names replaces every address and port with another one. The replacements are
// numbered by first appearance, and are the same each time.
type names struct {
	held    int // approximate bytes of the tables
	ports   bool
	ips     map[netip.Addr]netip.Addr
	order   []netip.Addr
	counts  map[kindOfAddr]uint32
	portOf  map[uint16]uint16
	portSeq []uint16
	macs    map[[6]byte][6]byte

	vlans, devices, sessions numbers // of VLANs, capturing interfaces, PPPoE sessions
	key                      [32]byte
	shifts                   map[[16]byte]uint32 // of IP identifications, by sender
}

// addressCost is the approximate memory of an IP address in bytes. It is in a
// map that is half empty after growth, in the list of all addresses, and in the
// report as two texts.
const addressCost = (2*2+1)*int(unsafe.Sizeof(netip.Addr{})) + int(unsafe.Sizeof(Replacement{})) +
	2*len("2001:db8::ffff:ffff")

// size returns the approximate size of the tables in bytes.
func (n *names) size() int {
	numbers := len(n.vlans.given) + len(n.devices.given) + len(n.sessions.given)
	return n.held + 4*numbers*int(unsafe.Sizeof(uint32(0)))
}

// numbers replaces each number with another one: 1, 2, ... in order of first
// appearance. 0 stays 0.
type numbers struct{ given map[uint32]uint32 }

func (n *numbers) of(x uint32) uint32 {
	if x == 0 {
		return 0
	}
	to, ok := n.given[x]
	if !ok {
		if n.given == nil {
			n.given = map[uint32]uint32{}
		}
		to = uint32(len(n.given) + 1)
		n.given[x] = to
	}
	return to
}

// vlan replaces the id in a VLAN tag. The ids 0 and 4095 name no VLAN (IEEE
// 802.1Q) and stay.
func (n *names) vlan(tag uint16) uint16 {
	const ids = 0xfff
	id := tag & ids
	if id != ids {
		id = uint16(n.vlans.of(uint32(id)))
	}
	return tag&^ids | id
}

// id shifts an IP identification in the range 1 to most by a secret number of
// its sender. Equal ones stay equal, and consecutive ones stay consecutive. 0
// means none, and stays.
func (n *names) id(source [16]byte, id, most uint32) uint32 {
	if id == 0 {
		return 0
	}
	shift, ok := n.shifts[source]
	if !ok {
		mac := hmac.New(sha256.New, n.key[:])
		mac.Write([]byte("IP identification"))
		mac.Write(source[:])
		shift = binary.BigEndian.Uint32(mac.Sum(nil))
		n.shifts[source] = shift
		n.held += 2 * int(unsafe.Sizeof(source)+unsafe.Sizeof(shift))
	}
	return uint32((uint64(id)-1+uint64(shift))%uint64(most)) + 1
}

// kindOfAddr is a kind of address that programs treat in a special way. An
// address keeps its kind.
type kindOfAddr uint8

const (
	unicast4 kindOfAddr = iota
	loopback4
	multicast4
	unicast6
	local6
	multicast6
)

func (n *names) init(key [32]byte, ports bool) {
	n.key, n.ports, n.shifts = key, ports, map[[16]byte]uint32{}
	n.ips, n.counts = map[netip.Addr]netip.Addr{}, map[kindOfAddr]uint32{}
	n.portOf, n.macs = map[uint16]uint16{}, map[[6]byte][6]byte{}
}

// firstPort is the first replacement for a port.
const firstPort = 40001

// ip returns the replacement of an address. Addresses that identify no host
// stay: unspecified, broadcast, and localhost.
func (n *names) ip(a netip.Addr) netip.Addr {
	if a.IsUnspecified() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) ||
		a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback() {
		return a
	}
	if a.Is4In6() { // written as IPv6, but read as IPv4
		return netip.AddrFrom16(n.ip(a.Unmap()).As16())
	}
	if to, ok := n.ips[a]; ok {
		return to
	}
	kind := unicast4
	switch {
	case a.Is4() && a.IsLoopback():
		kind = loopback4
	case a.Is4() && a.IsMulticast():
		kind = multicast4
	case a.Is4():
	case a.IsMulticast():
		kind = multicast6
	case a.IsLinkLocalUnicast():
		kind = local6
	default:
		kind = unicast6
	}
	n.counts[kind]++
	i := n.counts[kind]
	var to netip.Addr
	if a.Is4() {
		first := map[kindOfAddr]uint32{unicast4: 10 << 24, loopback4: 127<<24 | 1<<16, multicast4: 239<<24 | 255<<16}[kind]
		to = netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, first+i)))
	} else {
		b := [16]byte{0: map[kindOfAddr]byte{unicast6: 0xfd, local6: 0xfe, multicast6: 0xff}[kind]}
		switch kind {
		case local6:
			b[1] = 0x80
		case multicast6:
			b[1] = 0x05
		}
		binary.BigEndian.PutUint32(b[12:], i)
		to = netip.AddrFrom16(b)
	}
	n.ips[a] = to
	n.order = append(n.order, a)
	n.held += addressCost
	return to
}

// port returns the replacement of a port. If ports are kept, it returns the
// port itself.
func (n *names) port(p uint16) uint16 {
	if !n.ports || p == 0 {
		return p
	}
	to, ok := n.portOf[p]
	if !ok {
		to = firstPort + uint16(len(n.portSeq))
		n.portOf[p] = to
		n.portSeq = append(n.portSeq, p)
	}
	return to
}

// mac writes the replacement of a hardware address. A broadcast address stays,
// and a group address stays a group address.
func (n *names) mac(dst, src []byte) {
	from := [6]byte(src)
	to, ok := n.macs[from]
	switch {
	case from == [6]byte{255, 255, 255, 255, 255, 255} || from == [6]byte{}:
		to = from
	case !ok:
		binary.BigEndian.PutUint32(to[2:], uint32(len(n.macs)+1))
		to[0] = 2 | from[0]&1 // a locally administered address
		n.macs[from] = to
		n.held += 2 * int(unsafe.Sizeof(from)+unsafe.Sizeof(to))
	}
	copy(dst, to[:])
}

// addr writes the replacement of an IP address of 4 or 16 bytes.
func (n *names) addr(dst, src []byte) {
	if a, ok := netip.AddrFromSlice(src); ok {
		copy(dst, n.ip(a).AsSlice())
	}
}

func (n *names) addresses() []Replacement {
	list := make([]Replacement, len(n.order))
	for i, a := range n.order {
		list[i] = Replacement{a.String(), n.ips[a].String()}
	}
	return list
}

func (n *names) portList() []Replacement {
	list := make([]Replacement, len(n.portSeq))
	for i, p := range n.portSeq {
		list[i] = Replacement{strconv.Itoa(int(p)), strconv.Itoa(int(n.portOf[p]))}
	}
	return list
}

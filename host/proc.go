package host

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/machine"
)

// Sampler takes samples. It is not safe for concurrent use.
type Sampler struct {
	Proc   string // the folder of proc(5), usually "/proc"
	Owners *Owners

	system uint64
	lines  *bufio.Reader
}

// maxFile bounds what is read of one file: 100,000 sockets.
const maxFile = 16 << 20

// NewSampler returns a sampler that reads a folder of proc(5).
func NewSampler(proc string) *Sampler {
	s := &Sampler{Proc: proc, Owners: NewOwners(proc), lines: bufio.NewReaderSize(nil, 4<<10)}
	h := fnv.New64a()
	boot, _ := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id")) // empty where there is none
	space, _ := os.Readlink(filepath.Join(proc, "self/ns/net"))
	_, _ = h.Write(append(boot, space...)) // never fails
	s.system = h.Sum64()
	return s
}

// Take reads the counters now. Addresses are those of the host, and ports those whose sockets are of interest. It
// returns false if this system has no such counters.
func (s *Sampler) Take(at machine.Instant, addresses []netip.Addr, ports []uint16) (*Sample, bool) {
	x := &Sample{
		At: at, System: s.system, Cut: len(ports) > maxPorts,
		Addresses: addresses[:min(len(addresses), maxAddresses)], Ports: ports[:min(len(ports), maxPorts)],
	}
	wanted := map[uint16]bool{}
	for _, port := range x.Ports {
		wanted[port] = true
	}
	known := s.each("net/udp", func(line []byte) { s.socket(x, wanted, line) }, &x.Cut)
	if !s.each("net/udp6", func(line []byte) { s.socket(x, wanted, line) }, &x.Cut) && !known {
		return nil, false
	}
	s.Owners.name(x.Sockets)
	var names [][]byte
	s.each("net/snmp", func(line []byte) { names = x.Counts.snmp(names, line) }, nil)
	s.each("net/snmp6", x.Counts.snmp6, nil)
	s.each("net/softnet_stat", x.Counts.softnet, nil)
	s.each("net/dev", x.device, &x.Cut)
	return x, true
}

// each calls do for each line of a file. It returns false if the file cannot be read, and sets cut where it reads only
// its beginning.
func (s *Sampler) each(name string, do func(line []byte), cut *bool) bool {
	f, err := os.Open(filepath.Join(s.Proc, name))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	s.lines.Reset(io.LimitReader(f, maxFile))
	read := 0
	for {
		line, err := s.lines.ReadSlice('\n')
		read += len(line)
		if len(line) > 0 && err != bufio.ErrBufferFull { //nolint:errorlint // ReadSlice returns it as it is
			do(line)
		}
		if err != nil && err != bufio.ErrBufferFull { //nolint:errorlint // as above
			if cut != nil && read >= maxFile {
				*cut = true
			}
			return true
		}
	}
}

// socket reads a line of net/udp or net/udp6:
//
//	sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
//	12: 0100007F:1E61 00000000:0000 07 00000000:00034000 00:00000000 00000000  1000        0 31337 2 0000000000000000 491
func (s *Sampler) socket(x *Sample, wanted map[uint16]bool, line []byte) {
	f := bytes.Fields(line)
	if len(f) < 13 {
		return
	}
	local, ok := address(f[1])
	if !ok || !wanted[local.Port()] {
		return
	}
	if len(x.Sockets) == maxSockets {
		x.Cut = true
		return
	}
	remote, ok := address(f[2])
	_, queue, ok2 := bytes.Cut(f[4], []byte(":"))
	if !ok || !ok2 {
		return
	}
	waits, err := strconv.ParseUint(string(queue), 16, 64)
	uid, err2 := strconv.ParseUint(string(f[7]), 10, 32)
	inode, err3 := strconv.ParseUint(string(f[9]), 10, 64)
	drops, err4 := strconv.ParseUint(string(f[12]), 10, 64)
	if err != nil || err2 != nil || err3 != nil || err4 != nil {
		return
	}
	x.Sockets = append(x.Sockets, Socket{
		Local: local, Remote: remote, Inode: inode, UID: uint32(uid), Queue: waits, Drops: drops,
	})
}

// address reads an address and port of proc(5): words of four bytes in the byte order of the host, in hexadecimal
// digits.
func address(text []byte) (netip.AddrPort, bool) {
	host, port, ok := bytes.Cut(text, []byte(":"))
	var b [16]byte
	n := len(host) / 2
	if !ok || n != 4 && n != 16 || len(host)%2 != 0 {
		return netip.AddrPort{}, false
	}
	if _, err := hex.Decode(b[:], host); err != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i < n; i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	number, err := strconv.ParseUint(string(port), 16, 16)
	a, _ := netip.AddrFromSlice(b[:n])
	return netip.AddrPortFrom(a.Unmap(), uint16(number)), err == nil
}

// snmp reads a line of net/snmp. A line of names stands before each line of numbers, and is returned.
func (c *Counts) snmp(names [][]byte, line []byte) [][]byte {
	f := bytes.Fields(line)
	if len(f) < 2 || string(f[0]) != "Udp:" {
		return nil
	}
	if names == nil {
		for i := range f {
			names = append(names, bytes.Clone(f[i]))
		}
		return names
	}
	for i := 1; i < min(len(f), len(names)); i++ {
		c.add(string(names[i]), f[i])
	}
	return nil
}

// snmp6 reads a line of net/snmp6: a name and a number.
func (c *Counts) snmp6(line []byte) {
	if f := bytes.Fields(line); len(f) == 2 && bytes.HasPrefix(f[0], []byte("Udp6")) {
		c.add(string(f[0][4:]), f[1])
	}
}

func (c *Counts) add(name string, number []byte) {
	to := map[string]*uint64{
		"NoPorts": &c.NoPorts, "InErrors": &c.ReceiveErrors, "RcvbufErrors": &c.BufferErrors,
		"InCsumErrors": &c.ChecksumErrors,
	}[name]
	if n, err := strconv.ParseUint(string(number), 10, 64); to != nil && err == nil {
		*to += n
	}
}

// softnet reads the line of one processor in net/softnet_stat. Its second number is that of dropped packets.
func (c *Counts) softnet(line []byte) {
	if f := bytes.Fields(line); len(f) > 1 {
		if n, err := strconv.ParseUint(string(f[1]), 16, 64); err == nil {
			c.Softnet += n
		}
	}
}

// device reads a line of net/dev: eight numbers of what was received, and eight of what was sent.
//
//	eth0: bytes packets errs drop fifo frame compressed multicast  bytes packets errs drop fifo colls carrier compressed
func (s *Sample) device(line []byte) {
	name, rest, ok := strings.Cut(string(line), ":")
	f := strings.Fields(rest)
	if !ok || len(f) < 13 {
		return
	}
	if len(s.Devices) == maxDevices {
		s.Cut = true
		return
	}
	d := Device{Name: clip(strings.TrimSpace(name))}
	for i, to := range map[int]*uint64{
		2: &d.ReceiveErrors, 3: &d.ReceiveDrops, 4: &d.ReceiveFIFO, 11: &d.TransmitDrops, 12: &d.TransmitFIFO,
	} {
		n, err := strconv.ParseUint(f[i], 10, 64)
		if err != nil {
			return
		}
		*to = n
	}
	s.Devices = append(s.Devices, d)
}

// clip bounds a text.
func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxText)], "") }

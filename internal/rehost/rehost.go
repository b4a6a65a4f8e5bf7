// Package rehost copies captures of simulated traffic with other addresses. `ackscope simulate` puts
// all clients of a server on one host, but the players of a game have one each:
//
//	packets, err := rehost.Copy(to, "lobby.pcapng", rehost.Spread(40000))
package rehost

import (
	"errors"
	"io"
	"net/netip"

	"github.com/ackscope/ackscope/capture"
)

const (
	rawIP    = 101        // DLT_RAW
	serverIP = 0xC0000201 // 192.0.2.1
	firstIP  = 0x0A000002 // 10.0.0.2
)

// Spread gives each client of a server a host of its own, for Copy. `ackscope simulate` and the recorded lobbies have
// all clients on one host, but players have one each. A client is an end with another port than the server.
func Spread(server uint16) Place {
	hosts := map[netip.AddrPort]netip.AddrPort{}
	return func(_ int, end netip.AddrPort) netip.AddrPort {
		if _, known := hosts[end]; !known {
			n := uint32(serverIP)
			if end.Port() != server {
				n = firstIP + uint32(len(hosts))
			}
			ip := netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
			hosts[end] = netip.AddrPortFrom(ip, end.Port())
		}
		return hosts[end]
	}
}

// Place says where an end of a datagram is in a copy. Datagrams count from 1.
type Place func(packet int, end netip.AddrPort) netip.AddrPort

// Copy copies the UDP datagrams of a capture as pcapng, with other ends. It returns their number.
func Copy(to io.Writer, path string, place Place) (packets int, err error) {
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := capture.NewWriter(to, capture.WriterOptions{})
	if err != nil {
		return 0, err
	}
	if _, err := out.AddInterface(capture.Interface{LinkType: rawIP}); err != nil {
		return 0, err
	}
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	var frame capture.Frame
	var packet capture.Packet
	var bytes []byte
	for {
		if err := in.Next(&frame); errors.Is(err, io.EOF) {
			return packets, out.Close()
		} else if err != nil {
			return packets, err
		}
		decoder.Decode(&frame, &packet)
		if packet.Transport != capture.UDP {
			continue
		}
		packets++
		ends := capture.Envelope{
			Src: place(packets, packet.Src), Dst: place(packets, packet.Dst), ID: uint16(packets),
		}
		if bytes, err = capture.AppendUDP(bytes[:0], ends, packet.Payload); err != nil {
			return packets, err
		}
		if err := out.WriteFrame(&capture.Frame{
			At: packet.At, LinkType: rawIP, Length: len(bytes), Data: bytes,
		}); err != nil {
			return packets, err
		}
	}
}

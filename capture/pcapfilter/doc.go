// Package pcapfilter compiles capture filters in the language of tcpdump and
// libpcap to classic BPF, the kernel's packet filter, without libpcap. For
// example, it compiles
//
//	udp port 7777 and host 10.0.0.1
//
// It accepts a subset of pcap-filter(7). Every filter of the subset means the
// same as in libpcap, down to the verdict on each packet. Compile refuses
// everything else, with the column; it never approximates.
//
//	ip ip6 arp rarp tcp udp sctp icmp icmp6 igmp esp ah
//	[ip|ip6|ether] proto NUMBER
//	[ip|ip6|arp|rarp] [src|dst|src or dst|src and dst] [host] ADDRESS
//	[ip|ip6|arp|rarp] [src|dst|src or dst|src and dst] net ADDRESS/BITS
//	                                       net ADDRESS mask MASK, net 10.1
//	[tcp|udp|sctp] [src|dst|src or dst|src and dst] port NUMBER
//	[tcp|udp|sctp] [src|dst|src or dst|src and dst] portrange LOW-HIGH
//	vlan [NUMBER]
//	less LENGTH, greater LENGTH, len OPERATOR NUMBER
//	ether [src|dst|src or dst|src and dst] [host] STATION
//	[ether] broadcast, [ether|ip|ip6] multicast
//	PROTOCOL[OFFSET] OPERATOR NUMBER, PROTOCOL[OFFSET:SIZE] & MASK OPERATOR NUMBER
//	inbound, outbound (live)
//	not and or ! && || ( )
//
// Some rules of libpcap are unusual:
//
//   - `and` and `or` have the same precedence, and group from the left.
//   - A value alone after one of them has the qualifiers of the value before it:
//     "port 7777 or 7778".
//   - `port` tests only the first fragment.
//   - `vlan` makes everything after it in the text apply behind the tag.
//   - udp[…], tcp[…], sctp[…], icmp[…] and igmp[…] test IPv4 packets only.
//
// PROTOCOL is one of the five in that last rule, or one of ether, ip, ip6, arp,
// rarp and icmp6. SIZE is 1, 2 or 4. OPERATOR is one of = == != < <= > >=. MASK
// and NUMBER may be several values with | between them. The usual names are
// known: tcpflags, tcp-syn, icmptype, icmp-echo and the like. A capture on
// `any` has no ether. Names of hosts, networks and ports are not looked up.
//
// The kernel removes the outer VLAN tag of live packets. So a program is
// compiled for a Target: the bytes of a file, or a live socket. On a socket the
// kernel's metadata holds the tag.
//
// Source: pcap-filter(7) of libpcap 1.10. The tests compare all verdicts with
// those of `tcpdump -ddd`.
package pcapfilter

// Package pcapfilter compiles capture filters, in the language of tcpdump and
// libpcap, to the kernel's packet filter machine (classic BPF), without libpcap.
//
// What it takes is a subset of pcap-filter(7), and means what libpcap makes of
// it, to the verdict on every packet; what is not in the subset is refused with
// the column, never approximated:
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
// As in libpcap, `and` and `or` bind equally, from the left; a value may stand
// alone behind one of them, with the qualifiers of the one before ("port 7777
// or 7778"); `port` looks into the first fragment only; `vlan` moves what follows
// it in the text behind the tag; and udp[…], tcp[…], sctp[…], icmp[…] and igmp[…]
// look behind IPv4 only. PROTOCOL is one of these, ether, ip, ip6, arp, rarp or
// icmp6; SIZE 1, 2 or 4; OPERATOR one of = == != < <= > >=; MASK and NUMBER may be
// several with | in between; tcpflags, tcp-syn, icmptype, icmp-echo and their like
// are known. On any there is no ether. Names of hosts, networks and ports are
// not looked up.
//
// The kernel takes the outer VLAN tag out of live packets, so a program is made
// for a Target: a file's bytes, or a live socket, where the tag is asked of the
// kernel.
//
// Source: pcap-filter(7) of libpcap 1.10; the verdicts of `tcpdump -ddd` are the
// tests' oracle.
package pcapfilter

package listing

import (
	"strconv"
	"strings"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/dissect/stack"
	"github.com/ackscope/ackscope/filter"
	"github.com/ackscope/ackscope/show"
)

// stackLayers are the layers of which no column knows fields, by the name of
// gopacket's layer, with tshark's name. Layers that follow each other under one
// name are one layer there.
var stackLayers = map[string]string{
	"Linux SLL": "sll", "LinuxSLL2": "sll", "Loopback": "null", "PPPoE": "pppoe", "PPP": "ppp", "LLC": "llc",
	"SNAP": "llc", "ARP": "arp", "ICMPv4": "icmp", "ICMPv6": "icmpv6", "ICMPv6Echo": "icmpv6",
	"ICMPv6RouterSolicitation": "icmpv6", "ICMPv6RouterAdvertisement": "icmpv6",
	"ICMPv6NeighborSolicitation":  "icmpv6",
	"ICMPv6NeighborAdvertisement": "icmpv6", "ICMPv6Redirect": "icmpv6", "MLDv1MulticastListenerQuery": "icmpv6",
	"MLDv1MulticastListenerReport": "icmpv6", "MLDv1MulticastListenerDone": "icmpv6",
	"GRE": "gre", "VXLAN": "vxlan", "DNS": "dns",
}

// quotedLayers are those of a packet that an error of ICMP quotes.
var quotedLayers = map[string]string{"IPv4": "ip", "IPv6": "ipv6", "UDP": "udp", "TCP": "tcp", "ICMPv4": "icmp"}

// stackLayers writes the layers that gopacket decodes and no column knows.
func (s *tsharkWriter) stackLayers(n *int, l *filter.Reading, x *analyze.Record) {
	if frame, _ := show.StackOf(l, x); frame != nil {
		s.stack(n, 8, frame, stackLayers)
	}
}

// stack writes the layers of a stack that have a name, below so many blanks.
func (s *tsharkWriter) stack(n *int, blanks int, k *stack.Stack, names map[string]string) {
	told := map[string]bool{}
	for i := 0; i < len(k.Layers); {
		name := names[k.Layers[i].LayerType().String()]
		if name == "" || told[name] { // one key each: a tunnel can hold the same layer again
			i++
			continue
		}
		told[name] = true
		var fields []stack.Field
		var quoted *stack.Stack
		for ; i < len(k.Layers); i++ {
			l := &k.Layers[i]
			if _, quote := l.Layer.(*stack.Quote); names[l.LayerType().String()] != name && !quote {
				break
			}
			fields = append(fields, k.Fields(i)...)
			quoted = l.Quoted
		}
		s.stackLayer(n, blanks, name, fields, quoted)
	}
}

// stackLayer writes one layer: each field by its name, then what it quotes.
func (s *tsharkWriter) stackLayer(n *int, blanks int, name string, list []stack.Field, quoted *stack.Stack) {
	s.next(n, blanks, name)
	s.buf = append(s.buf, '{')
	inner := 0
	var order []string
	values, truth := map[string][]string{}, map[string]bool{}
	for i := range list {
		f := &list[i]
		if f.Kind == stack.Group {
			continue
		}
		if values[f.Name] == nil {
			order = append(order, f.Name)
		}
		truth[f.Name] = f.Kind == stack.Flag
		values[f.Name] = append(values[f.Name], s.stackValue(f))
	}
	for _, key := range order {
		s.field(&inner, blanks+2, name, key, values[key], truth[key])
	}
	if quoted != nil {
		s.stack(&inner, blanks+2, quoted, quotedLayers)
	}
	if inner > 0 && !s.elastic {
		s.buf = append(append(s.buf, '\n'), strings.Repeat(" ", blanks)...)
	}
	s.buf = append(s.buf, '}')
}

// stackValue returns a value as tshark writes it in whole layers.
func (s *tsharkWriter) stackValue(f *stack.Field) string {
	v := string(appendValue(nil, f))
	switch {
	case f.Kind == stack.Bytes:
		return colons(v)
	case f.Kind == stack.Flag && s.elastic:
		return strconv.FormatBool(f.Uint != 0)
	}
	return v
}

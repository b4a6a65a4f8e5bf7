// Package layers lets programs that use gopacket read and write datagrams of the
// Gaffer family:
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeGaffer, gopacket.Default)
//
// That reads the usual dialect. A Layer with a Profile set reads another one, and
// RegisterUDPPort has gopacket do so for a port. Where the dialect is not known,
// a Classifier finds it:
//
//	c := layers.NewClassifier()
//	for packet := range source.Packets() {
//		if l, err := c.Decode(packet); l != nil && err == nil {
//			fmt.Println(l.Sequence)
//		}
//	}
//
// ackscope itself shows packets with dissect/stack. This package is separate from
// dissect/gaffer, so that programs which import the codec or the descriptor do not
// link gopacket.
package layers

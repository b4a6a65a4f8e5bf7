// Package layers lets programs that use gopacket read and write SRDP packets:
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeSRDP, gopacket.Default)
//
// That reads the usual dialect. A Layer with a Profile set reads another one, and
// RegisterUDPPort has gopacket do so for a port. Where the dialect is not known,
// a Classifier finds it:
//
//	c := layers.NewClassifier()
//	for packet := range source.Packets() {
//		if l, err := c.Decode(packet); l != nil && err == nil {
//			fmt.Println(l.ID)
//		}
//	}
//
// ackscope itself shows packets with dissect/stack. This package is separate from
// dissect/srdp, so that programs which import the codec or the descriptor do not
// link gopacket.
package layers

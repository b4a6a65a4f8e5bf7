// Package layers lets programs that use gopacket read and write SRDP packets:
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeSRDP, gopacket.Default)
//
// ackscope itself does not use it. It is separate from dissect/srdp, so that
// programs which import the codec or the descriptor do not link gopacket.
package layers

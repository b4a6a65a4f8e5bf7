// Package layers lets programs that use gopacket read and write SRDP packets:
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeSRDP, gopacket.Default)
//
// ackscope itself does not use it. It stands apart from dissect/srdp, so that who
// imports the codec or the descriptor does not link gopacket.
package layers

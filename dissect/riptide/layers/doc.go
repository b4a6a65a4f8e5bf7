// Package layers lets programs that use gopacket read and write Riptide messages:
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeRiptide, gopacket.Default)
//
// ackscope itself does not use it. It stands apart from dissect/riptide, so that
// who imports the codec or the descriptor does not link gopacket.
package layers

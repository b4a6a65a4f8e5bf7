// Package layers lets programs that use gopacket read and write Riptide messages:
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeRiptide, gopacket.Default)
//
// ackscope itself does not use it. It is a package of its own, so that programs that import the
// codec or the descriptor do not link gopacket.
package layers

// Package layers lets programs that use gopacket read and write datagrams of the
// Gaffer family:
//
//	gopacket.NewPacket(udp.Payload, layers.LayerTypeGaffer, gopacket.Default)
//
// ackscope itself does not use it. It is separate from dissect/gaffer, so that
// importing the codec or the descriptor does not link gopacket.
package layers

// Package srdppeer is a second SRDP endpoint, to check the first one. The tests
// of internal/srdpcheck run the two against each other. They compare what
// Ackscope says of the traffic with the log of this endpoint.
//
// It was written from the protocol's document (Worlds Inc, 1995) and from the
// list of decisions where the document is silent. It shares no code with the
// rest of this module, and internal/arch forbids it any import from there. So a
// mistake in wire/srdp or machine/srdp is not repeated here.
//
// An Endpoint does no input or output, and reads no clock. The caller passes
// the time, as the duration since the start of its run:
//
//	e := srdppeer.New(srdppeer.Settings{}, own, srdppeer.Hooks{Transmit: write})
//	err := e.Send(now, peer, []byte("position 4 7"), srdppeer.Service{Repeats: 5})
//	e.Receive(now, from, datagram) // acknowledges and delivers
//	e.Expire(now)                  // resends what is due, by e.Deadline()
//
// Serve runs an endpoint on a UDP socket.
package srdppeer

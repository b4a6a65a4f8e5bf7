// Package riptide holds what both ends of a Riptide connection know. Its sequencers of reliable and
// notify messages behave as each version of the library really does. The endpoint and the tracker
// both drive them.
//
//	reliable message ──> Receiver ──> delivered or refused
//	                        │
//	                        └──> Ack (last, 16 bits, the id that it answers)
//	Ack ──> Sender ──> clears pending messages        } "acked" for
//	                                                    the library
//	notify ──> NotifyReceiver, NotifySender           (header: last, 8 bits)
//
// The documented meaning of an Ack differs from what the library does. For example, the library
// acks ids that never came: its window has a fault at jumps of 32 and more. It also ignores bits
// that name arrivals. The types here copy the library. The package tracker decides what the packets
// themselves show.
//
// The packages below it:
//
//	tracker       what both ends knew, from a capture; it uses
//	  vantage       where the tap is
//	  pathloss      what the path lost
//	  clock         how a client's clock counts
//	endpoint      the reference client and server, and their faults
//	judge         a capture compared with the references
//	whatif        a captured connection run again with other settings
//	riptidetest   endpoints in a simulated world, for tests
//
// A Behaviour describes how one version differs. A sender's packets prove which versions it can be.
//
// Sources: Riptide releases 2.0.0 to 2.2.1, its development commits 28a8442 and e21aef9, Pytide
// 2.1.0-alpha, and the document "Riptide Networking Notes". Comments call that document the notes.
// Where these sources disagree with captured packets, the packets decided.
package riptide

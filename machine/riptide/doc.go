// Package riptide holds what both ends of a Riptide connection know: the
// sequencers of reliable and notify messages, as each state of the library has
// really implemented them. The endpoint and the tracker both drive them.
//
//	reliable message ──> Receiver ──> handed over or refused
//	                        │
//	                        └──> Ack (last, 16 bits, the id that it answers)
//	Ack ──> Sender ──> clears pending messages        } "acked" in the
//	                                                    library's own eyes
//	notify ──> NotifyReceiver, NotifySender           (header: last, 8 bits)
//
// What an Ack says by its documented meaning and what the library makes of it
// are two things: the library acks ids that never came (a fault of its window at
// jumps of 32 and more) and ignores bits that name arrivals. The types here copy
// the library; what the packets themselves show is the tracker's business.
//
// The rooms below it:
//
//	tracker       what both ends knew, from a capture; it uses
//	  vantage       where the tap stood
//	  pathloss      what the path lost
//	  clock         how a client's clock counts
//	endpoint      the reference client and server, and their faults
//	judge         a capture held against the references
//	whatif        a captured connection again, under other settings
//	riptidetest   endpoints in a simulated world, for tests
//
// How the states differ is data (Behaviour), chosen by what a sender's packets
// prove it to be. Sources: releases 2.0.0 to 2.2.1, the development states
// 28a8442 and e21aef9, Pytide 2.1.0-alpha, and the Riptide Networking Notes;
// where they and packets disagree, packets decided.
package riptide

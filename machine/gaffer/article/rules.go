package article

import "github.com/ackscope/ackscope/machine"

// Rules lists the rules of blocks, fragments and handshakes that a side can break. The
// judges of this package find them beside those of package judge.
var Rules = []*machine.Rule{
	SliceCount, SliceChanged, SliceOrder, SliceResentEarly, BlockOrder, BlockWentBack,
	AckEmpty, AckEarly, AckUnasked, AckBlock,
	PacketTooLarge, FragmentNeedless, FragmentHeader,
	ConnectRole, ConnectSalt, ConnectSaltChanged, ConnectOrder, ConnectUnasked, ConnectEarly, ConnectTimeout,
	ConnectAfterDisconnect, ConnectFarewells,
}

// SliceCount is the rule "slice-count".
var SliceCount = &machine.Rule{
	ID: "slice-count", Severity: machine.Error,
	Summary: "a slice, or an ack of slices, gives its block another number of slices",
	Explain: `All slices of a block name the number of its slices, and so does each ack of the block. Here two of them differ. For example, slice 0 of block 7 says that there are 20 slices, and slice 5 says 21. The receiver allots memory by that count and drops what does not agree.

Slices that differ contradict each other in any capture. An ack that differs is compared with the slices that its peer sent.

Compute the count once when the block is begun, by (bytes + slice size - 1) / slice size. A receiver should take the count of the first slice, and send it back unchanged.`,
}

// SliceChanged is the rule "slice-changed".
var SliceChanged = &machine.Rule{
	ID: "slice-changed", Severity: machine.Error,
	Summary: "a slice was sent again with other contents",
	Explain: `A slice is sent again and again until it is acked, each time with the same bytes. Here a copy differs from an earlier one. For example, slice 4 of block 2 leaves in frame 10, and with other bytes in frame 31. The receiver keeps whichever came first, so blocks arrive that were never sent as a whole.

The two copies contradict each other. No packet that the capture lacks explains that.

Copy the block when it is handed to the sender, or do not touch it until all of it is acked. A block whose number comes again too soon shows this too.`,
}

// SliceOrder is the rule "slice-order".
var SliceOrder = &machine.Rule{
	ID: "slice-order", Severity: machine.Error,
	Summary: "a slice was sent that is not the next one of the round",
	Explain: `The sender goes round the slices of a block. It skips those that are acked, and those that were sent less than 100 ms ago. Here it sent another slice than that. For example, slices 0 to 3 left, slice 4 is not acked and due, and slice 6 leaves.

The capture was taken at the side. The side may have read the captured acks or not: the reference tries both. Where the block had begun before the capture, older acks may explain a jump, and that is left open. A capture that lacks a slice or an ack shows the same.

Keep the place in the round from one call to the next, as the article does, and step it by one for each slice. Mark a slice as acked only when an ack names it.`,
}

// SliceResentEarly is the rule "slice-resent-early".
var SliceResentEarly = &machine.Rule{
	ID: "slice-resent-early", Severity: machine.Warn,
	Summary: "a slice was sent again before its resend time had passed",
	Explain: `The article sends a slice again 100 ms after it last left, at the soonest. Here it left sooner. For example, a block of three slices goes round every 50 ms. The copies cost bandwidth and say nothing new, since no ack can have come back.

The capture was taken at the side, so its times are those of the sender. 20 ms are allowed for its clock.

Store the time of each slice when it is sent, and compare before you send it again. The sample program of the series does not wait: "--behaviour gaffer@article-sample" compares a side with that.`,
}

// BlockOrder is the rule "block-order".
var BlockOrder = &machine.Rule{
	ID: "block-order", Severity: machine.Error,
	Summary: "a block began before all of the one before it was acked, or blocks were left out",
	Explain: `A sender has one block under way. It begins the next one, with the next number, once all slices of the present one are acked. For example, block 8 may begin when an ack names all 20 slices of block 7. A receiver that still waits for slices of block 7 drops those of block 8.

In a capture taken at the sender, an ack of all slices must have come before. Elsewhere all slices of the block must have come before, since an ack can only follow them. A capture that lacks the ack, or slices, shows the same.

Do not begin a block by time, and do not count acks: compare the set of slices that are acked with the whole block.`,
}

// BlockWentBack is the rule "block-went-back".
var BlockWentBack = &machine.Rule{
	ID: "block-went-back", Severity: machine.Error,
	Summary: "slices of a block were sent after a later block had begun",
	Explain: `Once all of a block is acked it is over, and none of its slices leaves again. Here a slice of an older block leaves after a newer block had begun. For example, a slice of block 7 follows slices of block 8. The receiver drops it.

The capture was taken at the side, so the order is that of the sender. The slices contradict each other, and no packet that the capture lacks explains it.

Clear the state of the old block when the new one begins. Two threads that send blocks over one channel need a queue.`,
}

// AckEmpty is the rule "ack-empty".
var AckEmpty = &machine.Rule{
	ID: "ack-empty", Severity: machine.Error,
	Summary: "an ack of slices names no slice",
	Explain: `A receiver sends an ack because a slice has come, and the ack names that slice at least. Here an ack names none. For example, an ack of block 3 has all of its bits clear.

The ack contradicts itself, in any capture, wherever it was taken.

Enter the slice first and then build the ack. Check the order of the bits: that of slice 0 comes first.`,
}

// AckEarly is the rule "ack-early".
var AckEarly = &machine.Rule{
	ID: "ack-early", Severity: machine.Warn,
	Summary: "an ack of slices was sent too soon after the one before",
	Explain: `The article sends an ack of slices every 100 ms at most, whatever number of slices came in between. Here the next one left sooner. For example, acks leave at 0, 17 and 33 ms, one in each frame. Each ack names all slices that came, so the extra ones only cost bandwidth.

The capture was taken at the side, so its times are those of the sender. 20 ms are allowed for its clock.

Keep the time of the last ack, and send one only if a slice has come since and 100 ms have passed.`,
}

// AckUnasked is the rule "ack-unasked".
var AckUnasked = &machine.Rule{
	ID: "ack-unasked", Severity: machine.Error,
	Summary: "an ack of slices was sent although no slice had come",
	Explain: `An ack answers slices: after one ack, the next leaves only when another slice has come. Here none was captured in between. For example, block 4 was acked whole in frame 50, and frame 60 acks it again although nothing of it was sent since.

The capture was taken at the side. A slice counts from the moment it was captured, even if it may not have been read yet. A capture that lacks a slice shows the same.

Clear the flag that asks for an ack when the ack is sent, and set it only where a slice is read.`,
}

// AckBlock is the rule "ack-block".
var AckBlock = &machine.Rule{
	ID: "ack-block", Severity: machine.Error,
	Summary: "an ack names a block that its sender cannot be receiving",
	Explain: `A receiver takes one block at a time. It acks the block that is coming in, or the one before it, and goes on to the next block once all slices have come. For example, an ack of block 9 cannot leave while slices of block 8 are still missing.

The capture was taken at the side. It is known which slices were sent to it, and no order of reading them leads to this block. A capture that lacks slices shows the same.

Drop slices of any block but the present one and, for its ack, the one before. Step the number of the block only when its last slice has come.`,
}

// PacketTooLarge is the rule "packet-too-large".
var PacketTooLarge = &machine.Rule{
	ID: "packet-too-large", Severity: machine.Warn,
	Summary: "a packet that is larger than a fragment travels whole",
	Explain: `A packet that is larger than a fragment, 1,024 bytes in the article, travels in fragments. Here one travels whole. For example, a packet of 1,400 bytes leaves as one datagram. IP may cut it then, and many mobile networks and firewalls drop such pieces.

The packet itself shows it, in any capture, wherever it was taken.

Compare the length of the packet with its header against the size of a fragment, and split what is larger. If the game has fragments of another size, say so in a profile: fragment_size.`,
}

// FragmentNeedless is the rule "fragment-needless".
var FragmentNeedless = &machine.Rule{
	ID: "fragment-needless", Severity: machine.Warn,
	Summary: "a packet travels as one single fragment",
	Explain: `A packet that fits into one fragment travels whole. Here it has the header of a fragment, with a count of 1. For example, a packet of 600 bytes leaves as "fragment 0 of 1". That costs the bytes of the header, and the receiver a place for reassembly.

The packet itself shows it, in any capture, wherever it was taken.

Send a packet whole if its length is at most the size of a fragment. A comparison with < in place of <= sends exactly those of the full size so.`,
}

// FragmentHeader is the rule "fragment-header".
var FragmentHeader = &machine.Rule{
	ID: "fragment-header", Severity: machine.Error,
	Summary: "a fragment has another number than the packet that it begins",
	Explain: `Fragment 0 begins with the header of the packet that is cut up, and that header has the packet's sequence number. The fragments have the same number. Here the two differ. For example, the fragment says packet 51, and the header within it says packet 50.

The fragment contradicts itself, in any capture, wherever it was taken.

Take the number once for each packet, and write it into the packet and into all of its fragments. Code that steps the counter for every fragment shows this.`,
}

// ConnectRole is the rule "connect-role".
var ConnectRole = &machine.Rule{
	ID: "connect-role", Severity: machine.Error,
	Summary: "a side sent a packet of the handshake that only its peer sends",
	Explain: `Requests and responses are the client's, challenges and denials the server's. Here a side sends a packet of the other role. For example, the side that sent the request now sends a challenge. Its peer drops the packet.

Which side is the client follows from the first packet that tells it. If that packet was the wrong one, the divergence belongs to the other side. So it is left open where the peer is at fault itself.

Check the packet type that is written, and that one socket does not serve a client and a server with the same address.`,
}

// ConnectSalt is the rule "connect-salt".
var ConnectSalt = &machine.Rule{
	ID: "connect-salt", Severity: machine.Error,
	Summary: "a packet of the handshake has a salt that no request had",
	Explain: `A connection begins with a request that has the client's salt. All packets of the connection have that salt. Here a packet has one that no request had. For example, the request has 0x11, and the challenge answers 0x12. The receiver drops it, since it belongs to no connection that it knows.

A capture that lacks a request with that salt shows the same. A peer that wrote a wrong salt into its request explains it too.

Copy the salt from the packet that is answered. Check its width and its byte order: salts have 64 bits.`,
}

// ConnectSaltChanged is the rule "connect-salt-changed".
var ConnectSaltChanged = &machine.Rule{
	ID: "connect-salt-changed", Severity: machine.Error,
	Summary: "a side changed a salt within a connection",
	Explain: `Client salt and challenge salt are chosen once, and a connection keeps both. Here a packet has another salt than the packets of the connection before it, or a response has another than the challenge that it answers. For example, the keep-alives have challenge salt 0x5a, and one of them has 0x5b. The receiver drops that one.

A side that begins anew may choose a new salt. So where a salt changes, ackscope waits: if the old salt comes back, the packet in between was wrong. The side's own packets contradict each other then, and no packet that the capture lacks explains that.

Store both salts with the connection, and write them from there into every packet.`,
}

// ConnectOrder is the rule "connect-order".
var ConnectOrder = &machine.Rule{
	ID: "connect-order", Severity: machine.Error,
	Summary: "a side went back to an earlier step of the handshake",
	Explain: `A handshake goes forward: request, challenge, response, keep-alive. Here a side sends a packet of a step that it had left behind. For example, a client sends a keep-alive and then a response again.

The capture was taken at the side, so the order is that of the sender. Its own packets contradict each other, and no packet that the capture lacks explains it.

Keep the state of the connection in one place, and choose the packet to send by that state. A timer of the old step that still runs shows this.`,
}

// ConnectUnasked is the rule "connect-unasked".
var ConnectUnasked = &machine.Rule{
	ID: "connect-unasked", Severity: machine.Error,
	Summary: "a packet of the handshake answers something that was not sent",
	Explain: `A challenge answers a request, a response answers a challenge, and keep-alives follow a response. Here the capture lacks what must come first. For example, a server sends a challenge, and no request came before. A server that holds connections to stand without a response can be flooded with forged addresses.

A capture that lacks the packet shows the same. In the first second and a half of a capture this is left open, since what was answered may have come before.

Check each step against the state of the connection before you answer.`,
}

// ConnectEarly is the rule "connect-early".
var ConnectEarly = &machine.Rule{
	ID: "connect-early", Severity: machine.Warn,
	Summary: "a packet of the handshake was repeated too soon",
	Explain: `Requests, challenges and responses are repeated every 100 ms, and a client's keep-alives every second. Here the next one came sooner. For example, requests leave at 0, 16 and 33 ms, one in each frame. The extra packets cost bandwidth, and no answer can have come back in between.

The capture was taken at the side, so its times are those of the sender. A tenth of the time, or 20 ms if that is more, is allowed for its clock.

Keep the time of the last packet of the handshake, and send the next one only when its time has come.`,
}

// ConnectTimeout is the rule "connect-timeout".
var ConnectTimeout = &machine.Rule{
	ID: "connect-timeout", Severity: machine.Warn,
	Summary: "a side went on although its peer had been silent too long",
	Explain: `A side gives a connection up when its peer was silent for 10 seconds. Here a side goes on: it sends keep-alives, requests or responses into the silence. For example, the last packet of the peer came 14 s ago. Such a side holds a slot for a player who is gone.

The capture was taken at the side. One second is allowed for a socket that was not read. A capture that lacks packets of the peer shows the same.

Store the time of every packet that arrives, and look at it in every frame, not only when a packet is read.`,
}

// ConnectAfterDisconnect is the rule "connect-after-disconnect".
var ConnectAfterDisconnect = &machine.Rule{
	ID: "connect-after-disconnect", Severity: machine.Error,
	Summary: "a side went on with a connection after it had ended it",
	Explain: `A side that sends a disconnect packet has ended the connection. After that it sends nothing of this connection but further disconnects. Here it does. For example, a server disconnects a client and sends a keep-alive 300 ms later. The client may take that for a connection that stands.

The capture was taken at the side. Its own packets contradict each other, and no packet that the capture lacks explains that.

Free the connection when its disconnects are sent, and stop its timers with it.`,
}

// ConnectFarewells is the rule "connect-farewells".
var ConnectFarewells = &machine.Rule{
	ID: "connect-farewells", Severity: machine.Warn,
	Summary: "a side sent more disconnect packets than the behaviour has",
	Explain: `A side that leaves says so 10 times in a row, since single packets may be lost, and then no more. The sample program says it once: gaffer@article-sample. Here one more disconnect left. For example, an eleventh disconnect leaves, or one leaves in each frame without end.

The capture was taken at the side, so all of its packets are counted.

Send the disconnects in one loop when the connection ends, and free the connection behind it.`,
}

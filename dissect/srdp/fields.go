package srdp

import (
	"github.com/ackscope/ackscope/dissect"
	wire "github.com/ackscope/ackscope/wire/srdp"
)

// The fields, in the order of the decode tree.
var (
	fieldSRDP = &dissect.FieldSpec{
		Name: "srdp", Label: "SRDP", Kind: dissect.KindGroup,
		Doc: "The whole packet.",
	}
	fieldCommand = &dissect.FieldSpec{
		Name: "srdp.command", Label: "Command", Kind: dissect.KindUint, Hex: true,
		Doc: "The byte that tells SRDP from other protocols on the same port: by default 0x53 for data, 0x41 for " +
			"acknowledgements.",
	}
	fieldAck = &dissect.FieldSpec{
		Name: "srdp.ack", Label: "Acknowledgement", Kind: dissect.KindBool,
		Doc: "The top bit of the id field: the packet acknowledges the packet of this id. It decides, whatever the command " +
			"byte says.",
	}
	fieldID = &dissect.FieldSpec{
		Name: "srdp.packet_id", Label: "Packet id", Kind: dissect.KindUint,
		Content: dissect.ContentNumber,
		Doc: "15 bits: data counts up in the sender's own counter, over all of its peers; an acknowledgement repeats " +
			"the id that it answers.",
	}
	fieldSourceAddr = &dissect.FieldSpec{
		Name: "srdp.source.addr", Label: "Source address", Kind: dissect.KindAddr,
		Content: dissect.ContentAddr, Doc: "Proxied form: who sent the packet, whatever proxy it came by.",
	}
	fieldSourcePort = &dissect.FieldSpec{
		Name: "srdp.source.port", Label: "Source port", Kind: dissect.KindUint,
		Content: dissect.ContentPort, Doc: "Proxied form: its port.",
	}
	fieldDestinationAddr = &dissect.FieldSpec{
		Name: "srdp.destination.addr", Label: "Destination address",
		Kind: dissect.KindAddr, Content: dissect.ContentAddr,
		Doc: "Proxied form: whom the packet is for; the proxy routes by it.",
	}
	fieldDestinationPort = &dissect.FieldSpec{
		Name: "srdp.destination.port", Label: "Destination port",
		Kind: dissect.KindUint, Content: dissect.ContentPort, Doc: "Proxied form: its port.",
	}
	fieldFlags = &dissect.FieldSpec{
		Name: "srdp.flags", Label: "Flags", Kind: dissect.KindUint, Hex: true,
		Doc: "What the sender asks for this packet, one bit each; of data only.",
	}
	fieldOnce = &dissect.FieldSpec{
		Name: "srdp.flags.dont_duplicate", Label: "SRDP_DONTDUPLICATE",
		Kind: dissect.KindBool,
		Doc:  "The receiver must not hand a second copy to the application; it acknowledges every copy all the same.",
	}
	fieldOrder = &dissect.FieldSpec{
		Name: "srdp.flags.order", Label: "SRDP_ORDER", Kind: dissect.KindBool,
		Doc: "Received in the order sent: the sender has one such packet on its way to a receiver at a time.",
	}
	fieldUnknown = &dissect.FieldSpec{
		Name: "srdp.flags.unknown", Label: "Unknown flags", Kind: dissect.KindUint,
		Hex: true, Doc: "Bits of the flags that the document does not have; only where one is set.",
	}
	fieldPayload = &dissect.FieldSpec{
		Name: "srdp.payload", Label: "Data", Kind: dissect.KindBytes,
		Content: dissect.ContentData, Doc: "The application's bytes.",
	}
	fieldForeign = &dissect.FieldSpec{
		Name: "srdp.foreign", Label: "Foreign", Kind: dissect.KindBytes,
		Content: dissect.ContentData, Doc: "A datagram of another protocol on the same port: its bytes. It enters no state.",
	}
	fieldOddity = &dissect.FieldSpec{
		Name: "srdp.oddity", Label: "Oddity", Kind: dissect.KindText,
		Doc: "Something that the document does not lead one to expect: a command byte that contradicts the id, more bytes " +
			"than a packet may carry.",
	}
)

var allFields = []*dissect.FieldSpec{
	fieldSRDP, fieldCommand, fieldAck, fieldID, fieldSourceAddr, fieldSourcePort, fieldDestinationAddr,
	fieldDestinationPort,
	fieldFlags, fieldOnce, fieldOrder, fieldUnknown, fieldPayload, fieldForeign, fieldOddity,
}

// specs maps each header field of the codec to its FieldSpec.
var specs = [...]*dissect.FieldSpec{
	wire.FieldCommand: fieldCommand, wire.FieldID: fieldID,
	wire.FieldSourceAddress: fieldSourceAddr, wire.FieldSourcePort: fieldSourcePort,
	wire.FieldDestinationAddress: fieldDestinationAddr, wire.FieldDestinationPort: fieldDestinationPort,
	wire.FieldFlags: fieldFlags,
}

// The texts of oddities, as bytes so that dissecting allocates nothing.
var (
	sayDataCommand = []byte("the command byte says data, the top bit of the id says acknowledgement, which decides")
	sayAckCommand  = []byte("the command byte says acknowledgement, the top bit of the id says data, which decides")
	sayOversize    = []byte("more bytes than the document allows for the form: 544 direct, 532 proxied, unless the " +
		"profile says otherwise")
)

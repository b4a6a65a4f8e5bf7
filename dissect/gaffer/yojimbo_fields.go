package gaffer

import "github.com/ackscope/ackscope/dissect"

// The fields of netcode's decrypted datagrams and of yojimbo's connection packets. A
// connect token's keys and user data have no fields: nothing shows them.
var (
	fieldNetcodeProtocol = &dissect.FieldSpec{
		Name: "gaffer.netcode.protocol_id", Label: "Protocol id",
		Kind: dissect.KindUint, Hex: true, Doc: "Netcode's 64-bit id of the game.",
	}
	fieldNetcodeExpire = &dissect.FieldSpec{
		Name: "gaffer.netcode.expire", Label: "Expires", Kind: dissect.KindUint,
		Unit: "s", Doc: "Unix time after which the server refuses the connect token.",
	}
	fieldNetcodeNonce = &dissect.FieldSpec{
		Name: "gaffer.netcode.nonce", Label: "Token nonce", Kind: dissect.KindBytes,
		Doc: "Nonce of the connect token's encryption.",
	}
	fieldNetcodeToken = &dissect.FieldSpec{
		Name: "gaffer.netcode.token", Label: "Connect token",
		Kind: dissect.KindBytes, Doc: "The private connect token, encrypted.",
	}
	fieldTokenClient = &dissect.FieldSpec{
		Name: "gaffer.netcode.token.client_id", Label: "Client id",
		Kind: dissect.KindUint, Doc: "The client that the token is for, by the token opened with the key given.",
	}
	fieldTokenTimeout = &dissect.FieldSpec{
		Name: "gaffer.netcode.token.timeout", Label: "Timeout",
		Kind: dissect.KindInt, Unit: "s", Doc: "Silence after which the connection ends; negative for never.",
	}
	fieldTokenServer = &dissect.FieldSpec{
		Name: "gaffer.netcode.token.server", Label: "Server", Kind: dissect.KindText,
		Doc: "A server that the token is for.",
	}
	fieldOpened = &dissect.FieldSpec{
		Name: "gaffer.netcode.decrypted", Label: "Decrypted", Kind: dissect.KindBool,
		Doc: "Whether the datagram opens with the keys given; why not, where it does not.",
	}
	fieldChallengeNumber = &dissect.FieldSpec{
		Name: "gaffer.netcode.challenge.sequence", Label: "Challenge number",
		Kind: dissect.KindUint, Doc: "The server's own number of the challenge.",
	}
	fieldChallengeToken = &dissect.FieldSpec{
		Name: "gaffer.netcode.challenge.token", Label: "Challenge token",
		Kind: dissect.KindBytes, Content: dissect.ContentData, Doc: "Encrypted with a key that never leaves the server.",
	}
	fieldClientIndex = &dissect.FieldSpec{
		Name: "gaffer.netcode.client_index", Label: "Client index",
		Kind: dissect.KindUint, Doc: "The slot of the client at the server.",
	}
	fieldMaxClients = &dissect.FieldSpec{
		Name: "gaffer.netcode.max_clients", Label: "Slots", Kind: dissect.KindUint,
		Doc: "Slots of the server.",
	}

	fieldEntries = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.entries", Label: "Channel entries",
		Kind: dissect.KindUint, Doc: "How many channels have something in this packet.",
	}
	fieldEntry = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.entry", Label: "Channel entry", Kind: dissect.KindGroup,
		Doc: "What one channel put into the packet.",
	}
	fieldChannel = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.channel", Label: "Channel", Kind: dissect.KindUint,
		Doc: "Number of the channel; not on the wire where there is one only.",
	}
	fieldChannelBlock = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.block", Label: "Block", Kind: dissect.KindBool,
		Doc: "Set: a fragment of a block; clear: messages.",
	}
	fieldBlockMessage = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.block.message", Label: "Block of message",
		Kind: dissect.KindUint, Doc: "Id of the message that the block belongs to.",
	}
	fieldBlockCount = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.block.fragments", Label: "Block fragments",
		Kind: dissect.KindUint, Doc: "How many fragments the block has.",
	}
	fieldBlockIndex = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.block.fragment", Label: "Block fragment",
		Kind: dissect.KindUint, Doc: "Which fragment of the block this is, from 0.",
	}
	fieldBlockData = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.block.data", Label: "Block data",
		Kind: dissect.KindBytes, Content: dissect.ContentData, Doc: "Bytes of the block.",
	}
	fieldBody = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.body", Label: "Body", Kind: dissect.KindBytes,
		Content: dissect.ContentData,
		Doc: "A message's body where no schema reads it: the bytes that it lies in, whose first and last bits may be " +
			"its neighbours'.",
	}
	fieldBodyLength = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.body.length", Label: "Body length",
		Kind: dissect.KindUint, Doc: "The count of bytes that a body holds, where no schema reads it: as it is on the wire.",
	}
	fieldInferred = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.inferred", Label: "Configuration inferred",
		Kind: dissect.KindBool, Doc: "How messages are packed was found from the packets, not given.",
	}
	fieldUnreadPayload = &dissect.FieldSpec{
		Name: "gaffer.yojimbo.unread", Label: "Not read", Kind: dissect.KindBytes,
		Content: dissect.ContentData, Doc: "The rest of a connection packet that cannot be read.",
	}
)

var yojimboFields = []*dissect.FieldSpec{
	fieldNetcodeProtocol, fieldNetcodeExpire, fieldNetcodeNonce, fieldNetcodeToken, fieldTokenClient, fieldTokenTimeout,
	fieldTokenServer,
	fieldOpened, fieldChallengeNumber, fieldChallengeToken, fieldClientIndex, fieldMaxClients,
	fieldEntries, fieldEntry, fieldChannel, fieldChannelBlock, fieldBlockMessage, fieldBlockCount, fieldBlockIndex,
	fieldBlockData, fieldBody, fieldBodyLength, fieldInferred, fieldUnreadPayload,
}

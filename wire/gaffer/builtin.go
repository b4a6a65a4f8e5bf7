package gaffer

import (
	"fmt"
	"slices"
)

// The names of the built-in profiles.
const (
	Article          = "article"
	ArticleBE        = "article-be"
	ArticleCRC32     = "article-crc32"
	ArticleFragments = "article-fragments"
	ArticleSlices    = "article-slices"
	ArticleSlices256 = "article-slices-256"
	ArticleConnect   = "article-connect"
	Reliable         = "reliable"
	Reliable2017     = "reliable-2017"
	ReliableBefore13 = "reliable-1.2"
	ReliableFrom13   = "reliable-1.3"
	Rely             = "rely"
	Netcode          = "netcode"
)

type builtin struct {
	name, doc string
	make      func() Profile
}

// RelyZeroedBits are the bits of ack_bits that the library rely writes as 0 where one of
// them is not set.
// Source: rely 1.0.1, writePacketHeader
const RelyZeroedBits = 0xff00

var builtins = []builtin{
	{Article, "The article's header: sequence 16, ack 16, ack_bits 32, little-endian.", article},
	{ArticleBE, "The article's header in network byte order.", func() Profile {
		p := article()
		p.ByteOrder = BigEndian
		return p
	}},
	{ArticleCRC32, "The article's header in the series' packet frame: CRC32 with a protocol id that is never sent, " +
		"payload length, end check.", func() Profile {
		p := article()
		p.Prefix = []Prefix{PrefixCRC32}
		p.PayloadLengthBits, p.EndCheck = 11, true
		return p
	}},
	{
		ArticleFragments,
		"The series' fragmentation sample: CRC32, sequence, packet types of which 0 is a fragment; no acks.", func() Profile {
			return Profile{
				Prefix:      []Prefix{PrefixCRC32},
				Header:      []HeaderField{{FieldSequence, 16}},
				PacketTypes: 4, EndCheck: true,
				Fragments: FragmentsArticle, FragmentSize: 1024, MaxFragments: 255, ReassemblyBuffer: 64,
			}
		},
	},
	{
		ArticleSlices, "The series' large blocks sample: slices of a block, and acks of slices.",
		func() Profile { return articleSlices(32) },
	},
	{
		ArticleSlices256, "The same with blocks of up to 256 slices, as the article's text has it.",
		func() Profile { return articleSlices(256) },
	},
	{
		ArticleConnect, "The series' client and server sample: request, challenge, response, keep-alive, disconnect.",
		func() Profile {
			return Profile{
				Prefix:      []Prefix{PrefixZero, PrefixCRC32},
				PacketTypes: 6, EndCheck: true, Handshake: true,
			}
		},
	},
	{
		Reliable, "The reliable library since 1.0: variable header of 4 to 9 bytes, fragments.",
		func() Profile { return reliable(RuleUnknown) },
	},
	{
		ReliableBefore13, "The reliable library from 1.0 to 1.2: a packet that comes again is delivered again.",
		func() Profile { return reliable(Delivered) },
	},
	{
		ReliableFrom13, "The reliable library from 1.3 on: a packet that comes again is dropped.",
		func() Profile { return reliable(Refused) },
	},
	{Rely, "rely, a Go port of reliable 1.0: bits 8 to 15 of ack_bits are 0 unless all of them are set.", func() Profile {
		p := reliable(Delivered)
		p.ZeroedAckBits, p.FragmentsWait = RelyZeroedBits, true
		return p
	}},
	{Reliable2017, "The reliable library's first week: a zero byte and the article's header; duplicates and stale " +
		"packets are delivered.", func() Profile {
		p := article()
		p.Prefix = []Prefix{PrefixZero}
		p.SentBuffer, p.ReceiveWindow = 256, 256
		p.Duplicates, p.Stale = Delivered, Delivered
		return p
	}},
	{Netcode, "netcode 1.02, under yojimbo: encrypted, so only type, counter and length can be read.", func() Profile {
		return Profile{Form: FormNetcode}
	}},
}

// article returns the profile on which most others are based.
func article() Profile {
	return Profile{
		Header:     []HeaderField{{FieldSequence, 16}, {FieldAck, 16}, {FieldAckBits, 32}},
		SentBuffer: 1024, ReceiveWindow: 1024,
	}
}

// reliable returns the profile of the reliable library, by what it does with duplicates.
func reliable(duplicates Rule) Profile {
	return Profile{
		Form:      FormReliable,
		Fragments: FragmentsReliable, MaxFragments: 256, ReassemblyBuffer: 64,
		SentBuffer: 256, ReceiveWindow: 256, Duplicates: duplicates,
	}
}

// articleSlices returns the profile of the blocks sample, for blocks of at most most
// slices.
func articleSlices(most int) Profile {
	return Profile{
		Prefix:      []Prefix{PrefixCRC32},
		PacketTypes: 2, EndCheck: true,
		Slices: most, SliceSize: 1024,
	}
}

// BuiltinNames lists the built-in profiles, the article's first.
func BuiltinNames() []string {
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.name
	}
	return names
}

// Builtin returns a copy of a built-in profile, ready to use, and its purpose. A caller
// that changes the copy must call Validate again.
func Builtin(name string) (p *Profile, doc string, err error) {
	i := slices.IndexFunc(builtins, func(b builtin) bool { return b.name == name })
	if i < 0 {
		return nil, "", fmt.Errorf("no built-in profile %q: expected one of %v", name, BuiltinNames())
	}
	made := builtins[i].make()
	if err := made.Validate(); err != nil {
		return nil, "", fmt.Errorf("built-in profile %s: %w", name, err)
	}
	return &made, builtins[i].doc, nil
}

package gaffer

import (
	"cmp"
	"slices"

	"github.com/ackscope/ackscope/dissect"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// settingDocs explains the settings of a profile file.
var settingDocs = map[string]string{
	"form": "how the header is written: fixed (the fields of header, one after the other), reliable " +
		"(4 to 9 bytes behind a prefix byte), netcode (encrypted)",
	"byte_order": "of the fields of a fixed header: little or big",
	"prefix": "what stands before the header: zero (a zero byte), id (the protocol id, 4 bytes), crc32 " +
		"(over the protocol id and what follows)",
	"protocol_id": "32 bits; where it only enters the checksum it may be left out: it is then solved from the packets",
	"header": "fields of form fixed, in their order: sequence, ack, ack_bits with their widths; only " +
		"sequence, or none, where nothing is acked",
	"ack_base": "which packet bit n of ack_bits means: ack-n (bit 0 is ack itself) or ack-n-1 (ack " +
		"itself is implied)",
	"packet_types":        "how many types a packet may have; 0 and 1 take no bits",
	"payload_length_bits": "width of the payload's length; 0: it is not sent",
	"end_check":           "whether 0x9908ace2 closes the packet",
	"fragments":           "how large packets are split: none, reliable or article",
	"fragment_size":       "data bytes of every fragment but the last; 0: as the first ones show",
	"max_fragments":       "most fragments of a packet",
	"slices":              "most slices of a large block; 0: there are none",
	"slice_size":          "data bytes of every slice but the last",
	"handshake":           "whether the packets are those of the connect sample",
	"sent_buffer":         "entries of the sender's buffer of sent packets; 0: not known, so its loss is not either",
	"receive_window":      "entries of the receiver's buffer: a packet older than that is stale; 0: not known",
	"reassembly_buffer":   "packets that can be in reassembly at a time; 0: not known, 64 are assumed",
	"duplicates": "what the receiver does with a packet that it has already: refused, delivered, or unknown where " +
		"the version is not known",
	"stale":           "what the receiver does with a packet older than its window: refused or delivered",
	"zeroed_ack_bits": "bits of ack_bits that are written as 0 unless all of them are set, as a mask; 0: none",
	"fragments_wait":  "whether ack names a packet of fragments only once it is whole",
	"messages.form": "how messages stand in the payload: none, by-id (count; id, type and body of each), " +
		"simple (message ack, count, start id; type and body of each)",
	"messages.types":          "how many message types there are",
	"messages.max_per_packet": "most messages of a packet",
	"messages.send_queue":     "messages that the sender can hold; 0: not known",
	"messages.receive_queue":  "messages that the receiver can hold ahead of the next one; 0: not known",
	"messages.resend": "when a message that is not acked goes out again: a time such as 50ms, 1.5rtt, or " +
		"backoff(100ms, x2, 1s); not set: inferred from the packets",
	"ports":       "a flow of one of these UDP ports is read so, with no evidence asked",
	"detect_bits": "evidence that other flows must show to be read so, in bits; 0: the usual",
	"schema":      "the bodies of messages and packets by their type, as a schema file has them",
}

// schemaFields lists the fields that the schema of a profile adds.
func schemaFields(c *dissect.Config) []*dissect.FieldSpec {
	var known []wire.Bodies
	switch p := c.Profile.(type) {
	case *wire.Profile:
		known = []wire.Bodies{p.Messages.Bodies, p.PacketBodies}
	case *wire.Yojimbo:
		known = []wire.Bodies{p.Bodies}
	}
	var out []*dissect.FieldSpec
	for _, x := range known {
		b, ok := x.(*bodies)
		if !ok {
			continue
		}
		for _, spec := range b.groups {
			out = append(out, spec)
		}
		for _, spec := range b.specs {
			if spec != fieldPadding {
				out = append(out, spec)
			}
		}
	}
	// The items of a list have its name. Filters ask for their values, so these come
	// first.
	slices.SortFunc(out, func(x, y *dissect.FieldSpec) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Label, y.Label),
			cmp.Compare(x.Doc, y.Doc))
	})
	return out
}

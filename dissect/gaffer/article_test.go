package gaffer

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/machine"
	wire "github.com/ackscope/ackscope/wire/gaffer"
)

// sampleRun reads one capture of the article's sample programs. Its endpoints log the
// protocol id and never send it.
func sampleRun(t *testing.T, path, dialect string, id uint32) ([]tapped, *dissect.Config) {
	t.Helper()
	tap := readTap(t, path)
	verdicts := classify(Protocol, tap)
	v := verdicts[0]
	if len(verdicts) != 1 || v.Config == nil || v.Config.Dialect != dialect {
		t.Fatalf("taken for %+v, want one flow of %s", verdicts, dialect)
	}
	p := v.Config.Profile.(*wire.Profile)
	if p.ProtocolID == nil || *p.ProtocolID != id {
		t.Fatalf("protocol id %v, want %#x", p.ProtocolID, id)
	}
	return tap, v.Config
}

// checkTree checks that the leaves of a dissection cover every bit of the datagram
// once, and that nothing in it is malformed.
func checkTree(t *testing.T, config *dissect.Config, dg *machine.Datagram) *dissect.Dissection {
	t.Helper()
	var d dissect.Dissection
	Dissect(dissect.Context{Config: config, From: dg.From}, dg, &d)
	if d.Problem != nil {
		t.Fatalf("frame %d: %v", dg.Ref.Frame(), d.Problem)
	}
	if missing := coverage(&d, len(dg.Bytes)*8); missing != "" {
		t.Fatalf("frame %d: %s\n%s", dg.Ref.Frame(), missing, treeText(&d))
	}
	return &d
}

func coverage(d *dissect.Dissection, bits int) string {
	covered := make([]uint8, bits)
	for i := 0; i < len(d.Fields); i++ {
		f := &d.Fields[i]
		child := i + 1
		for child < len(d.Fields) && d.Fields[child].Bits == 0 {
			child++
		}
		if child < len(d.Fields) && d.Fields[child].Depth > f.Depth && d.Fields[child].Bit < f.Bit+f.Bits {
			continue // a heading: the fields within it are counted
		}
		for b := f.Bit; b < f.Bit+f.Bits && int(b) < bits; b++ {
			covered[b]++
		}
		if int(f.Bit+f.Bits) > bits {
			return fmt.Sprintf("%s ends at bit %d of %d", f.Spec.Name, f.Bit+f.Bits, bits)
		}
	}
	for b, n := range covered {
		if n != 1 {
			return fmt.Sprintf("bit %d is covered by %d fields", b, n)
		}
	}
	return ""
}

func treeText(d *dissect.Dissection) string {
	var b strings.Builder
	for _, f := range d.Fields {
		fmt.Fprintf(&b, "%*s%s bits %d+%d = %d %s\n", 2*int(f.Depth), "", f.Spec.Name, f.Bit, f.Bits, f.Uint, f.Note)
	}
	return b.String()
}

// TestDissectCoversEveryBit takes every datagram of every run apart to the last bit.
func TestDissectCoversEveryBit(t *testing.T) {
	for _, prefix := range []string{"reliable-", "plain-", "crc32-", "oldreliable-", "article-", "yojimbo-"} {
		for _, path := range runs(t, prefix) {
			tap := readTap(t, path)
			verdicts := classify(Protocol, tap)
			for i := range tap {
				d := &tap[i]
				if v := verdicts[d.flow]; v.Config != nil && len(d.Bytes) == d.Length && d.Length > 3 {
					checkTree(t, v.Config, &d.Datagram)
				}
			}
		}
	}
}

// TestArticleFragments joins and decodes fragments of the article's sample, and
// compares them with the logs.
func TestArticleFragments(t *testing.T) {
	for _, path := range runs(t, "article-fragments-") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tap, config := sampleRun(t, path, wire.ArticleFragments, 0x55667788)
			p := config.Profile.(*wire.Profile)
			type packet struct {
				endpoint string
				seq      uint32
			}
			sent, received := map[packet]sentLine{}, map[packet]sentLine{}
			for _, l := range readLog(t, runName(path)) {
				switch l.Event {
				case "sent":
					sent[packet{l.Endpoint, uint32(l.Seq)}] = l
				case "received":
					received[packet{l.Endpoint, uint32(l.Seq)}] = l
				}
			}
			r := NewReassembler(p)
			types := map[uint32]int{}
			for i := range tap {
				d := &tap[i].Datagram
				if d.Length <= 3 {
					continue // injected by the relay; the receiver logged it as invalid
				}
				checkTree(t, config, d)
				from, to := "client", "server"
				if tap[i].dst.Port() != 40000 {
					from, to = to, from
				}
				whole := *d
				if w, ok := r.Add(d); ok {
					whole.Bytes, whole.Length = w.Bytes, len(w.Bytes)
				} else if d.Bytes[6]&3 == 0 {
					logged, _ := hex.DecodeString(sent[packet{from, uint32(d.Bytes[4]) | uint32(d.Bytes[5])<<8}].Hex)
					if d.Bytes[7] == 0 && len(logged) > 0 && d.Bytes[6]>>2 == 0 && !bytes.Equal(d.Bytes[:len(logged)], logged) {
						t.Fatalf("frame %d: %x, its sender logged %x", d.Ref.Frame(), d.Bytes[:len(logged)], logged)
					}
					continue // a fragment that completes nothing
				}
				var pk wire.Packet
				if err := p.Parse(whole.Bytes, whole.Length, &pk); err != nil || pk.CRCCheck != wire.Matches {
					t.Fatalf("frame %d: the joined packet: %v, %+v", d.Ref.Frame(), err, pk)
				}
				key := packet{from, pk.Sequence}
				l, ok := sent[key]
				if !ok || uint32(l.Type) != pk.Type || l.Bytes != whole.Length {
					t.Fatalf("frame %d: sequence %d, type %d, %d bytes; its sender logged %+v", d.Ref.Frame(), pk.Sequence, pk.Type,
						whole.Length, l)
				}
				if l.Fragments <= 1 && !strings.HasPrefix(hex.EncodeToString(whole.Bytes), l.Hex) {
					t.Fatalf("frame %d: %x, its sender logged %s", d.Ref.Frame(), whole.Bytes[:16], l.Hex)
				}
				checkTree(t, config, &whole)
				types[pk.Type]++
				delete(received, packet{to, pk.Sequence})
			}
			if types[1] == 0 || types[2] == 0 || types[3] == 0 {
				t.Errorf("packets by type: %v", types)
			}
			// The tap must have seen whole what the endpoint there logged as received.
			for k, l := range received {
				if strings.Contains(path, "."+k.endpoint+".") {
					t.Errorf("%s received %+v: not joined here", k.endpoint, l)
				}
			}
		})
	}
}

// TestArticleSlices: in the blocks sample every slice and ack is as logged, every block
// by its hash.
func TestArticleSlices(t *testing.T) {
	for _, path := range runs(t, "article-chunks-") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tap, config := sampleRun(t, path, wire.ArticleSlices, 0x11223344)
			p := config.Profile.(*wire.Profile)
			slices, acks, blocks := map[string]bool{}, map[string]bool{}, map[uint32]sentLine{}
			for _, l := range readLog(t, runName(path)) {
				switch l.Event {
				case "slice_sent":
					slices[fmt.Sprintf("%d %d %d %d %d %s", l.Chunk, l.Slice, l.NumSlices, l.Bytes, l.UDPBytes, l.Hex)] = true
				case "ack_sent":
					acks[fmt.Sprintf("%d %d %s %s", l.Chunk, l.NumSlices, l.Acked, l.Hex)] = true
				case "chunk_received":
					blocks[uint32(l.Chunk)] = l
				}
			}
			r := NewReassembler(p)
			seen := 0
			for i := range tap {
				d := &tap[i].Datagram
				checkTree(t, config, d)
				var pk wire.Packet
				if err := p.Parse(d.Bytes, d.Length, &pk); err != nil {
					t.Fatal(err)
				}
				switch pk.Kind {
				case wire.KindSlice:
					if key := fmt.Sprintf("%d %d %d %d %d %x", pk.Chunk, pk.SliceID, pk.SliceCount, pk.PayloadLen, d.Length,
						d.Bytes[:16]); !slices[key] {
						t.Fatalf("frame %d: slice %s was not logged", d.Ref.Frame(), key)
					}
				case wire.KindSliceAck:
					bits := ""
					for n := range pk.SliceCount {
						bits += map[bool]string{false: "0", true: "1"}[pk.SliceCame(n)]
					}
					if key := fmt.Sprintf("%d %d %s %x", pk.Chunk, pk.SliceCount, bits, d.Bytes); !acks[key] {
						t.Fatalf("frame %d: ack %s was not logged", d.Ref.Frame(), key)
					}
				default:
					t.Fatalf("frame %d is a %s", d.Ref.Frame(), pk.Kind)
				}
				w, ok := r.Add(d)
				if !ok {
					continue
				}
				l := blocks[w.Sequence]
				h := fnv.New32a()
				h.Write(w.Bytes)
				if l.Bytes != len(w.Bytes) || l.FNV != fmt.Sprintf("%08x", h.Sum32()) {
					t.Errorf("block %d: %d bytes, hash %08x; its receiver logged %+v", w.Sequence, len(w.Bytes), h.Sum32(), l)
				}
				seen++
			}
			if seen != len(blocks) {
				t.Errorf("%d blocks joined, the receiver logged %d", seen, len(blocks))
			}
		})
	}
}

// TestArticleConnect: the connect sample from the first to the last packet of one
// connection.
func TestArticleConnect(t *testing.T) {
	for _, path := range runs(t, "article-connect") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tap, config := sampleRun(t, path, wire.ArticleConnect, 0x12341651)
			p := config.Profile.(*wire.Profile)
			var order []wire.HandshakeKind
			var client, challenge uint64
			for i := range tap {
				d := &tap[i].Datagram
				checkTree(t, config, d)
				var pk wire.Packet
				if err := p.Parse(d.Bytes, d.Length, &pk); err != nil || pk.CRCCheck != wire.Matches {
					t.Fatalf("frame %d: %v", d.Ref.Frame(), err)
				}
				if client == 0 {
					client = pk.ClientSalt
				}
				if challenge == 0 {
					challenge = pk.ChallengeSalt
				}
				if pk.ClientSalt != client || pk.Handshake != wire.ConnectRequest && pk.ChallengeSalt != challenge {
					t.Errorf("frame %d: salts %x %x, the connection's are %x %x", d.Ref.Frame(), pk.ClientSalt, pk.ChallengeSalt,
						client, challenge)
				}
				if fromClient := tap[i].dst.Port() == 50000; (pk.Handshake == wire.ConnectRequest ||
					pk.Handshake == wire.ConnectResponse) != fromClient &&
					pk.Handshake != wire.ConnectKeepAlive && pk.Handshake != wire.ConnectDisconnect {
					t.Errorf("frame %d: a %s from the wrong side", d.Ref.Frame(), pk.Handshake)
				}
				if len(order) == 0 || order[len(order)-1] != pk.Handshake {
					order = append(order, pk.Handshake)
				}
			}
			got := fmt.Sprint(order)
			for _, want := range []string{"request challenge response keep-alive", "disconnect"} {
				if !strings.Contains(got, want) {
					t.Errorf("the packets were %s, which lacks %s", got, want)
				}
			}
		})
	}
}

// TestReliableFragments: a joined packet of reliable has the length that its sender
// logged.
func TestReliableFragments(t *testing.T) {
	for _, path := range append(runs(t, "reliable-frag-heavy"), runs(t, "reliable-clean")...) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			tap := readTap(t, path)
			p := classify(Protocol, tap)[0].Config.Profile.(*wire.Profile)
			sent := map[sentKey]sentLine{}
			for _, l := range readLog(t, runName(path)) {
				if l.Event == "sent" {
					sent[sentKey{l.Endpoint, l.Conn, uint32(l.Seq)}] = l
				}
			}
			assembly := newAssembly(&dissect.Config{Profile: p})
			joined := map[uint32]int{}
			for i := range tap {
				d := assembly.Add(&tap[i].Datagram)
				if d == nil {
					continue
				}
				var pk wire.Packet
				if err := p.Parse(d.Bytes, d.Length, &pk); err != nil || pk.Kind != wire.KindRegular {
					t.Fatalf("frame %d: the joined packet: %v", d.Ref.Frame(), err)
				}
				endpoint := "client"
				if tap[i].dst.Port() != 40000 {
					endpoint = "server"
				}
				l := sent[sentKey{endpoint, 0, pk.Sequence}]
				if l.Bytes != pk.PayloadLen || l.Ack != pk.Header.Ack || fmt.Sprintf("%08x", pk.Header.AckBits) != l.AckBits {
					t.Fatalf("frame %d: %+v, its sender logged %+v", d.Ref.Frame(), pk, l)
				}
				joined[pk.Sequence]++
			}
			for k, l := range sent {
				if near := strings.Contains(path, "."+k.endpoint+"."); near && l.Datagrams > 1 && joined[k.seq] == 0 {
					t.Errorf("%+v was sent in %d fragments and never joined", k, l.Datagrams)
				}
			}
		})
	}
}

// TestSlices256: blocks of up to 256 slices have wider fields. The classifier finds
// which of the two profiles applies.
func TestSlices256(t *testing.T) {
	for _, name := range []string{wire.ArticleSlices, wire.ArticleSlices256} {
		p := builtinConfig(t, name).Profile.(*wire.Profile).WithProtocolID(0xfeedc0de)
		most := p.Slices
		c := Protocol.Classify()
		r := NewReassembler(p)
		var block []byte
		joined := 0
		var acked wire.Packet
		for i := range most {
			data := bytes.Repeat([]byte{byte(i)}, 1024)
			if i == most-1 {
				data = data[:77]
			}
			block = append(block, data...)
			b := p.Append(nil, &wire.Packet{Kind: wire.KindSlice, Chunk: 5, SliceID: i, SliceCount: most}, data)
			dg := machine.Datagram{Bytes: b, Length: len(b)}
			c.Feed(&dg)
			if w, ok := r.Add(&dg); ok {
				joined++
				if !bytes.Equal(w.Bytes, block) || w.Sequence != 5 {
					t.Errorf("%s: block %d of %d bytes, want %d", name, w.Sequence, len(w.Bytes), len(block))
				}
			}
			acked.SliceAcked[i/64] |= 1 << (i % 64)
			acked.Kind, acked.Type, acked.Chunk, acked.SliceCount = wire.KindSliceAck, 1, 5, most
			b = p.Append(nil, &acked, nil)
			c.Feed(&machine.Datagram{Bytes: b, Length: len(b), From: machine.B})
			if i >= 3 && c.Sure() {
				if v := c.Verdict(); v.Config.Dialect != name {
					t.Fatalf("%s is taken for %s after %d datagrams", name, v.Config.Dialect, 2*i+2)
				}
			}
			var pk wire.Packet
			if err := p.Parse(b, len(b), &pk); err != nil || pk.SliceAcked != acked.SliceAcked {
				t.Fatalf("%s: ack of %d slices: %v, %x", name, i+1, err, pk.SliceAcked)
			}
		}
		if v := c.Verdict(); v.Config == nil || v.Config.Dialect != name || joined != 1 {
			t.Errorf("%s is taken for %+v; %d blocks joined", name, v, joined)
		}
	}
}

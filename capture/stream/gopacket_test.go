package stream

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/reassembly"

	"github.com/ackscope/ackscope/capture"
)

// collector is the stream that gopacket reassembles.
type collector struct{ bytes []byte }

func (c *collector) New(gopacket.Flow, gopacket.Flow, *layers.TCP, reassembly.AssemblerContext) reassembly.Stream {
	return c
}

func (c *collector) Accept(*layers.TCP, gopacket.CaptureInfo, reassembly.TCPFlowDirection, reassembly.Sequence, *bool,
	reassembly.AssemblerContext,
) bool {
	return true
}

func (c *collector) ReassembledSG(sg reassembly.ScatterGather, _ reassembly.AssemblerContext) {
	n, _ := sg.Lengths()
	c.bytes = append(c.bytes, sg.Fetch(n)...)
}
func (c *collector) ReassemblyComplete(reassembly.AssemblerContext) bool { return true }

// TestAgainstGopacket compares the order of bytes with gopacket/reassembly.
func TestAgainstGopacket(t *testing.T) {
	for seed := range int64(40) {
		s := newSource(seed, 200, 400, &toyFormats[0])
		packets := append([]*capture.Packet{s.syn()}, s.impair(s.segments(0, 500), 0.25)...)
		want := &collector{}
		assembler := reassembly.NewAssembler(reassembly.NewStreamPool(want))
		net, _ := gopacket.FlowFromEndpoints(layers.NewIPEndpoint([]byte{10, 0, 0, 1}),
			layers.NewIPEndpoint([]byte{10, 0, 0, 2}))
		var framed []byte
		for _, p := range packets {
			tcp := &layers.TCP{SrcPort: 1, DstPort: 2, Seq: p.TCPSeq, SYN: p.TCPFlags&syn != 0, ACK: p.TCPFlags&ack != 0}
			tcp.Payload = p.Payload
			tcp.SetInternalPortsForTesting()
			assembler.AssembleWithContext(net, tcp, assembleContext{})
		}
		assembler.FlushAll()
		for _, m := range s.run(t, New(toyFormats, Limits{}), packets) {
			framed = binary.LittleEndian.AppendUint32(framed, uint32(m.Length))
			framed = append(framed, m.bytes...)
		}
		if !bytes.Equal(framed, want.bytes) {
			t.Fatalf("seed %d: %d bytes, gopacket has %d", seed, len(framed), len(want.bytes))
		}
	}
}

type assembleContext struct{}

func (assembleContext) GetCaptureInfo() gopacket.CaptureInfo {
	return gopacket.CaptureInfo{Timestamp: time.Unix(1, 0)}
}

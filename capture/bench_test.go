package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ackscope/ackscope/internal/traffic"
)

// benchmarkFile writes 200,000 packets of 64 flows as pcap or pcapng, and
// returns the path.
func benchmarkFile(b *testing.B, ng bool) string {
	b.Helper()
	var made bytes.Buffer
	if err := traffic.Write(&made, traffic.Options{Packets: 200_000, Flows: 64, Loss: 0.05, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "made.pcap")
	out := made.Bytes()
	if ng {
		var again bytes.Buffer
		w, err := NewWriter(&again, WriterOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.AddInterface(Interface{LinkType: LinkEthernet}); err != nil {
			b.Fatal(err)
		}
		in := openBytes(b, out, Options{})
		for f := (Frame{}); in.Next(&f) == nil; {
			if err := w.WriteFrame(&f); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		out = again.Bytes()
	}
	if err := os.WriteFile(path, out, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

func benchmarkPass(b *testing.B, ng, merged bool, each func(*Frame)) {
	paths := []string{benchmarkFile(b, ng)}
	if merged {
		paths = append(paths, paths[0], paths[0])
	}
	in := mustOpen(b, Options{}, paths...)
	var f Frame
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		err := in.Next(&f)
		if errors.Is(err, io.EOF) {
			if err = in.Rewind(); err == nil {
				err = in.Next(&f)
			}
		}
		if err != nil {
			b.Fatal(err)
		}
		each(&f)
	}
}

// One iteration of these benchmarks is one frame.

func BenchmarkRead(b *testing.B)       { benchmarkPass(b, false, false, func(*Frame) {}) }
func BenchmarkReadPcapng(b *testing.B) { benchmarkPass(b, true, false, func(*Frame) {}) }
func BenchmarkReadMerged(b *testing.B) { benchmarkPass(b, false, true, func(*Frame) {}) }

func BenchmarkReadDecode(b *testing.B) {
	d := NewDecoder(DecodeOptions{})
	var p Packet
	benchmarkPass(b, false, false, func(f *Frame) { d.Decode(f, &p) })
}

func BenchmarkReadDecodePcapng(b *testing.B) {
	d := NewDecoder(DecodeOptions{})
	var p Packet
	benchmarkPass(b, true, false, func(f *Frame) { d.Decode(f, &p) })
}

// BenchmarkDecodeAny decodes a shape that decodeCommon does not handle.
func BenchmarkDecodeAny(b *testing.B) {
	f := Frame{
		Ref: 1, LinkType: LinkSLL2,
		Data: join(etherIPv6, 0, 0, 3, 1, "\x04\x06\x02\x00\x00\x00\x00\x01\x00\x00",
			udpPacket(b, six, string(make([]byte, 100)))),
	}
	f.Length = len(f.Data)
	d := NewDecoder(DecodeOptions{})
	var p Packet
	b.ReportAllocs()
	for range b.N {
		f.At += 1e6
		d.Decode(&f, &p)
	}
}

func BenchmarkWrite(b *testing.B) {
	w, err := NewWriter(io.Discard, WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := w.AddInterface(Interface{LinkType: LinkRaw}); err != nil {
		b.Fatal(err)
	}
	f := Frame{Data: udpPacket(b, four, string(make([]byte, 100)))}
	f.Length = len(f.Data)
	b.ReportAllocs()
	for range b.N {
		if err := w.WriteFrame(&f); err != nil {
			b.Fatal(err)
		}
	}
}

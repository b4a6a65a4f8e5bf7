package capture

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/internal/testenv"
)

// fileForms is one capture written in several forms, and its frames.
type fileForms struct {
	files [][]byte
	want  []string // as list prints them
}

// formats returns small files of every supported kind.
func formats() map[string]fileForms {
	both := func(make func(*builder) *builder) [][]byte {
		return [][]byte{make(little()).Bytes(), make(big()).Bytes()}
	}
	return map[string]fileForms{
		"microseconds": {both(func(b *builder) *builder {
			return b.pcap(magicMicro, 65535, 1).record(1, 2, "abc").record(4294967295, 999999, "")
		}), []string{`0:1@1000002000 i0 t1 3 "abc"`, `0:2@4294967295999999000 i0 t1 0 ""`}},
		"nanoseconds": {both(func(b *builder) *builder {
			return b.pcap(magicNano, 65535, 276).record(1, 2, "abc")
		}), []string{`0:1@1000000002 i0 t276 3 "abc"`}},
		"modified": {both(func(b *builder) *builder {
			return b.pcap(magicModified, 65535, 1).put(uint32(1), uint32(2), uint32(3), uint32(9), uint32(7), uint16(8),
				uint8(4), uint8(0), "abc").
				put(uint32(2), uint32(2), uint32(1), uint32(1), uint32(7), uint16(8), uint8(4), uint8(0), "d")
		}), []string{`0:1@1000002000 i0 t1 9 "abc"`, `0:2@2000002000 i0 t1 1 "d"`}},
		"link type of 26 bits, with the length of the FCS above": {both(func(b *builder) *builder {
			return b.pcap(magicMicro, 65535, 0x24000101).record(1, 2, "abc")
		}), []string{`0:1@1000002000 i0 t257 3 "abc"`}},
		"snap length 0, and a frame above it": {both(func(b *builder) *builder {
			return b.pcap(magicMicro, 0, 1).record(1, 2, strings.Repeat("x", 300))
		}), []string{`0:1@1000002000 i0 t1 300 "` + strings.Repeat("x", 300) + `"`}},
		"lengths in the old order": {both(func(b *builder) *builder {
			return b.put(uint32(magicMicro), uint16(2), uint16(2), uint32(0), uint32(0), uint32(100), uint32(1)).
				put(uint32(1), uint32(2), uint32(9), uint32(3), "abc")
		}), []string{`0:1@1000002000 i0 t1 9 "abc"`}},
		"no packets":     {both(func(b *builder) *builder { return b.pcap(magicMicro, 65535, 1) }), nil},
		"no blocks":      {both(func(b *builder) *builder { return b.section() }), nil},
		"no packets, ng": {both(func(b *builder) *builder { return b.section().iface(1, 0) }), nil},
		"blocks of all kinds, unknown ones between": {both(func(b *builder) *builder {
			return b.section().block(0x0bad, uint32(32473), "custom").iface(1, 0).iface(101, 2).
				enhanced(0, 5, "abc").
				block(0x80000001, "private").
				block(blockPacket, uint16(1), uint16(0), uint32(0), uint32(6), uint32(2), uint32(7), "de\x00\x00").
				block(blockSimple, uint32(3), "fgh\x00").
				block(4, uint32(0)).block(9, "__REALTIME_TIMESTAMP=1\nMESSAGE=from the journal\n").
				enhanced(1, 7, "i")
		}), []string{
			`0:2@5000 i0 t1 3 "abc"`, `0:3@6000 i1 t101 7 "de"`, `0:4@6000 i0 t1 3 "fgh"`,
			`0:6@7000 i1 t101 1 "i"`,
		}},
		"a simple packet cut by the snap length": {both(func(b *builder) *builder {
			return b.section().iface(1, 2).block(blockSimple, uint32(9), "ab\x00\x00")
		}), []string{`0:1@0 i0 t1 9 "ab"`}},
		"two sections of both orders": {[][]byte{
			append(little().section().iface(1, 0).enhanced(0, 1, "a").Bytes(),
				big().section().iface(0, 0).iface(228, 0).enhanced(1, 2, "b").Bytes()...),
			append(big().section().iface(1, 0).enhanced(0, 1, "a").Bytes(),
				little().section().iface(0, 0).iface(228, 0).enhanced(1, 2, "b").Bytes()...),
		}, []string{`0:1@1000 i0 t1 1 "a"`, `0:2@2000 i2 t228 1 "b"`}},
		"resolutions and offsets": {both(func(b *builder) *builder {
			end := b.option(0)
			return b.section().
				iface(1, 0, b.option(interfaceResolution, uint8(0)), end).
				iface(1, 0, b.option(interfaceResolution, uint8(9)), b.option(interfaceOffset, int64(100)), end).
				iface(1, 0, b.option(interfaceResolution, uint8(12)), end).
				iface(1, 0, b.option(interfaceResolution, uint8(0x80|10)), b.option(interfaceOffset, int64(-1)), end).
				iface(1, 0, b.option(interfaceResolution, uint8(0x80|127)), end).
				iface(1, 0, b.option(interfaceResolution, uint8(64)), end).
				iface(1, 0, b.option(interfaceResolution, uint8(6)), b.option(interfaceOffset, int64(1)<<62), end).
				enhanced(0, 3, "").enhanced(1, 3, "").enhanced(2, 3500, "").enhanced(3, 1024*5+512, "").
				enhanced(4, ^uint64(0), "").enhanced(5, ^uint64(0), "").enhanced(6, 1, "").enhanced(0, ^uint64(0), "")
		}), []string{
			`0:1@3000000000 i0 t1 0 ""`, `0:2@100000000003 i1 t1 0 ""`, `0:3@3 i2 t1 0 ""`, `0:4@4500000000 i3 t1 0 ""`,
			`0:5@0 i4 t1 0 ""`, `0:6@0 i5 t1 0 ""`, `0:7@9223372036000001000 i6 t1 0 ""`, `0:8@9223372036854775807 i0 t1 0 ""`,
		}},
		"options that do not fit": {both(func(b *builder) *builder {
			return b.section().iface(1, 0, b.option(interfaceResolution, uint8(9)), uint16(2), uint16(500)).enhanced(0, 7, "a",
				uint16(1), uint16(9))
		}), []string{`0:1@7 i0 t1 1 "a"`}},
	}
}

// TestFormats reads each file in one piece, and byte by byte.
func TestFormats(t *testing.T) {
	for name, c := range formats() {
		for i, file := range c.files {
			for _, step := range []int{len(file), 1} {
				in := openReader(t, &steps{file, step}, Options{})
				got, end := list(in)
				if !errors.Is(end, io.EOF) {
					t.Errorf("%s %d: %v", name, i, end)
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s %d by %d bytes:\n%s\nexpected:\n%s", name, i, step, strings.Join(got, "\n"),
						strings.Join(c.want, "\n"))
				}
			}
		}
	}
}

// TestFormatsAsTshark compares with tshark, except for files that tshark
// refuses or interprets differently.
func TestFormatsAsTshark(t *testing.T) {
	testenv.Grid(t, "tshark over every format")
	tshark := testenv.Need(t, "tshark")
	for name, c := range formats() {
		switch name {
		case "link type of 26 bits, with the length of the FCS above": // tshark uses all 32 bits as the type
			continue
		case "options that do not fit": // tshark stops there
			continue
		case "resolutions and offsets": // tshark overflows at the extremes
			continue
		}
		for i, file := range c.files[:1] {
			out := testenv.Output(t, tshark, "-r", writeFile(t, "x", file), "-T", "fields", "-e", "frame.number", "-e",
				"frame.time_epoch", "-e", "frame.len", "-e", "frame.cap_len")
			var want []string
			in := openBytes(t, file, Options{})
			for f := (Frame{}); in.Next(&f) == nil; {
				at := fmt.Sprintf("%d.%09d", f.At/1e9, f.At%1e9)
				if f.Untimed {
					at = ""
				}
				want = append(want, fmt.Sprintf("%d\t%s\t%d\t%d", f.Ref.Frame(), at, f.Length, len(f.Data)))
			}
			var got []string
			for _, line := range strings.Split(strings.TrimRight(string(out), "\n"), "\n") {
				// Records without a packet time are no frames for ackscope.
				if number, rest, _ := strings.Cut(line, "\t"); line != "" &&
					!(strings.HasPrefix(name, "blocks") && (number == "1" || number == "5")) {
					got = append(got, number+"\t"+rest)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %d: tshark reads\n%s\nhere\n%s", name, i, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

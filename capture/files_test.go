package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// builder writes capture files by hand, in either byte order, right or wrong.
type builder struct {
	bytes.Buffer
	order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}
}

func little() *builder { return &builder{order: binary.LittleEndian} }
func big() *builder    { return &builder{order: binary.BigEndian} }

// put writes integers of their own widths, and bytes and text as they are.
func (b *builder) put(values ...any) *builder {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			b.WriteString(v)
		case []byte:
			b.Write(v)
		default:
			if err := binary.Write(b, b.order, v); err != nil {
				panic(err)
			}
		}
	}
	return b
}

func (b *builder) pcap(magic, snap, link uint32) *builder {
	return b.put(magic, uint16(2), uint16(4), uint32(0), uint32(0), snap, link)
}

func (b *builder) record(seconds, ticks uint32, data string) *builder {
	return b.put(seconds, ticks, uint32(len(data)), uint32(len(data)), data)
}

// block writes a pcapng block around a body.
func (b *builder) block(kind uint32, values ...any) *builder {
	body := (&builder{order: b.order}).put(values...)
	for body.Len()%4 != 0 {
		body.WriteByte(0)
	}
	total := uint32(body.Len() + 12)
	return b.put(kind, total, body.Bytes(), total)
}

func (b *builder) section() *builder {
	return b.block(blockSection, uint32(byteOrderMagic), uint16(1), uint16(0), ^uint64(0))
}

// option gives one option, padded.
func (b *builder) option(code uint16, value ...any) []byte {
	v := (&builder{order: b.order}).put(value...).Bytes()
	o := (&builder{order: b.order}).put(code, uint16(len(v)), v)
	for o.Len()%4 != 0 {
		o.WriteByte(0)
	}
	return o.Bytes()
}

func (b *builder) iface(link uint16, snap uint32, options ...any) *builder {
	return b.block(blockInterface, append([]any{link, uint16(0), snap}, options...)...)
}

func (b *builder) enhanced(id uint32, at uint64, data string, options ...any) *builder {
	padded := data + strings.Repeat("\x00", (4-len(data)%4)%4)
	return b.block(blockEnhanced, append([]any{id, uint32(at >> 32), uint32(at), uint32(len(data)), uint32(len(data)), padded}, options...)...)
}

// list reads everything, one line a frame, and the error at the end.
func list(in *Input) (frames []string, end error) {
	var f Frame
	for {
		if err := in.Next(&f); err != nil {
			return frames, err
		}
		frames = append(frames, fmt.Sprintf("%d:%d@%d i%d t%d %d %q", f.Ref.File(), f.Ref.Frame(), f.At, f.Interface, f.LinkType, f.Length, f.Data))
	}
}

// TestFormats reads small files of every kind that there is.
func TestFormats(t *testing.T) {
	both := func(make func(*builder) *builder) [][]byte {
		return [][]byte{make(little()).Bytes(), make(big()).Bytes()}
	}
	for name, c := range map[string]struct {
		files [][]byte // the same content in several forms
		want  []string
	}{
		"microseconds": {both(func(b *builder) *builder {
			return b.pcap(magicMicro, 65535, 1).record(1, 2, "abc").record(4294967295, 999999, "")
		}), []string{`0:1@1000002000 i0 t1 3 "abc"`, `0:2@4294967295999999000 i0 t1 0 ""`}},
		"nanoseconds": {both(func(b *builder) *builder {
			return b.pcap(magicNano, 65535, 276).record(1, 2, "abc")
		}), []string{`0:1@1000000002 i0 t276 3 "abc"`}},
		"modified": {both(func(b *builder) *builder {
			return b.pcap(magicModified, 65535, 1).put(uint32(1), uint32(2), uint32(3), uint32(9), uint32(7), uint16(8), uint8(4), uint8(0), "abc").
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
			return b.section().block(0x0bad, "custom").iface(1, 0).iface(101, 2).
				enhanced(0, 5, "abc").
				block(0x40000001, "private").
				block(blockPacket, uint16(1), uint16(0), uint32(0), uint32(6), uint32(2), uint32(7), "de\x00\x00").
				block(blockSimple, uint32(3), "fgh\x00").
				block(4, "name resolution").
				enhanced(1, 7, "i")
		}), []string{`0:1@5000 i0 t1 3 "abc"`, `0:2@6000 i1 t101 7 "de"`, `0:3@6000 i0 t1 3 "fgh"`, `0:4@7000 i1 t101 1 "i"`}},
		"a simple packet cut by the snap length": {both(func(b *builder) *builder {
			return b.section().iface(1, 2).block(blockSimple, uint32(9), "ab\x00\x00")
		}), []string{`0:1@0 i0 t1 9 "ab"`}},
		"two sections of both orders": {[][]byte{
			append(little().section().iface(1, 0).enhanced(0, 1, "a").Bytes(), big().section().iface(0, 0).iface(228, 0).enhanced(1, 2, "b").Bytes()...),
			append(big().section().iface(1, 0).enhanced(0, 1, "a").Bytes(), little().section().iface(0, 0).iface(228, 0).enhanced(1, 2, "b").Bytes()...),
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
		}), []string{`0:1@3000000000 i0 t1 0 ""`, `0:2@100000000003 i1 t1 0 ""`, `0:3@3 i2 t1 0 ""`, `0:4@4500000000 i3 t1 0 ""`,
			`0:5@0 i4 t1 0 ""`, `0:6@0 i5 t1 0 ""`, `0:7@9223372036000001000 i6 t1 0 ""`, `0:8@9223372036854775807 i0 t1 0 ""`}},
		"options that do not fit": {both(func(b *builder) *builder {
			return b.section().iface(1, 0, b.option(interfaceResolution, uint8(9)), uint16(2), uint16(500)).enhanced(0, 7, "a", uint16(1), uint16(9))
		}), []string{`0:1@7 i0 t1 1 "a"`}},
	} {
		for i, file := range c.files {
			for _, step := range []int{len(file), 1} {
				in := openReader(t, &steps{file, step}, Options{})
				got, end := list(in)
				if !errors.Is(end, io.EOF) {
					t.Errorf("%s %d: %v", name, i, end)
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s %d by %d bytes:\n%s\nexpected:\n%s", name, i, step, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
				}
			}
		}
	}
}

// steps gives a file by so many bytes a Read, as pipes do.
type steps struct {
	left []byte
	n    int
}

func (s *steps) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.left[:min(s.n, len(s.left))])
	s.left = s.left[n:]
	return n, nil
}

func openReader(t testing.TB, r io.Reader, o Options) *Input {
	t.Helper()
	o.Stdin = r
	in, err := Open([]string{"-"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

func TestResolutionExtremes(t *testing.T) {
	for r := range 256 {
		for _, count := range []uint64{0, 1, 1e9, 1 << 63, ^uint64(0)} {
			for _, offset := range []int64{0, 1, -1, 1 << 62, -1 << 63} {
				at := Resolution(r).instant(count, offset) // must not panic
				if offset >= 0 && at < 0 {
					t.Errorf("%s: %d counts and %d s are the instant %d", Resolution(r), count, offset, at)
				}
			}
		}
	}
	// 2^-20 s: 1048576 ticks a second.
	if at := Resolution(0x80|20).instant(1048576*3+1, 0); at != machine.Instant(3000000953) {
		t.Errorf("3 s and a tick of 2^-20 s are %d ns", at)
	}
}

func TestFrameOptions(t *testing.T) {
	for _, b := range []*builder{little(), big()} {
		file := b.section().iface(1, 0).
			enhanced(0, 1, "a", b.option(optionComment, "first"), b.option(packetFlags, uint32(2)), b.option(optionComment, "second"), b.option(0)).
			enhanced(0, 2, "b", b.option(packetFlags, uint32(1)), b.option(0)).
			enhanced(0, 3, "c").Bytes()
		in := openBytes(t, file, Options{})
		d := NewDecoder(DecodeOptions{})
		for i, want := range []struct {
			comments  string
			direction Direction
		}{{"[first second]", Outbound}, {"[]", Inbound}, {"[]", NoDirection}} {
			var f Frame
			var p Packet
			if err := in.Next(&f); err != nil {
				t.Fatal(err)
			}
			var comments []string
			for c := range f.Comments() {
				comments = append(comments, c)
			}
			d.Decode(&f, &p)
			if fmt.Sprint(comments) != want.comments || p.Direction != want.direction {
				t.Errorf("frame %d: comments %q, direction %d, expected %s and %d", i+1, comments, p.Direction, want.comments, want.direction)
			}
		}
	}
}

package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// builder writes capture files field by field, in either byte order, sound or
// broken.
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

// option returns one option, padded.
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
	return b.block(blockEnhanced,
		append([]any{id, uint32(at >> 32), uint32(at), uint32(len(data)), uint32(len(data)), padded}, options...)...)
}

// list reads all frames, one line each, and returns the error at the end.
func list(in *Input) (frames []string, end error) {
	var f Frame
	for {
		if err := in.Next(&f); err != nil {
			return frames, err
		}
		frames = append(frames, line(&f))
	}
}

func line(f *Frame) string {
	return fmt.Sprintf("%d:%d@%d i%d t%d %d %q", f.Ref.File(), f.Ref.Frame(), f.At, f.Interface, f.LinkType, f.Length,
		f.Data)
}

// steps yields a file in n bytes per Read, as pipes do.
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
	// 2^-20 s: 1048576 ticks per second.
	if at := Resolution(0x80|20).instant(1048576*3+1, 0); at != machine.Instant(3000000953) {
		t.Errorf("3 s and a tick of 2^-20 s are %d ns", at)
	}
}

func TestFrameOptions(t *testing.T) {
	for _, b := range []*builder{little(), big()} {
		file := b.section().iface(1, 0).
			enhanced(0, 1, "a", b.option(optionComment, "first"), b.option(packetFlags, uint32(2)),
				b.option(optionComment, "second"), b.option(0)).
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
				t.Errorf("frame %d: comments %q, direction %d, expected %s and %d", i+1, comments, p.Direction, want.comments,
					want.direction)
			}
		}
	}
}

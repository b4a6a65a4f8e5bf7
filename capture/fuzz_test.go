package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/ackscope/ackscope/machine"
)

// FuzzReader reads any bytes as a capture file. It expects frames and then an
// error of a documented type, the same after Rewind and from ReadAt. Memory
// must be in proportion.
func FuzzReader(f *testing.F) {
	f.Add(sample())
	f.Add(big().pcap(magicNano, 65535, 1).record(1, 2, "abc").record(3, 4, "defgh").Bytes())
	f.Add(little().pcap(magicModified, 65535, 1).record(1, 2, "abc").Bytes())
	f.Add(gzipOf(f, little().pcap(magicMicro, 65535, 1).record(1, 2, "abc").Bytes()))
	f.Add(zstdOf(f, big().section().iface(1, 0).enhanced(0, 1, "abc").Bytes()))
	for _, path := range captures(f, "linktype-bigendian", "u210_plain_any.server") {
		packed, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed[:min(len(packed), 4096)])
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 1<<20 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		in, err := Open([]string{"-"}, Options{Stdin: bytes.NewReader(file), Keep: KeepAll})
		if err != nil {
			if !errors.As(err, new(*FormatError)) {
				t.Fatalf("Open: %v, expected a *FormatError", err)
			}
			return
		}
		defer func() { _ = in.Close() }()
		type place struct {
			ref    machine.Ref
			offset int64
			length int
			at     machine.Instant
			timed  bool
		}
		var places []place
		var fr Frame
		var end error
		d := NewDecoder(DecodeOptions{})
		var p Packet
		for len(places) < 100000 {
			if end = in.Next(&fr); end != nil {
				break
			}
			d.Decode(&fr, &p)
			places = append(places, place{fr.Ref, fr.Offset, len(fr.Data), fr.At, !fr.Untimed})
		}
		if end != nil && !errors.Is(end, io.EOF) && !errors.As(end, new(*CutError)) && !errors.As(end, new(*DamageError)) {
			t.Fatalf("%v, expected io.EOF, a *CutError or a *DamageError", end)
		}
		runtime.ReadMemStats(&after)
		compressed := recognise(file) != plain // a decompressor allocates its own windows
		if used := after.TotalAlloc - before.TotalAlloc; !compressed && used > 2<<20+uint64(len(file)+len(places)*64)*64 {
			t.Fatalf("%d bytes were allocated for a file of %d", used, len(file))
		}
		var buf []byte
		var again Frame
		for i := 0; i < len(places); i += 1 + len(places)/50 {
			if buf, err = in.ReadAt(places[i].ref, places[i].offset, &again, buf); err != nil {
				t.Fatalf("frame %d: %v", i+1, err)
			}
			if len(again.Data) != places[i].length || places[i].timed && again.At != places[i].at {
				t.Fatalf("frame %d reads again as %+v, was %+v", i+1, again, places[i])
			}
		}
		if end == nil {
			return
		}
		if err := in.Rewind(); err != nil {
			t.Fatal(err)
		}
		for range places {
			if err := in.Next(&fr); err != nil {
				t.Fatalf("second pass: %v", err)
			}
		}
		if err := in.Next(&fr); err == nil || err.Error() != end.Error() {
			t.Fatalf("second pass ends with %v, the first with %v", err, end)
		}
	})
}

// FuzzDecode decodes any bytes under any link type, with Decode and with
// decodeAny.
func FuzzDecode(f *testing.F) {
	for _, fr := range seedFrames(f) {
		f.Add(fr.LinkType, fr.Data)
	}
	f.Fuzz(func(t *testing.T, link uint32, data []byte) {
		fr := Frame{Ref: 1, LinkType: link, Length: len(data), Data: data}
		var p, q Packet
		d := NewDecoder(DecodeOptions{})
		d.Decode(&fr, &p)
		checkInvariants(t, &fr, &p)
		NewDecoder(DecodeOptions{}).decodeAny(&fr, &q)
		if describe(&p) != describe(&q) || p.Src != q.Src || p.Dst != q.Dst {
			t.Fatalf("%s\nthe general way:\n%s", describe(&p), describe(&q))
		}
		verify := NewDecoder(DecodeOptions{Verify: true})
		verify.Decode(&fr, &q)
		if describe(&p) != describe(&q) {
			t.Fatalf("%s\nwith checksums:\n%s", describe(&p), describe(&q))
		}
	})
}

// FuzzDefrag decodes a sequence of fragments that the input describes in six
// bytes each: offset, length, flags, value, snap, time.
func FuzzDefrag(f *testing.F) {
	f.Add([]byte{0, 8, 1, 'a', 0, 0, 1, 8, 1, 'b', 0, 1, 2, 3, 0, 'c', 0, 1})
	f.Add([]byte{2, 3, 0, 'c', 0, 0, 1, 8, 1, 'b', 0, 1, 0, 16, 1, 'a', 2, 1})
	f.Add([]byte{0, 64, 1, 'a', 0, 0, 4, 64, 3, 'b', 0, 255, 8, 9, 0, 'c', 0, 255})
	four, six := udpPacket(f, four, string(make([]byte, 65000))), udpPacket(f, six, string(make([]byte, 65000)))
	f.Fuzz(func(t *testing.T, script []byte) {
		d := NewDecoder(DecodeOptions{FragmentBytes: 64 << 10, FragmentDatagrams: 8})
		var p Packet
		at := machine.Instant(0)
		for n := uint64(1); len(script) >= 6; n++ {
			s := script[:6]
			script = script[6:]
			packet := four
			if s[2]&2 != 0 {
				packet = six
			}
			from := int(s[0]) * 8
			data := bytes.Clone(fragmentOf(packet, uint32(s[2]>>4), from, from+int(s[1]), s[2]&1 != 0))
			for i := len(data) - int(s[1]); i < len(data); i++ {
				data[i] = s[3]
			}
			at += machine.Instant(s[5]) * 1e8
			fr := Frame{
				Ref: machine.Ref(n), At: at, LinkType: LinkRaw, Length: len(data),
				Data: data[:max(len(data)-int(s[4]), 0)],
			}
			d.Decode(&fr, &p)
			checkInvariants(t, &fr, &p)
			st := d.FragmentStats()
			if st.Held > 8 || st.HeldBytes > 64<<10 || st.HeldBytes < 0 || (st.Held == 0) != (st.HeldBytes == 0) {
				t.Fatalf("after fragment %d: %+v", n, st)
			}
		}
	})
}

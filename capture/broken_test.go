package capture

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func gzipOf(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstdOf(t testing.TB, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

// TestUnreadable opens files that are not captures.
func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		want string // in the error
	}{
		"empty":       {nil, "at byte 0 expected a pcap or pcapng file, plain, gzip or zstd, found an empty file"},
		"three bytes": {[]byte("abc"), "found a file of 3 bytes"},
		"text": {
			[]byte("GET / HTTP/1.1"),
			"expected the magic number of pcap or pcapng, plain, gzip or zstd, found 47 45 54 20",
		},
		"half a pcap header": {
			little().pcap(magicMicro, 0, 1).Bytes()[:20],
			"expected a pcap file header of 24 bytes, found the end after 20",
		},
		"pcap version 3": {
			little().put(uint32(magicMicro), uint16(3), uint16(0), make([]byte, 16)).Bytes(),
			"at byte 4 expected pcap version 2.x, found 3.0",
		},
		"half a section header": {
			little().section().Bytes()[:20],
			"expected a whole section header block, found the end of the file at byte 20",
		},
		"no byte order": {
			little().block(blockSection, "none", make([]byte, 12)).Bytes(),
			"either way round, found 6e 6f 6e 65",
		},
		"pcapng version 2": {
			little().block(blockSection, uint32(byteOrderMagic), uint32(2), ^uint64(0)).Bytes(),
			"pcapng version 1.x, found 2.0",
		},
		"section length below": {
			little().put(uint32(blockSection), uint32(12), uint32(byteOrderMagic)).Bytes(),
			"a block length of 28 to 67108864, found 12",
		},
		"gzip of text":           {gzipOf(t, []byte("hello")), "found 68 65 6c 6c"},
		"gzip of nothing":        {gzipOf(t, nil), "found an empty file"},
		"gzip header cut":        {gzipOf(t, []byte("hello"))[:5], "expected a gzip header"},
		"zstd frame of nonsense": {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "expected"},
	} {
		_, err := Open([]string{"-"}, Options{Stdin: bytes.NewReader(c.file)})
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "standard input: not a readable capture: ") {
			t.Errorf("%s: %v\nexpected a *FormatError with %q", name, err, c.want)
		}
	}
	if _, err := Open([]string{filepath.Join(t.TempDir(), "nosuch.pcap")}, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := Open([]string{t.TempDir()}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "found a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := Open(nil, Options{}); err == nil {
		t.Error("no file at all was opened")
	}
	if _, err := Open([]string{"-", "-"},
		Options{Stdin: bytes.NewReader(little().pcap(magicMicro, 0, 1).Bytes())}); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("standard input twice: %v", err)
	}
}

// TestBrokenInTheMiddle reads files that are broken after a sound beginning.
// The frames before the fault must come, and the error must say what and where.
func TestBrokenInTheMiddle(t *testing.T) {
	pcap := func() *builder { return little().pcap(magicMicro, 65535, 1).record(1, 0, "abc") } // 43 bytes
	ng := func() *builder { return little().section().iface(1, 0).enhanced(0, 1, "abc") }      // 28 + 20 + 36 = 84 bytes
	for name, c := range map[string]struct {
		file   []byte
		frames int
		want   string // the error, after the file's name
	}{
		"cut in a record header": {
			pcap().put("12345").Bytes(), 1,
			"cut short: ends at byte 48 inside the header of packet record 2, which begins at byte 43: 11 of its bytes are " +
				"missing (1 frame read before it)",
		},
		"cut in a record": {
			pcap().record(2, 0, "defg").Bytes()[:60], 1,
			"cut short: ends at byte 60 inside packet record 2, which begins at byte 43: 3 of its bytes are missing (1 frame " +
				"read before it)",
		},
		"impossible length": {
			pcap().put(uint32(2), uint32(0), uint32(0xf0000000), uint32(60)).Bytes(), 1,
			"damaged: packet record 2 at byte 43: expected a captured length of at most 262144, found 4026531840; 1 frame " +
				"read before it, 16 bytes from there on are lost",
		},
		"length above the largest, whatever the snap length says": {
			little().pcap(magicMicro, 0xffffffff, 1).put(uint32(2), uint32(0), uint32(64<<20+1), uint32(60)).Bytes(), 0,
			"damaged: packet record 1 at byte 24: expected a captured length of at most 67108864, found 67108865; 0 frames " +
				"read before it, 16 bytes from there on are lost",
		},
		"block cut in its head": {
			ng().put("123456").Bytes(), 1,
			"cut short: ends at byte 90 inside the head of a block, which begins at byte 84: 6 of its bytes are missing (1 " +
				"frame read before it)",
		},
		"packet block cut": {
			ng().enhanced(0, 1, "defg").Bytes()[:110], 1,
			"cut short: ends at byte 110 inside packet block 2, which begins at byte 84: 10 of its bytes are missing (1 frame " +
				"read before it)",
		},
		"unknown block cut": {
			ng().block(77, make([]byte, 100)).Bytes()[:110], 1,
			"cut short: ends at byte 110 inside block, which begins at byte 84: 86 of its bytes are missing (1 frame read " +
				"before it)",
		},
		"interface cut": {
			ng().iface(1, 0).Bytes()[:99], 1,
			"cut short: ends at byte 99 inside interface description block, which begins at byte 84: 5 of its bytes are " +
				"missing (1 frame read before it)",
		},
		"packet of 4 GB in a block": {
			ng().block(blockEnhanced, uint32(0), uint64(0), uint32(0xf0000000), uint32(60)).Bytes(), 1,
			"damaged: packet block 2 at byte 84: expected a captured length of at most 262144, found 4026531840; 1 frame read " +
				"before it, 32 bytes from there on are lost",
		},
		"packet longer than its block": {
			ng().block(blockEnhanced, uint32(0), uint64(0), uint32(100), uint32(100)).Bytes(), 1,
			"damaged: packet block 2 at byte 84: expected a block length of at least 132 for its 100 captured bytes, found " +
				"32; 1 frame read before it, 32 bytes from there on are lost",
		},
		"block of 4 GB": {
			ng().put(uint32(blockEnhanced), uint32(0xf0000000), uint32(0), uint64(0), uint32(3), uint32(3)).Bytes(), 1,
			"damaged: packet block 2 at byte 84: expected a block length of at most 1048611 for its 3 captured bytes, found " +
				"4026531840; 1 frame read before it, 28 bytes from there on are lost",
		},
		"unknown block of 4 GB": {
			ng().put(uint32(77), uint32(0xf0000000), uint32(0)).Bytes(), 1,
			"damaged: block at byte 84: expected a block length of 12 to 67108864, found 4026531840; 1 frame read before it, " +
				"12 bytes from there on are lost",
		},
		"block length 0": {
			ng().put(uint32(77), uint32(0), uint32(0)).Bytes(), 1,
			"damaged: block at byte 84: expected a block length of 12 to 67108864, found 0; 1 frame read before it, 12 bytes " +
				"from there on are lost",
		},
		"packet block length 4": {
			ng().put(uint32(blockEnhanced), uint32(4), make([]byte, 60)).Bytes(), 1,
			"damaged: packet block 2 at byte 84: expected a block length of at least 32, found 4; 1 frame read before it, 68 " +
				"bytes from there on are lost",
		},
		"lengths that differ": {
			append(ng().enhanced(0, 2, "defg").Bytes()[:116], 99, 0, 0, 0), 1,
			"damaged: packet block 2 at byte 84: expected the length 36 again at the block's end, found 99; 1 frame read " +
				"before it, 36 bytes from there on are lost",
		},
		"unknown block's lengths differ": {
			append(ng().block(77, "x").Bytes()[:96], 99, 0, 0, 0), 1,
			"damaged: block at byte 84: expected the length 16 again at the block's end, found 99; 1 frame read before it, 16 " +
				"bytes from there on are lost",
		},
		"no such interface": {
			ng().enhanced(1, 2, "defg").Bytes(), 1,
			"damaged: packet block 2 at byte 84: expected an interface below 1, as the section describes, found 1; 1 frame " +
				"read before it, 36 bytes from there on are lost",
		},
		"interface of the section before": {
			ng().section().enhanced(0, 2, "defg").Bytes(), 1,
			"damaged: packet block 2 at byte 112: expected an interface below 0, as the section describes, found 0; 1 frame " +
				"read before it, 36 bytes from there on are lost",
		},
		"simple packet without an interface": {
			little().section().block(blockSimple, uint32(1), "a").Bytes(), 0,
			"damaged: packet block 1 at byte 28: expected an interface below 0, as the section describes, found 0; 0 frames " +
				"read before it, 20 bytes from there on are lost",
		},
		"second section without a byte order": {
			ng().block(blockSection, "none", make([]byte, 12)).Bytes(), 1,
			"damaged: section header block at byte 84: expected the byte order magic 1a 2b 3c 4d either way round, found 6e " +
				"6f 6e 65; 1 frame read before it, 28 bytes from there on are lost",
		},
	} {
		path := filepath.Join(t.TempDir(), "x.pcap")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := Open([]string{path}, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, end := list(in)
		if len(got) != c.frames || end.Error() != path+": "+c.want {
			t.Errorf("%s: %d frames, then\n%v\nexpected %d, then\n%s: %s", name, len(got), end, c.frames, path, c.want)
		}
		var f Frame
		if again := in.Next(&f); !errors.Is(again, end) {
			t.Errorf("%s: a further Next gives %v", name, again)
		}
		var cut *CutError
		if errors.As(end, &cut) != strings.HasPrefix(c.want, "cut short") {
			t.Errorf("%s: the error is a %T", name, end)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBrokenCompression cuts and damages compressed captures at every byte.
func TestBrokenCompression(t *testing.T) {
	b := little().pcap(magicMicro, 65535, 1)
	for i := range 50 {
		b.record(uint32(i), 0, strings.Repeat(string(rune('a'+i%26)), i*7%90))
	}
	for _, packed := range [][]byte{gzipOf(t, b.Bytes()), zstdOf(t, b.Bytes())} {
		in := openBytes(t, packed, Options{})
		whole, end := list(in)
		if len(whole) != 50 || !errors.Is(end, io.EOF) {
			t.Fatalf("%d frames, then %v", len(whole), end)
		}
		for n := range packed {
			in, err := Open([]string{"-"}, Options{Stdin: bytes.NewReader(packed[:n])})
			if err != nil {
				if !errors.As(err, new(*FormatError)) {
					t.Errorf("cut at %d: %v, expected a *FormatError", n, err)
				}
				continue
			}
			got, end := list(in)
			if !errors.As(end, new(*CutError)) || !strings.Contains(end.Error(), "stream ends early") {
				t.Errorf("cut at %d: %v, expected a *CutError", n, end)
			}
			if len(got) > len(whole) || strings.Join(got, "") != strings.Join(whole[:len(got)], "") {
				t.Errorf("cut at %d: frames that are not those of the file", n)
			}
			_ = in.Close()
		}
		for n := range packed {
			damaged := bytes.Clone(packed)
			damaged[n] ^= 0x55
			in, err := Open([]string{"-"}, Options{Stdin: bytes.NewReader(damaged)})
			if err != nil {
				continue
			}
			_, end := list(in) // must not panic or hang; some flips have no effect
			if end == nil {
				t.Errorf("byte %d flipped: no error and no end", n)
			}
			_ = in.Close()
		}
	}
}

// TestNoAllocationByClaim reads a file that claims the largest accepted record
// but does not contain it.
func TestNoAllocationByClaim(t *testing.T) {
	for _, file := range [][]byte{
		little().pcap(magicMicro, 0xffffffff, 1).put(uint32(2), uint32(0), uint32(64<<20), uint32(64<<20), "short").Bytes(),
		little().section().iface(1, 0xffffffff).put(uint32(blockEnhanced), uint32(64<<20+32), uint32(0), uint64(0),
			uint32(64<<20), uint32(64<<20), "short").Bytes(),
		little().section().put(uint32(77), uint32(64<<20), "short").Bytes(),
	} {
		in := openBytes(t, file, Options{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, end := list(in)
		runtime.ReadMemStats(&after)
		if len(got) != 0 || !errors.As(end, new(*CutError)) {
			t.Errorf("%d frames, then %v, expected a *CutError", len(got), end)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<10 {
			t.Errorf("%d bytes were allocated for a file of %d", grown, len(file))
		}
	}
}

// TestReadError checks that the source's own error comes through.
func TestReadError(t *testing.T) {
	failure := errors.New("the disk is gone")
	b := little().pcap(magicMicro, 65535, 1).record(1, 0, "abc").record(2, 0, "def")
	in := openReader(t, io.MultiReader(bytes.NewReader(b.Bytes()[:50]), failing{failure}), Options{})
	got, end := list(in)
	if len(got) != 1 || !errors.Is(end, failure) || errors.As(end, new(*CutError)) ||
		!strings.Contains(end.Error(), "standard input: reading at byte 50 after 1 frame") {
		t.Errorf("%d frames, then %v, expected the source's own error", len(got), end)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

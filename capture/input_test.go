package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func writeFile(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMerge merges three files by time. Equal times come in the order of the
// files. Each file keeps its own order, even where its times go back.
func TestMerge(t *testing.T) {
	a := writeFile(t, "a",
		little().pcap(magicMicro, 0, 1).record(1, 0, "a1").record(3, 0, "a2").record(2, 0, "a3").record(9, 0, "a4").Bytes())
	b := writeFile(t, "b", gzipOf(t, big().pcap(magicNano, 0, 113).record(1, 0, "b1").record(3, 0, "b2").Bytes()))
	c := writeFile(t, "c",
		zstdOf(t, little().section().iface(101, 0).enhanced(0, 500000, "c1").enhanced(0, 3000000, "c2").Bytes()))
	empty := writeFile(t, "e", little().pcap(magicMicro, 0, 1).Bytes())
	in, err := Open([]string{a, b, empty, c}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	want := []string{
		`3:1@500000000 i0 t101 2 "c1"`, `0:1@1000000000 i0 t1 2 "a1"`, `1:1@1000000000 i0 t113 2 "b1"`,
		`0:2@3000000000 i0 t1 2 "a2"`,
		`0:3@2000000000 i0 t1 2 "a3"`, `1:2@3000000000 i0 t113 2 "b2"`, `3:2@3000000000 i0 t101 2 "c2"`,
		`0:4@9000000000 i0 t1 2 "a4"`,
	}
	for range 2 { // the second time after Rewind
		got, end := list(in)
		if !errors.Is(end, io.EOF) || !slices.Equal(got, want) {
			t.Errorf("merged, then %v:\n%s\nexpected:\n%s", end, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if read, total := in.Progress(); read != total || total <= 0 {
			t.Errorf("at the end %d of %d bytes are read", read, total)
		}
		if err := in.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	if in.Files() != 4 || in.FileName(1) != b || in.Interfaces(1)[0].LinkType != 113 ||
		in.Interfaces(1)[0].Resolution != Nanoseconds {
		t.Errorf("%d files, the second is %s with %+v", in.Files(), in.FileName(1), in.Interfaces(1))
	}
}

// TestMergeGoesOnPastFaults: one broken file does not end the others.
func TestMergeGoesOnPastFaults(t *testing.T) {
	cut := writeFile(t, "cut", little().pcap(magicMicro, 0, 1).record(1, 0, "a1").put("x").Bytes())
	bad := writeFile(t, "bad",
		little().section().iface(1, 0).enhanced(0, 0, "b1").put(uint32(9), uint32(1), uint32(9)).Bytes())
	good := writeFile(t, "good", little().pcap(magicMicro, 0, 1).record(1, 0, "c1").record(2, 0, "c2").Bytes())
	in, err := Open([]string{cut, bad, good}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	got, end := list(in)
	if len(got) != 4 {
		t.Errorf("%d frames, expected all 4:\n%s", len(got), strings.Join(got, "\n"))
	}
	var c *CutError
	var d *DamageError
	if !errors.As(end, &c) || !errors.As(end, &d) || c.File != cut || d.File != bad {
		t.Errorf("in the end: %v\nexpected a *CutError of %s and a *DamageError of %s", end, cut, bad)
	}
}

// pipe hides the other methods of a reader.
type pipe struct{ io.Reader }

func sample() []byte {
	b := little().section().iface(1, 0).iface(101, 0)
	for i := range 500 {
		b.enhanced(uint32(i%2), uint64(i)*1000, strings.Repeat(fmt.Sprint(i), i%40))
		if i == 250 {
			b.section().iface(113, 0).iface(276, 0)
		}
	}
	return b.Bytes()
}

// TestLend reads a file much longer than the buffer, and keeps all frames. Their bytes stay valid from
// Lend(swap) to Lend(nil), also where a record is longer than the buffer.
func TestLend(t *testing.T) {
	b := little().pcap(magicMicro, 0, 1)
	for i := range uint32(4000) {
		b.record(i, 0, strings.Repeat(fmt.Sprint(i), 60))
		if i == 2000 {
			b.record(i, 0, strings.Repeat("long", 40<<10))
		}
	}
	in, err := Open([]string{writeFile(t, "x", b.Bytes())}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	want, _ := list(in)
	in.single.stream.buf = make([]byte, 64<<10)
	swaps, buffers := 0, map[*byte]bool{}
	for _, lends := range []bool{true, false} {
		if err := in.Rewind(); err != nil {
			t.Fatal(err)
		}
		swap := func(full []byte) []byte {
			swaps++
			buffers[&full[0]] = true
			return make([]byte, len(full))
		}
		if !lends {
			swap = nil
		}
		if !in.Lend(swap) {
			t.Fatal("a single file does not lend")
		}
		var got []string
		var frames []Frame
		var f Frame
		for in.Next(&f) == nil {
			frames = append(frames, f)
		}
		for i := range frames {
			f := &frames[i]
			got = append(got, line(f))
		}
		if slices.Equal(got, want) != lends {
			t.Errorf("lends %v: %d frames, equal to the %d read one by one: %v", lends, len(got), len(want), !lends)
		}
	}
	if least := 8; swaps < least || len(buffers) != swaps {
		t.Errorf("%d swaps of %d buffers, expected as many, and %d at least", swaps, len(buffers), least)
	}
	two, err := Open([]string{writeFile(t, "x", sample()), writeFile(t, "y", sample())}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = two.Close() }()
	if two.Lend(func([]byte) []byte { t.Error("two files lend"); return nil }) {
		t.Error("two files say that they lend")
	}
	_, _ = list(two)
}

// TestRewind reads half of an input, rewinds, and reads all of it, from every
// kind of source.
func TestRewind(t *testing.T) {
	file := sample()
	want, _ := list(openBytes(t, file, Options{}))
	if len(want) != 500 {
		t.Fatalf("%d frames", len(want))
	}
	for name, open := range map[string]func() (*Input, error){
		"file":      func() (*Input, error) { return Open([]string{writeFile(t, "x", file)}, Options{}) },
		"gzip file": func() (*Input, error) { return Open([]string{writeFile(t, "x", gzipOf(t, file))}, Options{}) },
		"zstd file": func() (*Input, error) { return Open([]string{writeFile(t, "x", zstdOf(t, file))}, Options{}) },
		"kept zstd": func() (*Input, error) {
			return Open([]string{writeFile(t, "x", zstdOf(t, file))}, Options{Keep: KeepAll})
		},
		"pipe": func() (*Input, error) {
			return Open([]string{"-"}, Options{Keep: KeepPipes, Stdin: pipe{&steps{file, 777}}})
		},
		"packed pipe": func() (*Input, error) {
			return Open([]string{"-"}, Options{Keep: KeepPipes, Stdin: pipe{&steps{gzipOf(t, file), 77}}})
		},
		"redirection": func() (*Input, error) {
			f, err := os.Open(writeFile(t, "x", file))
			if err != nil {
				return nil, err
			}
			return Open([]string{"-"}, Options{Stdin: f})
		},
	} {
		in, err := open()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 250, 500, 501, 3} {
			var f Frame
			for range n {
				_ = in.Next(&f)
			}
			if err := in.Rewind(); err != nil {
				t.Fatalf("%s: Rewind after %d frames: %v", name, n, err)
			}
		}
		got, end := list(in)
		if !errors.Is(end, io.EOF) || !slices.Equal(got, want) {
			t.Errorf("%s: %d frames after Rewind, then %v; expected the same %d", name, len(got), end, len(want))
		}
		if n := len(in.Interfaces(0)); n != 4 {
			t.Errorf("%s: %d interfaces after several passes, expected 4", name, n)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRewindRefused(t *testing.T) {
	in := openReader(t, pipe{bytes.NewReader(sample())}, Options{})
	if err := in.Rewind(); err == nil || !strings.Contains(err.Error(), "without keeping") {
		t.Errorf("Rewind of a pipe that is not kept: %v", err)
	}
	in = openReader(t, pipe{bytes.NewReader(sample())}, Options{Keep: KeepPipes, SpoolLimit: 1000})
	if got, end := list(in); len(got) != 500 || !errors.Is(end, io.EOF) {
		t.Errorf("a pipe above its limit gives %d frames, then %v", len(got), end)
	}
	if err := in.Rewind(); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes came") {
		t.Errorf("Rewind of a pipe above its limit: %v", err)
	}
	var f Frame
	if _, err := in.ReadAt(1, 100, &f, nil); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes came") {
		t.Errorf("ReadAt of a pipe above its limit: %v", err)
	}
}

// TestSpoolIsUnlinked: the temporary folder stays empty, even while the spool
// is open.
func TestSpoolIsUnlinked(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	in := openReader(t, pipe{bytes.NewReader(sample())}, Options{Keep: KeepPipes})
	if got, _ := list(in); len(got) != 500 {
		t.Fatalf("%d frames", len(got))
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 0 {
		t.Errorf("%s is in the temporary folder", left[0].Name())
	}
}

// TestReadAt reads every frame again, out of order, during a pass.
func TestReadAt(t *testing.T) {
	pcap := big().pcap(magicNano, 0, 1)
	for i := range 300 {
		pcap.record(uint32(i), 5, strings.Repeat("y", i))
	}
	for name, in := range map[string]*Input{
		"pcapng file": mustOpen(t, Options{}, writeFile(t, "x", sample())),
		"pcap file":   mustOpen(t, Options{}, writeFile(t, "x", pcap.Bytes())),
		"kept gzip":   mustOpen(t, Options{Keep: KeepAll}, writeFile(t, "x", gzipOf(t, sample()))),
		"pipe":        openReader(t, pipe{bytes.NewReader(sample())}, Options{Keep: KeepPipes}),
		"two files":   mustOpen(t, Options{}, writeFile(t, "x", sample()), writeFile(t, "y", pcap.Bytes())),
	} {
		type saved struct {
			f    Frame
			data string
		}
		var all []saved
		var f, again Frame
		var buf []byte
		check := func(s saved) {
			var err error
			if buf, err = in.ReadAt(s.f.Ref, s.f.Offset, &again, buf); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if string(again.Data) != s.data || again.At != s.f.At || again.LinkType != s.f.LinkType ||
				again.Interface != s.f.Interface ||
				again.Ref != s.f.Ref || again.Length != s.f.Length || again.Offset != s.f.Offset {
				t.Fatalf("%s: frame %d reads again as %+v, was %+v", name, s.f.Ref.Frame(), again, s.f)
			}
		}
		for in.Next(&f) == nil {
			all = append(all, saved{f, string(f.Data)})
			check(all[len(all)*7%len(all)])
			check(all[len(all)/2])
		}
		for i := range all {
			check(all[len(all)-1-i])
		}
		for _, wrong := range []int64{-1, 1, 1 << 40} {
			if _, err := in.ReadAt(1, wrong, &again, nil); err == nil {
				t.Errorf("%s: a frame was read at byte %d", name, wrong)
			}
		}
	}
	in := mustOpen(t, Options{}, writeFile(t, "x", gzipOf(t, sample())))
	var f Frame
	if _, err := in.ReadAt(1, 48, &f, nil); err == nil || !strings.Contains(err.Error(), "packed with gzip") {
		t.Errorf("ReadAt in a packed file: %v", err)
	}
}

// TestReadAtBeside reads frames at random on one goroutine while another one
// reads the file repeatedly.
func TestReadAtBeside(t *testing.T) {
	pcap := big().pcap(magicNano, 0, 1)
	for i := range 100 {
		pcap.record(uint32(i), 5, strings.Repeat("y", i))
	}
	for name, in := range map[string]*Input{
		"pcapng": openReader(t, pipe{&steps{sample(), 700}}, Options{Keep: KeepPipes}),
		"pcap":   mustOpen(t, Options{}, writeFile(t, "x", pcap.Bytes())),
	} {
		var f Frame
		if err := in.Next(&f); err != nil {
			t.Fatal(err)
		}
		first, offset, length := f.Ref, f.Offset, len(f.Data)
		done := make(chan error)
		go func() {
			var f Frame
			var buf []byte
			var err error
			for range 500 {
				if buf, err = in.ReadAt(first, offset, &f, buf); err == nil && len(f.Data) != length {
					err = fmt.Errorf("%d bytes, expected %d", len(f.Data), length)
				}
				in.Interfaces(0)
				in.Progress()
				if err != nil {
					break
				}
			}
			done <- err
		}()
		for range 20 {
			for in.Next(&f) == nil {
			}
			if err := in.Rewind(); err != nil {
				t.Error(err)
			}
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustOpen(t testing.TB, o Options, paths ...string) *Input {
	t.Helper()
	in, err := Open(paths, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

// TestManyFiles opens so many files that the chunk size must shrink.
func TestManyFiles(t *testing.T) {
	var paths []string
	dir := t.TempDir()
	for i := range 200 {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, little().pcap(magicMicro, 0, 1).record(uint32(200-i), 0, fmt.Sprint(i)).Bytes(),
			0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	in := mustOpen(t, Options{}, paths...)
	var f Frame
	for i := range 200 {
		if err := in.Next(&f); err != nil || string(f.Data) != fmt.Sprint(199-i) {
			t.Fatalf("frame %d of the merge is %q (%v), expected %d", i+1, f.Data, err, 199-i)
		}
	}
}

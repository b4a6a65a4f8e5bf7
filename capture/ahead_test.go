package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
)

// TestUnpackedAhead: gzip files yield the same frames and errors with several goroutines as with one. The files are
// whole, have several members, or are cut or damaged. They are longer than all parts together.
func TestUnpackedAhead(t *testing.T) {
	b := little().pcap(magicMicro, 65535, 1)
	noise := uint32(1)
	for n := range uint32(1500) {
		data := make([]byte, 1000)
		for i := range data {
			noise = noise*1664525 + 1013904223
			data[i] = byte(noise >> 24)
		}
		b.record(n, 0, string(data))
	}
	plain := b.Bytes()
	if len(plain) < 2*aheadParts*aheadBytes {
		t.Fatalf("%d bytes, expected more than the parts hold", len(plain))
	}
	whole := gzipOf(t, plain)
	files := map[string][]byte{
		"whole":          whole,
		"two members":    append(gzipOf(t, plain[:700_001]), gzipOf(t, plain[700_001:])...),
		"text behind it": append(bytes.Clone(whole), "text"...),
	}
	for _, at := range []int{40, 1000, len(whole) / 3, len(whole) / 2, len(whole) - 9, len(whole) - 1} {
		files[fmt.Sprint("cut at ", at)] = whole[:at]
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x55
		files[fmt.Sprint("damaged at ", at)] = damaged
	}
	for name, packed := range files {
		path := writeFile(t, "x", packed)
		want := passes(path, 1)
		if got := passes(path, 2); got != want {
			t.Errorf("%s: read ahead\n%s\nexpected\n%s", name, got, want)
		}
	}
}

// passes reads a file, half of it, and the file again. It returns what came of that.
func passes(path string, threads int) string {
	in, err := Open([]string{path}, Options{Threads: threads})
	if err != nil {
		return err.Error()
	}
	defer in.Close()
	var said bytes.Buffer
	for _, most := range []int{1 << 20, 700, 1 << 20} {
		frames, sum := 0, uint64(0)
		var f Frame
		for err = nil; err == nil && frames < most; frames++ {
			if err = in.Next(&f); err != nil {
				break
			}
			for _, c := range f.Data {
				sum = sum*31 + uint64(c)
			}
		}
		fmt.Fprintln(&said, frames, sum, err)
		if err := in.Rewind(); err != nil {
			fmt.Fprintln(&said, err)
		}
	}
	return said.String()
}

// endless is a source that never ends, and counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

// TestAheadIsBounded: no more is unpacked ahead than the parts hold.
func TestAheadIsBounded(t *testing.T) {
	var src endless
	a := startAhead(&src)
	if _, err := io.ReadFull(a, make([]byte, 3*aheadBytes)); err != nil {
		t.Fatal(err)
	}
	a.stop()
	if most := (3 + aheadParts) * aheadBytes; src.read > most {
		t.Errorf("%d bytes were read, expected %d at most", src.read, most)
	}
}

// stuck is a source that yields nothing, or panics.
type stuck struct{ panics bool }

func (s stuck) Read([]byte) (int, error) {
	if s.panics {
		panic("planted")
	}
	return 0, nil
}

// TestAheadEnds: the reader sees a panic of the source, and a source that yields nothing.
func TestAheadEnds(t *testing.T) {
	a := startAhead(stuck{})
	defer a.stop()
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%v, expected %v", err, io.ErrNoProgress)
	}
	b := startAhead(stuck{panics: true})
	defer b.stop()
	defer func() {
		if v := recover(); v != "planted" {
			t.Errorf("panic %v, expected the planted one", v)
		}
	}()
	_, _ = b.Read(make([]byte, 1))
	t.Error("no panic")
}

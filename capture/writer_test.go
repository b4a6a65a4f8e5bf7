package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// written returns a capture with IPv4 and IPv6, UDP and TCP, comments and
// statistics.
func written(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, WriterOptions{Application: "ackscope test", Comments: []string{"made up"}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddInterface(Interface{Name: "sim0", LinkType: LinkRaw, Filter: "udp", Comments: []string{"first"}})
	if err != nil {
		t.Fatal(err)
	}
	four := Envelope{Src: netip.MustParseAddrPort("10.0.0.1:30000"), Dst: netip.MustParseAddrPort("10.0.0.2:40000"), ID: 7}
	six := Envelope{
		Src: netip.MustParseAddrPort("[fd77::1]:30000"),
		Dst: netip.MustParseAddrPort("[fd77::2]:40000"), TTL: 9,
	}
	for i := range 40 {
		payload := bytes.Repeat([]byte{byte(i)}, i)
		e := four
		if i%2 == 1 {
			e = six
		}
		var data []byte
		if i%4 < 2 {
			data, err = AppendUDP(nil, e, payload)
		} else {
			data, err = AppendTCP(nil, e, 1000, 2000, FlagACK|FlagPSH, 512, payload)
		}
		if err != nil {
			t.Fatal(err)
		}
		f := Frame{At: machine.Instant(1700000000123456789 + int64(i)*1e6), Interface: id, Length: len(data), Data: data}
		var comments []string
		if i == 3 {
			comments = []string{"a comment", "and another, of odd length"}
		}
		if err := w.WriteFrame(&f, comments...); err != nil {
			t.Fatal(err)
		}
	}
	w.SetStatistics(id, Statistics{Received: 50, Dropped: 10, Known: KnownReceived | KnownDropped})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func openBytes(t testing.TB, b []byte, o Options) *Input {
	t.Helper()
	o.Stdin = bytes.NewReader(b)
	in, err := Open([]string{"-"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

func TestWriterRoundTrip(t *testing.T) {
	in := openBytes(t, written(t), Options{})
	d := NewDecoder(DecodeOptions{Verify: true})
	var f Frame
	var p Packet
	var copied bytes.Buffer
	w, err := NewWriter(&copied, WriterOptions{Application: "ackscope test", Comments: []string{"made up"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if err := in.Next(&f); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := w.AddInterface(in.Interfaces(0)[0]); err != nil {
				t.Fatal(err)
			}
		}
		if want := machine.Instant(1700000000123456789 + int64(i)*1e6); f.At != want {
			t.Errorf("frame %d at %d, wrote %d", i+1, f.At, want)
		}
		d.Decode(&f, &p)
		transport := UDP
		if i%4 >= 2 {
			transport = TCP
		}
		if p.Transport != transport || !bytes.Equal(p.Payload, bytes.Repeat([]byte{byte(i)}, i)) || p.Length != i ||
			p.BadChecksum || p.Problem != nil {
			t.Errorf("frame %d reads back as %+v", i+1, p)
		}
		comments := slices.Collect(f.Comments())
		if i == 3 != (len(comments) == 2 && comments[0] == "a comment" && comments[1] == "and another, of odd length") {
			t.Errorf("frame %d has comments %q", i+1, comments)
		}
		if err := w.WriteFrame(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Next(&f); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v, expected io.EOF", err)
	}
	described := in.Interfaces(0)[0]
	if described.Name != "sim0" || described.Filter != "udp" || described.Resolution != Nanoseconds ||
		!slices.Equal(described.Comments, []string{"first"}) {
		t.Errorf("interface reads back as %+v", described)
	}
	if st := described.Statistics; st == nil ||
		*st != (Statistics{Received: 50, Dropped: 10, Known: KnownReceived | KnownDropped}) {
		t.Errorf("statistics read back as %+v", st)
	} else {
		w.SetStatistics(0, *st)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(copied.Bytes(), written(t)) {
		t.Error("a capture that is read and written again is not the same")
	}
}

// TestWriterByTshark checks with tshark what was written: checksums, comments,
// times.
func TestWriterByTshark(t *testing.T) {
	testenv.Need(t, "tshark")
	path := filepath.Join(t.TempDir(), "written.pcapng")
	if err := os.WriteFile(path, written(t), 0o600); err != nil {
		t.Fatal(err)
	}
	out := testenv.Output(t, "tshark", "-r", path, "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o",
		"tcp.check_checksum:TRUE",
		"-T", "fields", "-e", "frame.time_epoch", "-e", "ip.checksum.status", "-e", "udp.checksum.status", "-e",
		"tcp.checksum.status", "-e", "frame.comment", "-e", "_ws.malformed")
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != 40 {
		t.Fatalf("tshark reads %d frames, expected 40:\n%s", len(lines), out)
	}
	for i, line := range lines {
		status := map[int]string{0: "1\t1\t", 1: "\t1\t", 2: "1\t\t1", 3: "\t\t1"}[i%4]
		comment := ""
		if i == 3 {
			comment = "a comment,and another, of odd length"
		}
		want := fmt.Sprintf("1700000000.%09d\t%s\t%s\t", 123456789+i*1000000, status, comment)
		if line != want {
			t.Errorf("frame %d: tshark reads %q, expected %q", i+1, line, want)
		}
	}
}

func TestWriterRefuses(t *testing.T) {
	w, err := NewWriter(io.Discard, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFrame(&Frame{}); err == nil {
		t.Error("a frame without an interface was written")
	}
	if _, err := w.AddInterface(Interface{LinkType: 1 << 16}); err == nil {
		t.Error("a link type of 17 bits was written")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(Interface{}); err == nil {
		t.Error("an interface was added after Close")
	}
	mixed := Envelope{Src: netip.MustParseAddrPort("10.0.0.1:1"), Dst: netip.MustParseAddrPort("[::1]:1")}
	if _, err := AppendUDP(nil, mixed, nil); err == nil {
		t.Error("a packet from IPv4 to IPv6 was made")
	}
	four := Envelope{Src: netip.MustParseAddrPort("10.0.0.1:1"), Dst: netip.MustParseAddrPort("10.0.0.2:1")}
	if _, err := AppendUDP(nil, four, make([]byte, 65508)); err == nil {
		t.Error("a datagram of 65508 bytes was made")
	}
	if b, err := AppendUDP(nil, four, make([]byte, 65507)); err != nil || len(b) != 65535 {
		t.Errorf("the longest datagram: %d bytes, %v", len(b), err)
	}
}

// flushCounter counts the bytes that were flushed.
type flushCounter struct{ n int }

func (c *flushCounter) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

func TestWriterFlushes(t *testing.T) {
	var c flushCounter
	w, err := NewWriter(&c, WriterOptions{FlushEvery: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(Interface{LinkType: LinkRaw}); err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		at      time.Duration
		flushes bool
	}{
		{0, false},
		{900 * time.Millisecond, false},
		{time.Second, true},
		{1900 * time.Millisecond, false},
		{2 * time.Second, true},
	} {
		before := c.n
		if err := w.WriteFrame(&Frame{At: machine.Instant(step.at), Data: []byte{1}}); err != nil {
			t.Fatal(err)
		}
		if flushed := c.n > before; flushed != step.flushes {
			t.Errorf("frame %d at %v: flushed %v, expected %v", i, step.at, flushed, step.flushes)
		}
	}
}

package cli

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
)

// bigBlock returns a big-endian pcapng block.
func bigBlock(kind uint32, parts ...[]byte) (b []byte) {
	body := slices.Concat(parts...)
	order, total := binary.BigEndian, uint32(len(body)+12)
	b = order.AppendUint32(b, kind)
	b = order.AppendUint32(b, total)
	return order.AppendUint32(append(b, body...), total)
}

func bigOption(code uint16, value string) (b []byte) {
	b = binary.BigEndian.AppendUint16(b, code)
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)))
	return append(append(b, value...), make([]byte, -len(value)&3)...)
}

// bigNumbers returns 32-bit numbers, big-endian.
func bigNumbers(list ...uint32) (b []byte) {
	for _, n := range list {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

// spoken writes a capture of two big-endian sections with much metadata: two
// interfaces of different link types and clocks, comments, names, counts.
func spoken(t *testing.T) string {
	packet, err := capture.AppendUDP(nil,
		capture.Envelope{
			Src: netip.MustParseAddrPort("10.1.2.3:4000"), Dst: netip.MustParseAddrPort("10.1.2.4:5000"),
			TTL: 64, ID: 7,
		}, []byte("what was said"))
	if err != nil {
		t.Fatal(err)
	}
	ethernet := append([]byte("\x06\x11\x22\x33\x44\x55\x06\x11\x22\x33\x44\x66\x08\x00"), packet...)
	section := func(parts ...[]byte) []byte {
		head := append(bigNumbers(0x1a2b3c4d, 1<<16), "\xff\xff\xff\xff\xff\xff\xff\xff"...)
		return bigBlock(0x0a0d0d0a, append([][]byte{head}, parts...)...)
	}
	end := bigNumbers(0)
	frame := func(on uint32, high, low uint32, data []byte, options ...[]byte) []byte {
		padding := make([]byte, -len(data)&3)
		return bigBlock(6,
			slices.Concat([][]byte{bigNumbers(on, high, low, uint32(len(data)), uint32(len(data))), data, padding}, options)...)
	}
	const micros, nanos = 1700000000123456, 1700000000123456789
	file := slices.Concat(
		section(bigOption(2, "a machine"), bigOption(3, "an OS 1.0"), bigOption(4, "a program"),
			bigOption(1, "of the first section"), end),
		bigBlock(1, bigNumbers(1<<16, 1500), bigOption(2, "eth7"), bigOption(3, "the seventh"),
			bigOption(11, "\x00udp port 4000"), bigOption(9, "\x06"),
			bigOption(8, "\x00\x00\x00\x00\x3b\x9a\xca\x00"), bigOption(4, "\x0a\x01\x02\x03\xff\xff\xff\x00"),
			bigOption(1, "of an interface"), end),
		bigBlock(1, bigNumbers(101<<16, 0), bigOption(2, "tun0"), bigOption(9, "\x09"), end),
		bigBlock(4, bigNumbers(1<<16|10), []byte("\x0a\x01\x02\x03alice\x00\x00\x00"), end),
		frame(0, uint32(micros>>32), uint32(micros&0xffffffff), ethernet, bigOption(1, "a comment"),
			bigOption(2, "\x00\x00\x00\x01"), bigOption(1, "and another"), end),
		frame(1, uint32(nanos>>32), uint32((nanos+1)&0xffffffff), packet),
		bigBlock(5, bigNumbers(0, 0, 0), bigOption(4, "\x00\x00\x00\x00\x00\x00\x00\x09"),
			bigOption(7, "\x00\x00\x00\x00\x00\x00\x00\x02"), end),
		section(bigOption(4, "another program"), end),
		bigBlock(1, bigNumbers(101<<16, 0), bigOption(2, "wg0"), end),
		frame(0, uint32((micros+5)>>32), uint32((micros+5)&0xffffffff), packet, bigOption(1, "of the second section"), end),
	)
	path := filepath.Join(t.TempDir(), "spoken.pcapng")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// contents is everything in a capture: frames, sections, interfaces, names.
type contents struct {
	Frames     []string
	Times      []int64
	Data       [][]byte
	Links      []uint32
	Sections   []capture.Section
	Interfaces []capture.Interface
	Names      string
}

func contentsOf(t *testing.T, path string) (c contents) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for f := (capture.Frame{}); ; {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		c.Frames = append(c.Frames, strings.Join(slices.Collect(f.Comments()), "|"))
		c.Times, c.Data, c.Links = append(c.Times, int64(f.At)), append(c.Data, slices.Clone(f.Data)),
			append(c.Links, f.LinkType)
	}
	c.Sections, c.Interfaces, c.Names = in.Sections(0), in.Interfaces(0), string(in.Names(0, 0))
	return c
}

// Saved packets keep all metadata of their capture.
func TestWriteKeeps(t *testing.T) {
	from := spoken(t)
	to := filepath.Join(t.TempDir(), "out.pcapng")
	output(t, "packets", "-w", to, from)
	want, got := contentsOf(t, from), contentsOf(t, to)
	if !reflect.DeepEqual(want, got) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if len(want.Frames) != 3 || len(want.Sections) != 2 || want.Sections[0].Hardware != "a machine" ||
		len(want.Interfaces) != 3 || want.Interfaces[0].Statistics == nil || !strings.Contains(want.Names, "alice") {
		t.Errorf("the capture itself reads as %+v", want)
	}
	// The sections of several files become one.
	both := filepath.Join(t.TempDir(), "both.pcapng")
	output(t, "packets", "--join", "-w", both, from, testenv.Capture(t, "reliable-loss40.client.pcapng.gz"))
	if s := contentsOf(t, both).Sections; len(s) != 1 || !strings.HasPrefix(s[0].Application, "a program; Dumpcap") ||
		s[0].Hardware != "a machine; AMD EPYC (with SSE4.2)" {
		t.Errorf("two files: %+v", s)
	}
}

// Wireshark reads the same frames from the saved file. A capture of one link
// type can also be saved as a classic file.
func TestWriteForWireshark(t *testing.T) {
	testenv.Grid(t, "tshark over what every format holds")
	tshark, capinfos := testenv.Need(t, "tshark"), testenv.Need(t, "capinfos")
	dir := t.TempDir()
	fields := []string{
		"frame.number", "frame.time_epoch", "frame.len", "frame.cap_len", "frame.encap_type", "ip.src",
		"udp.payload", "frame.comment", "frame.packet_flags", "frame.interface_name", "frame.interface_description",
	}
	listed := func(path string, fields []string) string {
		args := []string{"-n", "-r", path, "-T", "fields"}
		for _, f := range fields {
			args = append(args, "-e", f)
		}
		return string(testenv.Output(t, tshark, args...))
	}
	const classic = 7 // fields that a classic file has too
	captures := []string{spoken(t), testenv.Capture(t, "linktype-bigendian-nsec.pcap.gz")}
	if testenv.Required() {
		captures = append(captures, testenv.Capture(t, "reliable-loss40.client.pcapng.gz"))
	}
	for i, from := range captures {
		out, old := filepath.Join(dir, "out.pcapng"), filepath.Join(dir, "old.pcap")
		output(t, "packets", "-w", out, from)
		own := fields
		if !strings.Contains(from, "pcapng") {
			own = fields[:classic]
		}
		diffLines(t, filepath.Base(from)+" as pcapng", listed(from, own), listed(out, own))
		if i == 0 { // two link types
			if _, errs, code := outcome("packets", "-w", old, from); code != app.ExitFailed ||
				!strings.Contains(errs, "expected link type 1") {
				t.Errorf("two link types in a classic file: exit %d, %s", code, errs)
			}
			what := string(testenv.Output(t, capinfos, out))
			for _, want := range []string{
				"a machine", "an OS 1.0", "a program", "of the first section", "eth7", "the seventh",
				"udp port 4000", "Time precision = microseconds (6)", "Time precision = nanoseconds (9)",
			} {
				if !strings.Contains(what, want) {
					t.Errorf("capinfos does not show %q:\n%s", want, what)
				}
			}
			continue
		}
		if _, errs, code := outcome("packets", "-F", "pcap", "-w", old, from); code != app.ExitDone {
			t.Fatal(errs)
		}
		if file, err := exec.Command(capinfos, "-t", old).Output(); err != nil || !strings.Contains(string(file), "pcap") ||
			strings.Contains(string(file), "pcapng") {
			t.Errorf("%s: %s %v, expected a classic file", filepath.Base(from), file, err)
		}
		diffLines(t, filepath.Base(from)+" as pcap", listed(from, fields[:classic]), listed(old, fields[:classic]))
	}
}

// Captures that a format cannot hold are refused, and a warning counts omitted
// comments.
func TestWriteRefused(t *testing.T) {
	dir := t.TempDir()
	loss := testenv.Capture(t, "reliable-loss10.client.pcap.gz")
	own := filepath.Join(dir, "own.pcapng")
	output(t, "packets", "-w", own, "-c", "5", loss)
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"packets", "-w", own, own}, "that is the capture to be read", app.ExitFailed},
		{
			[]string{"packets", "-F", "snoop", "-w", filepath.Join(dir, "x"), own},
			"expected pcapng, pcap, nsecpcap",
			app.ExitFailed,
		},
		{[]string{"packets", "-F", "pcap", own}, "-F: expected -w too", app.ExitFailed},
		{
			[]string{"merge", "-w", filepath.Join(dir, "x.pcap"), loss, testenv.Capture(t, "reliable-loss10.server.pcap.gz")},
			"no room for comments on packets", app.ExitFailed,
		},
		{
			[]string{"packets", "-Y", "frame.number == 1", "-w", filepath.Join(dir, "y.pcap"), spoken(t)},
			"those of 1 packet are left out", app.ExitDone,
		},
	} {
		if _, errs, code := outcome(c.args...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit %d, %s; expected %q", c.args, code, errs, c.want)
		}
	}
	if n := len(contentsOf(t, own).Frames); n != 5 {
		t.Errorf("the capture that was to be overwritten has %d frames", n)
	}
}

// An anonymised capture contains nothing that the original says of itself, its
// interfaces or the names of hosts. It contains no address and no word of its
// packets.
func TestAnonymisedSaysNothing(t *testing.T) {
	from := spoken(t)
	original, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "share.pcapng")
	output(t, "anonymise", "--ports", from, to)
	share, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{
		"a machine", "an OS", "a program", "another program", "first section", "eth7", "the seventh", "port 4000",
		"of an interface", "tun0", "wg0", "alice",
		"a comment", "and another", "second section", "what was said", "\x0a\x01\x02\x03", "\x0a\x01\x02\x04",
		"\x0f\xa0\x13\x88", "\x06\x11\x22\x33",
	} {
		if !strings.Contains(string(original), secret) {
			t.Errorf("%q is not in the original", secret)
		}
		if strings.Contains(string(share), secret) {
			t.Errorf("%q is still there", secret)
		}
	}
	if want, got := contentsOf(t, from), contentsOf(t, to); !reflect.DeepEqual(want.Times, got.Times) ||
		!reflect.DeepEqual(want.Links, got.Links) || got.Interfaces[0].Statistics == nil ||
		*got.Interfaces[0].Statistics != *want.Interfaces[0].Statistics {
		t.Errorf("times, link types or counts differ: %+v of %+v", got, want)
	}
}

package anonymise_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/dissect/srdp"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/rewrite/anonymise"
)

const pcaps = "../../testdata/pcaps"

var options = analyze.Options{Registry: dissect.NewRegistry(gaffer.Protocol, riptide.Protocol, srdp.Protocol)}

func open(t *testing.T, path string) *capture.Input {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return in
}

// written is an anonymised capture in memory. It can be used as a source.
type written struct {
	frames []capture.Frame
	next   int
}

func (w *written) Rewind() error { w.next = 0; return nil }
func (w *written) Close() error  { return nil }

func (w *written) Next(f *capture.Frame) error {
	if w.next == len(w.frames) {
		return io.EOF
	}
	*f = w.frames[w.next]
	w.next++
	return nil
}

func run(t *testing.T, src anonymise.Source, o anonymise.Options) (*written, *anonymise.Report) {
	t.Helper()
	return runBy(t, options, src, o)
}

func runBy(t *testing.T, analysis analyze.Options, src anonymise.Source, o anonymise.Options) (*written,
	*anonymise.Report,
) {
	t.Helper()
	w := &written{}
	report, err := anonymise.Run(src, analysis, o, func(f *capture.Frame) error {
		w.frames = append(w.frames, *f)
		return nil
	})
	var cut *capture.CutError
	var damaged *capture.DamageError
	if err != nil && !errors.As(err, &cut) && !errors.As(err, &damaged) {
		t.Fatal(err)
	}
	return w, report
}

// reported returns everything that an analysis reports, except names.
func reported(t *testing.T, o analyze.Options, src analyze.Rewinder) (facts []string) {
	t.Helper()
	o.Sink = func(r *analyze.Record) {
		for i := range r.Events {
			facts = append(facts, fmt.Sprintf("%d %+v", r.Flow.ID, r.Events[i]))
		}
		for i := range r.Messages {
			m := r.Messages[i]
			facts = append(facts, fmt.Sprintf("%d %v %v %v %v %v %v", r.Flow.ID, m.From, m.Sequence64, m.Attempts, m.Acked,
				m.Delivered, m.Certainty))
		}
	}
	s, err := analyze.RunTwice(src, o)
	var cut *capture.CutError
	var damaged *capture.DamageError
	if err != nil && !errors.As(err, &cut) && !errors.As(err, &damaged) {
		t.Fatal(err)
	}
	for _, f := range s.Flows() {
		line := fmt.Sprintf("flow %d %v %v %v %v", f.ID, f.Session, f.Packets, f.Bytes, f.Duplicates)
		if f.Protocol != nil {
			line += " " + f.Protocol.Name + " " + f.Config().Dialect
			for _, side := range []machine.Side{machine.A, machine.B} {
				sum, _ := f.Summary(side)
				line += fmt.Sprintf(" %+v", sum)
			}
		}
		facts = append(facts, line)
		for _, x := range f.Findings() {
			if strings.HasPrefix(x.Rule.ID, "icmp-") {
				continue // ICMP becomes zeros: docs/sharing.md
			}
			facts = append(facts, fmt.Sprintf("finding %d %s %v %v %d %v %v", f.ID, x.Rule.ID, x.Side, x.Certainty, x.Count,
				x.Refs, x.Figures))
		}
	}
	return facts
}

// TestSame: the analysis reports the same about the anonymised capture and the
// original. The anonymised capture contains none of the original's addresses
// and contents.
func TestSame(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(pcaps, "*.pcap*"))
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d captures: %v", len(paths), err)
	}
	stride := 7
	switch {
	case testing.Short():
		stride = 31
	case os.Getenv("ACKSCOPE_SOAK") != "":
		stride = 1
	case testenv.Required():
		stride = 3
	}
	batches := filepath.Join(pcaps, "..", "kernel", "gso-card.pcapng.gz") // frames with several datagrams each
	for i, path := range append(paths, batches) {
		name := filepath.Base(path)
		if path != batches && (i%stride != 0 || strings.HasPrefix(name, "yojimbo-")) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			in := open(t, path)
			w, report := run(t, in, anonymise.Options{Key: [32]byte{1}})
			if err := in.Rewind(); err != nil {
				t.Fatal(err)
			}
			alike(t, reported(t, options, in), reported(t, options, w))
			if err := in.Rewind(); err != nil {
				t.Fatal(err)
			}
			leaks(t, in, w, report)
		})
	}
}

// alike compares facts.
func alike(t *testing.T, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("%d facts, of the original %d; the first that differs, %d:\n%s\nof the original\n%s", len(got), len(want),
				i, at(got, i), at(want, i))
		}
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "nothing"
}

// leaks searches the output for the original's addresses and contents.
func leaks(t *testing.T, in *capture.Input, w *written, report *anonymise.Report) {
	t.Helper()
	var all bytes.Buffer
	for i := range w.frames {
		all.Write(w.frames[i].Data)
		all.Write(w.frames[i].Options)
	}
	found := all.Bytes()
	d := capture.NewDecoder(capture.DecodeOptions{})
	var f capture.Frame
	var p capture.Packet
	const tail, most = 10, 60 // number of payloads to search for: each costs a search of the whole output
	looked, searched := map[netip.Addr]bool{}, 0
	replaced := map[string]bool{}
	for _, x := range report.Addresses {
		replaced[x.From] = true
	}
	for in.Next(&f) == nil {
		d.Decode(&f, &p)
		if p.Transport == capture.NoTransport {
			continue
		}
		for _, a := range []netip.Addr{p.Src.Addr(), p.Dst.Addr()} {
			if a.IsLoopback() {
				continue // localhost says nothing about a host
			}
			if !replaced[a.String()] {
				t.Fatalf("frame %d: the address %v is not among those that were replaced", f.Ref.Frame(), a)
			}
			if !looked[a] && bytes.Contains(found, a.AsSlice()) {
				t.Fatalf("frame %d: the address %v is still there", f.Ref.Frame(), a)
			}
			looked[a] = true
		}
		n := len(p.Payload)
		if p.Transport == capture.TCP {
			continue // its last messages may consist of headers only; their contents are checked below
		}
		if n < 40 || searched == most || f.Ref.Frame()%7 != 0 || !several(p.Payload[n-tail:]) {
			continue
		}
		searched++
		if bytes.Contains(found, p.Payload[n-tail:]) {
			t.Fatalf("frame %d: the last bytes of its payload are still there: %s", f.Ref.Frame(),
				hex.EncodeToString(p.Payload[n-tail:]))
		}
	}
	if err := in.Rewind(); err != nil {
		t.Fatal(err)
	}
	for i, b := range said(t, options, in) {
		if i%7 == 0 && len(b) >= 2*tail && several(b[tail:2*tail]) && searched < 2*most {
			searched++
			if bytes.Contains(found, b[tail:2*tail]) {
				t.Fatalf("what the application said is still there: %s", hex.EncodeToString(b[tail:2*tail]))
			}
		}
	}
}

// several reports whether bytes contain enough different values to be
// recognised.
func several(b []byte) bool {
	seen := map[byte]bool{}
	for _, x := range b {
		seen[x] = true
	}
	return len(seen) >= 5
}

// TestEncrypted: data that no key decrypts is refused before anything is
// written, or replaced as a whole.
func TestEncrypted(t *testing.T) {
	in := open(t, filepath.Join(pcaps, "yojimbo-clean.client.pcap.gz"))
	_, err := anonymise.Run(in, options, anonymise.Options{}, func(*capture.Frame) error {
		t.Fatal("a frame was written")
		return nil
	})
	var closed *anonymise.EncryptedError
	if !errors.As(err, &closed) || closed.Flow != 1 {
		t.Fatalf("%v, expected that flow 1 is encrypted", err)
	}
	if err := in.Rewind(); err != nil {
		t.Fatal(err)
	}
	w, _ := run(t, in, anonymise.Options{Blank: true})
	if len(w.frames) == 0 {
		t.Error("nothing written")
	}
}

func write(t *testing.T, path string, from *written) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := capture.NewWriter(f, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(capture.Interface{LinkType: from.frames[0].LinkType}); err != nil {
		t.Fatal(err)
	}
	for i := range from.frames {
		x := from.frames[i]
		x.Interface = 0
		if err := w.WriteFrame(&x); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestChecksums: tshark accepts every checksum of a packet that was captured
// completely.
func TestChecksums(t *testing.T) {
	tshark := testenv.Need(t, "tshark")
	for _, name := range []string{
		"reliable-loss10.client.pcap.gz", "reliable-ipv6.client.pcap.gz",
		"t210_midstream.client.pcap.gz", "reliable-ipfrag.client.pcap.gz",
	} {
		in := open(t, filepath.Join(pcaps, name))
		w, _ := run(t, in, anonymise.Options{Ports: true})
		path := filepath.Join(t.TempDir(), "out.pcapng")
		write(t, path, w)
		out, err := exec.Command(tshark, "-r", path, "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o",
			"ip.check_checksum:TRUE",
			"-Y", "udp.checksum.status == 0 || tcp.checksum.status == 0 || ip.checksum.status == 0", "-T", "fields", "-e",
			"frame.number").Output()
		if err != nil {
			t.Fatal(err)
		}
		if len(out) > 0 {
			t.Errorf("%s: frames with a wrong checksum: %.200s", name, strings.ReplaceAll(string(out), "\n", " "))
		}
	}
}

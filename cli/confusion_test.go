package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	foreign "github.com/ackscope/ackscope/internal/noise"
	"github.com/ackscope/ackscope/machine"
)

// TestConfusion classifies flows with all protocols registered and no override.
// The flows are those of every recorded capture, of simulated SRDP, and of
// noise. The simulated flows have all forms of SRDP, some on shared ports.
// testdata/confusion.golden has the matrix: every flow must be in its own
// column.
func TestConfusion(t *testing.T) {
	var m matrix
	m.title("simulated")
	for _, x := range []struct{ name, args string }{
		{"gaffer:reliable", "--protocol gaffer:reliable --duration 4s"},
		{"gaffer:article", "--protocol gaffer:article --duration 4s"},
		{"riptide:2.2.0", "--protocol riptide:2.2.0 --duration 4s"},
		{"srdp:direct", "--protocol srdp --clients 8"},
		{"srdp:direct, 30% lost", "--protocol srdp --clients 8 --loss 30% --repeats 0-3"},
		{"srdp:direct, seen by the server", "--protocol srdp --clients 8 --tap b"},
		{"srdp:direct-le", "--protocol srdp:direct-le --clients 8 --first 32000/9"},
		{"srdp:proxied", "--protocol srdp:proxied --clients 8"},
		{"srdp:proxied-le", "--protocol srdp:proxied-le --clients 8 --jitter 30ms"},
		{"srdp by a UDP proxy", "--protocol srdp:proxy --clients 8 --tap between"},
		{"srdp by a TCP proxy", "--protocol srdp:tcp --clients 8 --tap between"},
		{"srdp, a packet a second", "--protocol srdp --clients 8 --rate 1"},
	} {
		own, _, _ := strings.Cut(strings.Fields(x.args)[1], ":")
		m.add(t, x.name, own, simulated(t, x.args))
	}
	m.title("with noise on the same port")
	for _, form := range []string{"direct", "proxied", "direct-le", "proxied-le"} {
		for _, share := range []int{1, 4} {
			var paths []string
			for i, name := range slices.Sorted(maps.Keys(foreign.Protocols)) {
				paths = append(paths,
					shared(t, simulated(t, fmt.Sprintf("--protocol srdp:%s --duration 3s --seed %d", form, i+1))[0], name, share))
			}
			m.add(t, fmt.Sprintf("srdp:%s, %d to %d", form, 1, share), "srdp", paths)
		}
	}
	m.title("noise alone")
	names := slices.Sorted(maps.Keys(foreign.Protocols))
	path := filepath.Join(t.TempDir(), "noise.pcapng")
	writeNoise(t, path, names)
	m.add(t, fmt.Sprintf("%d other protocols", len(names)), "", []string{path})
	m.compare(t, "generated")

	if testing.Short() {
		return
	}
	m = matrix{}
	m.title("recorded")
	recorded := map[string][]string{}
	paths, err := filepath.Glob("../testdata/pcaps/*.pcap*.gz")
	if err != nil || len(paths) < 200 {
		t.Fatalf("%d captures, %v", len(paths), err)
	}
	for _, path := range paths {
		own := "gaffer"
		if name := filepath.Base(path); strings.HasPrefix(name, "u") || strings.HasPrefix(name, "t") {
			own = "riptide"
		}
		recorded[own] = append(recorded[own], path)
	}
	for _, own := range []string{"gaffer", "riptide"} {
		m.add(t, own+" captures", own, recorded[own])
	}
	m.compare(t, "recorded")
}

// matrix counts the protocols that flows were classified as.
type matrix struct{ text strings.Builder }

func (m *matrix) title(what string) {
	fmt.Fprintf(&m.text, "\n%-36s", what)
	for _, p := range protocols().Protocols() {
		fmt.Fprintf(&m.text, " %8s", p.Name)
	}
	fmt.Fprintf(&m.text, " %8s\n", "none")
}

// add classifies the flows of captures that are all of one protocol; "" for
// none.
func (m *matrix) add(t *testing.T, name, own string, paths []string) {
	t.Helper()
	count := map[string]int{}
	for _, path := range paths {
		in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepPipes})
		if err != nil {
			t.Fatal(err)
		}
		s, err := analyze.Run(in, analyze.Options{Registry: protocols()})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		for _, f := range s.Flows() {
			is := ""
			if f.Protocol != nil {
				is = f.Protocol.Name
			}
			if count[is]++; is != own {
				t.Errorf("%s: %s flow %d is classified as %q: %s", name, filepath.Base(path), f.ID, is, f.Verdict.Reason)
			}
		}
	}
	fmt.Fprintf(&m.text, "  %-34s", name)
	for _, p := range protocols().Protocols() {
		fmt.Fprintf(&m.text, " %8d", count[p.Name])
	}
	fmt.Fprintf(&m.text, " %8d\n", count[""])
}

// compare compares the matrix with its golden file.
func (m *matrix) compare(t *testing.T, name string) {
	t.Helper()
	path := filepath.Join("testdata", "confusion."+name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(m.text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(m.text.String())
	if want, err := os.ReadFile(path); err != nil || string(want) != m.text.String() {
		t.Errorf("the matrix is\n%s\nand %s has\n%s%v", m.text.String(), path, want, err)
	}
}

// simulated writes a capture with `ackscope simulate` and returns its path.
func simulated(t *testing.T, args string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "simulated.pcapng")
	var out, errs bytes.Buffer
	line := append([]string{"simulate", "-w", path}, strings.Fields(args)...)
	if !strings.Contains(args, "--duration") {
		line = append(line, "--duration", "6s")
	}
	if !strings.Contains(args, "--rate") && strings.Contains(args, "srdp") {
		line = append(line, "--rate", "20")
	}
	if code := runKnown(line, app.Streams{In: bytes.NewReader(nil), Out: &out, Err: &errs}); code != 0 {
		t.Fatalf("%v: exit %d: %s", line, code, errs.String())
	}
	return []string{path}
}

// shared copies a capture of one flow and inserts datagrams of another
// protocol: share of them after each of the flow's.
func shared(t *testing.T, path, protocol string, share int) string {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepPipes})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	to := filepath.Join(t.TempDir(), "shared.pcapng")
	file, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := capture.NewWriter(file, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(capture.Interface{LinkType: 101}); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(share), 3))
	next := foreign.Protocols[protocol](rng)
	decoder := capture.NewDecoder(capture.DecodeOptions{})
	var frame capture.Frame
	var p capture.Packet
	var ends [2]netip.AddrPort
	for n := 0; ; {
		if err := in.Next(&frame); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		decoder.Decode(&frame, &p)
		if n == 0 {
			ends = [2]netip.AddrPort{p.Src, p.Dst}
		}
		write := func(from, to netip.AddrPort, payload []byte, after int) {
			b, err := capture.AppendUDP(nil, capture.Envelope{Src: from, Dst: to, ID: uint16(n)}, payload)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.WriteFrame(&capture.Frame{
				At: p.At + machine.Instant(after)*1e5, LinkType: 101, Length: len(b),
				Data: b,
			}); err != nil {
				t.Fatal(err)
			}
		}
		write(p.Src, p.Dst, p.Payload, 0)
		for i := range share {
			side := machine.Side(rng.IntN(2))
			write(ends[side], ends[side.Other()], next(n, side), i+1)
			n++
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestForeignChangesNothing: ackscope reports the same about an SRDP flow
// whatever other programs send on its port.
func TestForeignChangesNothing(t *testing.T) {
	const args = "--protocol srdp --loss 10% --services any --repeats 0-3 --duration 8s"
	alone := simulated(t, args)[0]
	report := func(path string) map[string]int {
		var out, errs bytes.Buffer
		if code := runKnown([]string{"events", "--json", path},
			app.Streams{In: bytes.NewReader(nil), Out: &out, Err: &errs}); code != 0 {
			t.Fatalf("exit %d: %s", code, errs.String())
		}
		count := map[string]int{}
		for line := range strings.Lines(out.String()) {
			// The frame numbers differ; the rest stays.
			_, rest, _ := strings.Cut(line, `"side":`)
			if fact, _, ok := strings.Cut(rest, `,"about_frame"`); ok || !strings.Contains(rest, "gave_up") {
				count[fact]++
			}
		}
		return count
	}
	want := report(alone)
	if len(want) < 500 {
		t.Fatalf("%d facts of the flow alone", len(want))
	}
	for _, name := range slices.Sorted(maps.Keys(foreign.Protocols)) {
		if testing.Short() && name != "random" {
			continue
		}
		got := report(shared(t, alone, name, 2))
		differ := 0
		for fact, n := range want {
			if got[fact] != n {
				if differ++; differ < 4 {
					t.Logf("%s: %d instead of %d times %s", name, got[fact], n, fact)
				}
			}
		}
		for fact := range got {
			if want[fact] == 0 {
				if differ++; differ < 4 {
					t.Logf("%s: only on the shared port: %s", name, fact)
				}
			}
		}
		if differ > 0 {
			t.Errorf("%s: %d facts differ", name, differ)
		}
	}
}

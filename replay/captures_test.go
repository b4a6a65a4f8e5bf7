package replay_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/dissect/gaffer"
	"github.com/ackscope/ackscope/dissect/gaffer/netcode"
	"github.com/ackscope/ackscope/dissect/riptide"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/replay"
)

const pcaps = "../testdata/pcaps"

func registry() *dissect.Registry { return dissect.NewRegistry(gaffer.Protocol, riptide.Protocol) }

// replayed runs one capture.
func replayed(t *testing.T, path string, o replay.Options) *replay.File {
	t.Helper()
	o.Analysis.Registry = registry()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := replay.Run(filepath.Base(path), in, o)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}

// TestRunBeside: a replay beside another analysis finds what both find alone.
func TestRunBeside(t *testing.T) {
	for _, name := range []string{"reliable-wrap-slow.server.pcap.gz", "plain-le-stalebug-loss98.client.pcap.gz"} {
		path := filepath.Join(pcaps, name)
		alone := replayed(t, path, replay.Options{Matrix: true})
		in, err := capture.Open([]string{path}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		o := replay.Options{Matrix: true, Analysis: analyze.Options{Registry: registry()}}
		learned, err := analyze.Learn(in, o.Analysis)
		if err != nil {
			t.Fatal(err)
		}
		o.Survey = learned.Survey()
		records := 0
		other := o.Analysis
		other.Survey, other.Sink = o.Survey, func(*analyze.Record) { records++ }
		session, ended, beside, err := replay.RunBeside(name, in, o, other)
		if err != nil || ended != nil || records == 0 || session.Packets() != alone.Packets {
			t.Fatalf("%s: %v, %v, %d records of %d packets", name, err, ended, records, session.Packets())
		}
		if got, want := opinions(beside), opinions(alone); got != want || want == "" {
			t.Errorf("%s:\n%s\nexpected\n%s", name, got, want)
		}
	}
}

// opinions tells all results of a file.
func opinions(f *replay.File) string {
	var b strings.Builder
	for i := range f.Results {
		r := &f.Results[i]
		fmt.Fprintf(&b, "%d %s %s %t %+v\n", r.Flow.ID, r.Side, r.Behaviour, r.Expected, r.Opinion.Compared)
		if d := r.Divergence; d != nil {
			fmt.Fprintf(&b, "\tframe %d %s: %s, not %s: %s\n", d.Ref.Frame(), d.Field, d.Got, d.Expected, d.Because)
		}
	}
	return b.String()
}

// behaviourOf returns the behaviour that wrote a capture, as the capture's README says.
func behaviourOf(run string) string {
	switch {
	case strings.HasPrefix(run, "article-"):
		return "" // the sender of slices is the sample's, as its packets show
	case strings.Contains(run, "stalebug"):
		return "gaffer@no-stale-clear"
	case strings.HasPrefix(run, "plain-"), strings.HasPrefix(run, "crc32-"):
		return "gaffer@article"
	case strings.HasPrefix(run, "oldreliable-"):
		return "reliable@2017"
	}
	return "reliable@>=1.3"
}

// TestGafferCaptures: no side of an honest capture diverges from the behaviour that wrote it. The
// side at the tap conforms, unless its application refused packets or the capture began in its
// middle.
func TestGafferCaptures(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(pcaps, "*.pcap*"))
	if err != nil {
		t.Fatal(err)
	}
	captures := 0
	for _, path := range paths {
		run, _, _ := strings.Cut(filepath.Base(path), ".")
		prefix, _, _ := strings.Cut(run, "-")
		switch prefix {
		case "reliable", "plain", "crc32", "oldreliable", "linktype", "article":
		default:
			continue
		}
		if strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".replay") {
			continue
		}
		captures++
		o := replay.Options{Behaviour: behaviourOf(run)}
		// what passes does not show where the tap stands
		told := strings.Contains(run, "connect") || run == "article-fragments-clean"
		if told {
			o.Analysis.Vantage = standsAt(filepath.Base(path))
		}
		f := replayed(t, path, o)
		if len(f.Results) == 0 {
			t.Errorf("%s: nothing was compared", path)
		}
		near := 0
		for i := range f.Results {
			r := &f.Results[i]
			if d := r.Divergence; d != nil {
				t.Errorf("%s: flow %d %s: frame %d: %s: %s expected %s, got %s: %s", path, r.Flow.ID, r.Side, d.Ref.Frame(), d.Rule,
					d.Field, d.Expected, d.Got, d.Because)
			}
			if r.Flow.Facts().Vantage.Near(r.Side) {
				near++
				if r.Behaviour == "gaffer@article" && strings.Contains(path, "chunks") && r.Side == machine.A {
					t.Errorf("%s: %s is held against %s, expected the sample's", path, r.Side, r.Behaviour)
				}
				if strings.Contains(run, "reject") || strings.Contains(run, "stalebug") {
					if r.Undecided == 0 {
						t.Errorf("%s: flow %d %s: expected packets that could not be decided", path, r.Flow.ID, r.Side)
					}
				} else if r.Undecided > 0 {
					t.Errorf("%s: flow %d %s: %d of %d packets undecided at the tap", path, r.Flow.ID, r.Side, r.Undecided, r.Compared)
				}
			}
		}
		if near == 0 {
			t.Errorf("%s: no side stands at the tap", path)
		}
	}
	if captures < 60 {
		t.Errorf("%d captures, expected at least 60 under %s", captures, pcaps)
	}
}

// TestStaleEntries: the receiver of these runs never clears old entries. It
// diverges from the article at the first ack of a packet that never came.
func TestStaleEntries(t *testing.T) {
	for side, frame := range map[string]uint64{"client": 586, "server": 99} {
		f := replayed(t, filepath.Join(pcaps, "plain-le-stalebug-loss98."+side+".pcap.gz"), replay.Options{Matrix: true})
		seen := map[string]string{}
		for i := range f.Results {
			r := &f.Results[i]
			if !r.Flow.Facts().Vantage.Near(r.Side) {
				continue
			}
			seen[r.Behaviour] = r.Verdict()
			if d := r.Divergence; d != nil && (d.Ref.Frame() != frame || d.Rule.ID != "ack-never-arrived") {
				t.Errorf("%s: %s at frame %d, expected ack-never-arrived at %d", side, d.Rule, d.Ref.Frame(), frame)
			}
		}
		if seen["gaffer@article"] != "diverges" || seen["gaffer@no-stale-clear"] != "consistent" {
			t.Errorf("%s: %v", side, seen)
		}
	}
}

// flowOf returns the datagrams of a capture's first flow, and how it is read.
func flowOf(t *testing.T, path string) (list []machine.Datagram, f *analyze.Flow) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s, err := analyze.RunTwice(in, analyze.Options{Registry: registry(), Sink: func(r *analyze.Record) {
		// Without a packet are those that were held back until it was known what they are.
		read := r.Packet == nil && len(r.Datagram.Bytes) > 0
		if p := r.Packet; p != nil {
			read = !p.Duplicate && (p.Transport != capture.TCP || r.Message)
		}
		if read && r.Flow != nil && r.Flow.ID == 1 {
			d := r.Datagram
			d.Bytes = append([]byte(nil), d.Bytes...)
			list = append(list, d)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return list, s.Flows()[0]
}

// TestYojimboCaptures: with the keys, what netcode carries is compared with the reference too.
func TestYojimboCaptures(t *testing.T) {
	testenv.Grid(t, "a replay of each encrypted capture")
	file := &netcode.KeyFile{}
	for _, key := range []string{
		strings.Repeat("0", 64),
		"606abe6ec91910ea9a6562f66f2b30e44371d62cd19927266b3c60f4b715aba1",
	} {
		var k netcode.ServerKey
		if err := errors.Join(k.ProtocolID.UnmarshalYAML([]byte("0x11223344556677")),
			k.PrivateKey.UnmarshalYAML([]byte(key))); err != nil {
			t.Fatal(err)
		}
		file.Servers = append(file.Servers, k)
	}
	keys, err := netcode.NewKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(pcaps, "yojimbo-*.pcap*"))
	if err != nil || len(paths) < 18 {
		t.Fatal(paths, err)
	}
	conform := 0
	for n, path := range paths {
		if testing.Short() && n%6 != 0 {
			continue
		}
		in, err := capture.Open([]string{path}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := replay.Run(path, in,
			replay.Options{Analysis: analyze.Options{Registry: dissect.NewRegistry(gaffer.WithKeys(nil, keys))}})
		if err := errors.Join(err, in.Close()); err != nil {
			t.Fatal(err)
		}
		for i := range f.Results {
			r := &f.Results[i]
			if d := r.Divergence; d != nil {
				t.Errorf("%s: flow %d %s: frame %d: %s: %s expected %s, got %s: %s", path, r.Flow.ID, r.Side, d.Ref.Frame(), d.Rule,
					d.Field, d.Expected, d.Got, d.Because)
			}
			if r.Undecided == 0 {
				conform++
			}
		}
	}
	if !testing.Short() && conform < 12 {
		t.Errorf("%d sides conform, expected most of those at the tap", conform)
	}
}

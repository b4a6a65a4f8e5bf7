package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/cli/simulate"
	"github.com/ackscope/ackscope/dissect"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
	"github.com/ackscope/ackscope/schema/yamlfile"
)

// belowProfile is the profile of a game whose header is the article's, except that bit n
// of ack_bits is ack-n-1.
const belowProfile = "protocol: gaffer\nname: below\nbase: article\nsettings: {ack_base: ack-n-1}\n"

// basePage is the page that has the table of TestAckBase.
const basePage = "../docs/ack-bits.md"

// baseRun is a simulated run of which the meaning of bit 0 is known.
type baseRun struct {
	name, dialect string
	frames        []capture.Frame
}

// baseSource reads the frames of a run, any number of times.
type baseSource struct {
	frames []capture.Frame
	next   int
}

func (s *baseSource) Next(f *capture.Frame) error {
	if s.next == len(s.frames) {
		return io.EOF
	}
	*f = s.frames[s.next]
	s.next++
	return nil
}

func (s *baseSource) Rewind() error { s.next = 0; return nil }
func (s *baseSource) Close() error  { return nil }

// below returns a registry that knows belowProfile too.
func below(t *testing.T) *dissect.Registry {
	t.Helper()
	return extended(t, belowProfile)
}

func framesOf(t *testing.T, file []byte) (list []capture.Frame) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pcapng")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return readFrames(t, path)
}

// extended returns a registry that knows the profiles of a file too.
func extended(t *testing.T, file string) *dissect.Registry {
	t.Helper()
	list, err := yamlfile.Profiles([]byte(file), "profiles.yaml", protocols())
	if err != nil {
		t.Fatal(err)
	}
	extra := map[string][]dissect.Profile{}
	for _, x := range list {
		extra[x.Protocol] = append(extra[x.Protocol], x.Profile)
	}
	r, err := protocols().Extend(dissect.Additions{Profiles: extra})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// runBase simulates a run and returns what three taps saw of it.
func runBase(t *testing.T, registry *dissect.Registry, dialect, options string) (list [3]baseRun) {
	t.Helper()
	flags := simulationFlags(t, append([]string{"--protocol", "gaffer:" + dialect}, strings.Fields(options)...)...)
	s, err := simulate.NewSimulation(&app.App{Registry: registry}, known.Simulators(), &flags)
	if err != nil {
		t.Fatalf("%s: %v", options, err)
	}
	var files [3]bytes.Buffer
	var ends []func() error
	for i, tap := range []string{"a", "between", "b"} {
		end, failed, err := s.TapInto(float64(i)/2, &files[i])
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, func() error { return errors.Join(end(), *failed) })
		list[i] = baseRun{name: fmt.Sprintf("%s %s --tap %s", dialect, options, tap), dialect: dialect}
	}
	if err := s.World.Run(machine.Instant(flags.Duration + time.Second)); err != nil {
		t.Fatal(err)
	}
	for i, end := range ends {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		list[i].frames = framesOf(t, files[i].Bytes())
	}
	return list
}

func readFrames(t *testing.T, path string) (list []capture.Frame) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{Keep: capture.KeepPipes})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for {
		var f capture.Frame
		if err := in.Next(&f); err == io.EOF {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		f.Data = bytes.Clone(f.Data)
		list = append(list, f)
	}
}

// part returns n frames of a run from a frame on.
func (r baseRun) part(from, n int) baseRun {
	from = min(from, len(r.frames))
	r.frames = r.frames[from:min(from+n, len(r.frames))]
	r.name += fmt.Sprintf(", %d frames from %d on", len(r.frames), from)
	return r
}

// baseFacts is what the analysis says of a run: each event and finding, with its grade.
type baseFacts struct {
	flow   *analyze.Flow
	grades map[string]machine.Certainty
}

// facts analyzes the run. as reads it as a dialect; "" leaves that to detection.
func (r baseRun) facts(t *testing.T, registry *dissect.Registry, as string) (x baseFacts) {
	t.Helper()
	x.grades = map[string]machine.Certainty{}
	o := analyze.Options{Registry: registry}
	if as != "" {
		p, _ := registry.Lookup("gaffer")
		for _, profile := range p.Profiles {
			if profile.Name == as {
				o.DecodeAs = []analyze.DecodeAs{{Transport: capture.UDP, Protocol: p, Config: profile.Config}}
			}
		}
	}
	o.Sink = func(record *analyze.Record) {
		for _, e := range record.Events {
			key := fmt.Sprintf("event %d of %v: %d in frame %d", e.Kind, e.Side, e.Sequence, e.Ref.Frame())
			x.grades[key] = max(x.grades[key], e.Certainty)
		}
	}
	s, err := analyze.RunTwice(&baseSource{frames: r.frames}, o)
	if err != nil {
		t.Fatal(err)
	}
	if flows := s.Flows(); len(flows) == 1 {
		x.flow = flows[0]
	} else {
		t.Fatalf("%s: %d flows", r.name, len(flows))
	}
	for _, f := range x.flow.Findings() {
		x.grades[findingKey(f)] = f.Certainty
	}
	return x
}

func findingKey(f *analyze.Finding) string { return fmt.Sprintf("finding %s of %v", f.Rule.ID, f.Side) }

// baseCount counts the runs of a row of the table.
type baseCount struct{ runs, found, alike, open, likely int }

// detect reads a run once. Its first 512 datagrams must show the profile.
func (r baseRun) detect(t *testing.T, registry *dissect.Registry) {
	t.Helper()
	s, err := analyze.Run(&baseSource{frames: r.frames}, analyze.Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	f := s.Flows()[0]
	if f.Config() == nil || f.Config().Dialect != r.dialect {
		t.Errorf("%s: not found in one run: %+v", r.name, f.Verdict)
	}
}

// hold compares what is said of a run with what is said when its dialect is given. It
// fails for a fact that is certain and false.
func (n *baseCount) hold(t *testing.T, r baseRun, registry *dissect.Registry) {
	t.Helper()
	want, got := r.facts(t, registry, r.dialect), r.facts(t, registry, "")
	n.runs++
	if got.flow.Config() == nil {
		if len(r.frames) >= 20 {
			t.Errorf("%s: taken for nothing: %s", r.name, got.flow.Verdict.Reason)
		}
		return
	}
	for what, grade := range got.grades {
		if _, ok := want.grades[what]; grade == machine.Certain && !ok {
			t.Errorf("%s: read as %s, certain and false: %s; %s", r.name, got.flow.Config().Dialect, what,
				got.flow.Verdict.Reason)
			break
		}
	}
	doubtful := got.flow.Facts().Doubtful
	switch found := got.flow.Config().Dialect == r.dialect; {
	case found && !doubtful:
		n.found++
		if !maps.Equal(got.grades, want.grades) {
			t.Errorf("%s: %s was found, and other grades are told than when it is given", r.name, r.dialect)
		}
	case doubtful && found:
		n.likely++
	case doubtful:
		n.open++
	case len(without(got.grades, want.grades))+len(without(want.grades, got.grades)) == 0:
		n.alike++
	default:
		t.Errorf("%s: read as %s, which says something else: %v, expected %v", r.name, got.flow.Config().Dialect,
			without(got.grades, want.grades), without(want.grades, got.grades))
	}
}

// without returns some facts of a that b does not have.
func without(a, b map[string]machine.Certainty) (list []string) {
	for what := range a {
		if _, ok := b[what]; !ok && len(list) < 5 {
			list = append(list, what)
		}
	}
	return list
}

// TestAckBase runs endpoints whose bit 0 of ack_bits is ack itself, and endpoints whose bit
// 0 is the packet before. The profiles of both are known. Detection finds the right one.
// Where it cannot, because both say the same, no fact that rests on it is certain.
//
// ACKSCOPE_ACKBASE=1 (make ackbase) runs all networks, and compares the table in
// docs/ack-bits.md with the results. ACKSCOPE_ACKBASE=update writes the table.
func TestAckBase(t *testing.T) {
	full := os.Getenv("ACKSCOPE_ACKBASE") != ""
	losses, seeds, sizes := []string{"0%", "1%", "10%", "40%"}, 1, []int{20, 300, 1400}
	if full {
		losses, seeds = []string{"0%", "0.1%", "1%", "5%", "10%", "20%", "40%"}, 6
		sizes = []int{20, 50, 100, 200, 500, 1000, 2000, 5000}
	}
	registry := below(t)
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t\tfrom the start\t\t\t\t\tfrom the middle\t\t\t\t\t")
	fmt.Fprintln(w, "endpoints\tloss"+strings.Repeat("\tall\tfound\tlikely\talike\topen", 2)+"\t")
	for _, dialect := range []string{"article", "below"} {
		for _, loss := range losses {
			var n [2]baseCount // from the start, and from the middle
			for seed := range seeds {
				options := fmt.Sprintf("--loss %s --seed %d --delay %dms --jitter %dms --rate %d/%d", loss, seed+1, 10+20*(seed%3),
					seed%2*15, 60, 60/(1+seed%2*2))
				for _, run := range runBase(t, registry, dialect, options+fmt.Sprintf(" --duration %ds", sizes[len(sizes)-1]/100)) {
					for _, size := range sizes {
						n[0].hold(t, run.part(0, size), registry)
						if size >= 100 {
							run.part(0, size).detect(t, registry)
						}
						n[1].hold(t, run.part(200, size), registry)
					}
				}
			}
			fmt.Fprintf(w, "%s\t%s", dialect, loss)
			for _, c := range n {
				fmt.Fprintf(w, "\t%d\t%d\t%d\t%d\t%d", c.runs, c.found, c.likely, c.alike, c.open)
			}
			fmt.Fprintln(w, "\t")
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	text := trailing.ReplaceAll(table.Bytes(), nil)
	t.Logf("\n%s", text)
	if full && !t.Failed() {
		testenv.HoldTable(t, basePage, "make ackbase", text, os.Getenv("ACKSCOPE_ACKBASE") == "update")
	}
}

// TestAckBaseLate: a flow is captured from the middle, and nothing is lost in the 512
// datagrams that detection looks at. So it is read by the user's profile. Packets are lost
// later. They show that this is wrong, and the capture is read again.
func TestAckBaseLate(t *testing.T) {
	registry := below(t)
	for _, run := range runBase(t, registry, "article", "--dup 5% --outage 9s,40ms,500ms --duration 14s") {
		run = run.part(200, 5000)
		var n baseCount
		if n.hold(t, run, registry); n.found != 1 {
			t.Errorf("%s: %+v", run.name, n)
		}
		s, err := analyze.Run(&baseSource{frames: run.frames}, analyze.Options{Registry: registry})
		if err != nil {
			t.Fatal(err)
		}
		f := s.Flows()[0]
		shown := f.Facts().Readings
		if f.Config().Dialect != "below" || !s.Misread() || !shown.Shows(0) {
			t.Errorf("%s: in one run it is %s, misread %v, %+v", run.name, f.Config().Dialect, s.Misread(), shown)
		}
		want := run.facts(t, registry, "article").grades
		for _, x := range f.Findings() {
			if _, ok := want[findingKey(x)]; !ok && x.Certainty == machine.Certain {
				t.Errorf("%s: in one run, certain: %s", run.name, x.Rule.ID)
			}
		}
	}
}

// TestAckBaseRecorded reads recorded captures with a rival of each built-in profile beside
// it. Everything is told as without the rivals.
func TestAckBaseRecorded(t *testing.T) {
	var rivals []string
	for _, base := range []string{"article", "article-be", "article-crc32", "reliable-2017"} {
		rivals = append(
			rivals,
			fmt.Sprintf("protocol: gaffer\nname: rival-%s\nbase: %s\nsettings: {ack_base: ack-n-1}\n", base,
				base),
		)
	}
	registry := extended(t, strings.Join(rivals, "---\n"))
	for _, run := range []string{"plain-le-clean", "plain-be-clean", "crc32-clean", "oldreliable-clean"} {
		for _, tap := range []string{"client", "server"} {
			r := baseRun{name: run + "." + tap, frames: readFrames(t, testenv.Capture(t, run+"."+tap+".pcap.gz"))}
			want, got := r.facts(t, protocols(), ""), r.facts(t, registry, "")
			is, was := got.flow.Config().Dialect, want.flow.Config().Dialect
			if is != was || !maps.Equal(got.grades, want.grades) {
				t.Errorf("%s: read as %s, and as %s without rivals: %s", r.name, is, was, got.flow.Verdict.Reason)
			}
		}
	}
}

// TestAckBaseReplay: a correct endpoint of ack-n-1 diverges when it is read as ack-n, but
// only likely so, and replay says why. With its profile it conforms.
func TestAckBaseReplay(t *testing.T) {
	dir := t.TempDir()
	path, profile := filepath.Join(dir, "x.pcapng"), filepath.Join(dir, "below.yaml")
	if err := os.WriteFile(profile, []byte(belowProfile), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := func(args ...string) string {
		var out, trouble bytes.Buffer
		if code := runKnown(args, app.Streams{Out: &out, Err: &trouble}); code > 1 {
			t.Fatalf("%v: exit %d: %s", args, code, trouble.String())
		}
		return out.String()
	}
	asked(
		"simulate",
		"-q",
		"--profiles",
		profile,
		"--protocol",
		"gaffer:below",
		"--loss",
		"5%",
		"--duration",
		"8s",
		"-w",
		path,
	)
	if text := asked("replay", "-q", path); strings.Count(
		text,
		"likely: the flow may have to be read by another profile",
	) != 2 {
		t.Errorf("without its profile: %s", text)
	}
	if text := asked("replay", "-q", "--profiles", profile, path); !strings.Contains(
		text,
		"1 side conforms, 1 consistent, 0 diverge",
	) {
		t.Errorf("with its profile: %s", text)
	}
}

// TestAckBaseAlone: without a profile of its own, a flow of ack-n-1 is read as ack-n. No
// finding that rests on it is certain, and the reason tells what does not fit.
func TestAckBaseAlone(t *testing.T) {
	registry := below(t)
	for _, loss := range []string{"1%", "5%", "20%"} {
		for _, run := range runBase(t, registry, "below", "--duration 12s --loss "+loss) {
			got, want := run.facts(t, protocols(), ""), run.facts(t, registry, "below")
			for what, grade := range got.grades {
				if _, ok := want.grades[what]; !ok && grade == machine.Certain {
					t.Errorf("%s: certain and false: %s", run.name, what)
				}
			}
			reason := got.flow.Verdict.Reason
			if !got.flow.Facts().Doubtful || !strings.Contains(reason, "do not fit ack_base ack-n and fit ack-n-1") {
				t.Errorf("%s: %s", run.name, reason)
			}
		}
	}
}

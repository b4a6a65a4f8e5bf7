package cli

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/cli/app"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/machine"
)

// recorded is what a test reads of the JSON beside a recording.
type recorded struct {
	Recording, On, Severity, Certainty, Message, A, B, Overview string
	At, Told, From, To                                          time.Time
	Again                                                       *bool
	Frame, Frames, Limited, Evicted                             int
	FirstFrames                                                 int `json:"first_frames"`
	All                                                         bool
	Missing, State, Diagnosis                                   []string
	Recorded                                                    []struct{ A, B, Protocol string }
}

// recordingsIn reads the recordings of a folder, and checks that each pcapng has its JSON and nothing else is there.
func recordingsIn(t *testing.T, folder string) (list []recorded) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	captures := 0
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".pcapng":
			captures++
		case ".json":
			text, err := os.ReadFile(filepath.Join(folder, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			var x recorded
			if err := json.Unmarshal(text, &x); err != nil {
				t.Fatalf("%s: %v", e.Name(), err)
			}
			if strings.TrimSuffix(x.Recording, ".pcapng") != strings.TrimSuffix(e.Name(), ".json") {
				t.Errorf("%s describes %s", e.Name(), x.Recording)
			}
			list = append(list, x)
		default:
			t.Errorf("%s is no recording", e.Name())
		}
	}
	if captures != len(list) {
		t.Errorf("%d captures have %d descriptions", captures, len(list))
	}
	return list
}

// piece is simulated traffic that a test moves to another time and another port.
type piece struct{ frames []capture.Frame }

func pieceOf(t *testing.T, args ...string) *piece {
	t.Helper()
	path := filepath.Join(t.TempDir(), "piece.pcapng")
	output(t, append([]string{"simulate", "-q", "-w", path}, args...)...)
	return &piece{framesIn(t, path)}
}

func framesIn(t *testing.T, path string) (list []capture.Frame) {
	t.Helper()
	in, err := capture.Open([]string{path}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var f capture.Frame
	for {
		if err := in.Next(&f); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		c := f
		c.Data, c.Options = slices.Clone(f.Data), slices.Clone(f.Options)
		list = append(list, c)
	}
}

// at appends the piece from a time on, with a number added to the client's port. The checksums stay behind: nothing
// relies on them.
func (p *piece) at(to []capture.Frame, after time.Duration, ports uint16) []capture.Frame {
	const client, ethernet, ethernetHeader, ipv4Header = 30000, 1, 14, 20
	for _, f := range p.frames {
		f.At = f.At.Add(after)
		f.Data = slices.Clone(f.Data)
		udp := ipv4Header
		if f.LinkType == ethernet {
			udp += ethernetHeader
		}
		for _, place := range []int{udp, udp + 2} {
			if binary.BigEndian.Uint16(f.Data[place:]) == client {
				binary.BigEndian.PutUint16(f.Data[place:], client+ports)
			}
		}
		to = append(to, f)
	}
	return to
}

// writtenCapture writes frames in order of time.
func writtenCapture(t *testing.T, frames []capture.Frame) string {
	t.Helper()
	slices.SortStableFunc(frames, func(x, y capture.Frame) int { return cmp.Compare(x.At, y.At) })
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddInterface(capture.Interface{LinkType: frames[0].LinkType, Name: "eth0"}); err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		frames[i].Ref, frames[i].Interface = machine.Ref(0), 0
		if err := w.WriteFrame(&frames[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "written.pcapng")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ten hours of simulated time have 50 troubles among quiet flows. There are 50 recordings, each of the right flow and
// time. Each shows its finding again. No recording has a quiet flow.
func TestRecorderFindsTheTroublesOfANight(t *testing.T) {
	const troubles = 50
	quiet := pieceOf(t, "gaffer:reliable", "--seed", "2", "--rate", "30", "--duration", "12s")
	ping := &piece{quiet.frames[:1]} // something of no known protocol, each two seconds
	clear(ping.frames[0].Data[len(ping.frames[0].Data)-16:])
	var night []capture.Frame
	for i := range 10 * 60 * 30 {
		night = ping.at(night, time.Duration(2*i)*time.Second, 999)
	}
	for i := range troubles {
		begin := time.Duration(i)*12*time.Minute + time.Minute
		trouble := pieceOf(t, "gaffer:reliable", "--seed", fmt.Sprint(i+10), "--rate", "30", "--duration", "16s",
			"--outage", "8s,700ms,1h")
		night = trouble.at(night, begin, uint16(1000+i))
		night = quiet.at(night, begin+5*time.Minute, uint16(2000+i))
		night = quiet.at(night, begin+3*time.Second, uint16(3000+i))
	}
	path, folder := writtenCapture(t, night), t.TempDir()
	start := night[0].At.Time()
	output(t, "capture", "-q", "-r", path, "--on", "warn", "--keep", "6s", "--after", "3s", "-w", folder)
	list := recordingsIn(t, folder)
	if len(list) != troubles {
		t.Fatalf("%d recordings, expected %d", len(list), troubles)
	}
	for i, x := range list { // their names sort by time
		from := start.Add(time.Duration(i)*12*time.Minute + time.Minute + 8*time.Second)
		client := fmt.Sprintf(":%d", 31000+i)
		if x.At.Before(from) || x.At.After(from.Add(2*time.Second)) || x.Again == nil || !*x.Again || len(x.Recorded) != 1 ||
			!strings.HasSuffix(x.Recorded[0].A, client) && !strings.HasSuffix(x.Recorded[0].B, client) {
			t.Errorf("recording %d: %+v: expected the trouble at %v of port %s", i, x, from, client)
		}
		found := output(t, "findings", "--json", filepath.Join(folder, x.Recording))
		if !strings.Contains(found, `"rule":"`+x.On+`"`) || !strings.Contains(found, fmt.Sprint(x.Frame)) {
			t.Errorf("%s: the finding does not show again:\n%s", x.Recording, found)
		}
	}
}

// The words of --on, and what the files say.
func TestRecorderTriggers(t *testing.T) {
	path := writtenCapture(t, pieceOf(t, "riptide:2.1", "--seed", "7", "--outage", "4s,800ms,4s").frames)
	for _, c := range []struct {
		on   []string
		want []string
	}{
		{[]string{"riptide-attempts-high"}, []string{"riptide-attempts-high"}},
		{[]string{"loss > 5%"}, []string{"loss > 5%"}},
		{[]string{"error"}, nil},
		{[]string{"silence", "SIGUSR1"}, []string{"silence"}},
	} {
		folder := t.TempDir()
		args := []string{"capture", "-q", "--json", "-r", path, "--keep", "2s", "--after", "1s", "-w", folder}
		for _, on := range c.on {
			args = append(args, "--on", on)
		}
		out := output(t, args...)
		var rules []string
		for _, x := range recordingsIn(t, folder) {
			if !slices.Contains(rules, x.On) {
				rules = append(rules, x.On)
			}
			if x.Frames == 0 || x.Frame == 0 || x.Overview == "" || len(x.Diagnosis) == 0 || len(x.State) == 0 ||
				!strings.Contains(out, x.Recording) || x.From.After(x.At) || x.To.Before(x.Told) {
				t.Errorf("%v: %+v", c.on, x)
			}
			packets := output(t, "packets", "-V", "-Y", fmt.Sprintf("frame.number == %d", x.Frame),
				filepath.Join(folder, x.Recording))
			if !strings.Contains(packets, "ackscope recorder: "+x.On) {
				t.Errorf("%v: the frame of the trouble has no comment:\n%s", c.on, packets)
			}
			if listed := framesIn(t, filepath.Join(folder, x.Recording)); len(listed) != x.Frames {
				t.Errorf("%v: %d frames, expected %d", c.on, len(listed), x.Frames)
			}
		}
		if !slices.Equal(rules, c.want) {
			t.Errorf("%v: recorded %v, expected %v", c.on, rules, c.want)
		}
	}
}

// A row of recordings keeps within -b, and a recording within its bytes.
func TestRecorderLimits(t *testing.T) {
	path := writtenCapture(t, pieceOf(t, "gaffer:reliable", "--seed", "7", "--outage", "4s,500ms,4s").frames)
	folder := t.TempDir()
	_, errs, code := outcome("capture", "-r", path, "--on", "warn", "--keep", "2s", "--after", "1s", "-w", folder,
		"-b", "files:2", "-b", "filesize:20kB")
	list := recordingsIn(t, folder)
	if code != app.ExitDone || len(list) != 2 || !strings.Contains(errs, "2 recordings removed to make room") {
		t.Fatalf("exit %d, %d recordings: %s", code, len(list), errs)
	}
	for _, x := range list {
		info, err := os.Stat(filepath.Join(folder, x.Recording))
		if err != nil {
			t.Fatal(err)
		}
		if x.Limited == 0 || info.Size() > 40_000 || len(x.Missing) == 0 {
			t.Errorf("%d bytes, %+v", info.Size(), x)
		}
	}
	folder = t.TempDir()
	output(t, "capture", "-q", "-r", path, "--on", "warn", "--keep", "2s", "--after", "1s", "-w", folder, "--every", "6s")
	if list := recordingsIn(t, folder); len(list) != 2 {
		t.Errorf("--every 6s of troubles each 4 s: %d recordings, expected 2", len(list))
	}
}

// What only the handshake tells is known in a recording of a later time: the first frames come with it. Here they have
// the token that opens the packets.
func TestRecorderKeepsTheHandshake(t *testing.T) {
	const run = "yojimbo-testmsgs-loss10"
	private, id, _ := secretsOf(t, run)
	keys := keyFile(t, "servers: [{protocol_id: 0x"+id+", private_key: "+private+"}]\n")
	folder := t.TempDir()
	output(t, "capture", "-q", "--keys", keys, "-r", testenv.Capture(t, run+".client.pcap.gz"), "--on", "note",
		"--keep", "2s", "--after", "1s", "-w", folder)
	heads := 0
	for _, x := range recordingsIn(t, folder) {
		if x.FirstFrames == 0 {
			continue
		}
		heads++
		if len(x.Missing) == 0 || x.Again == nil || !*x.Again {
			t.Errorf("%s: first frames joined, again is %v, missing: %v", x.Recording, x.Again, x.Missing)
		}
		found := output(t, "findings", "--json", "--keys", keys, filepath.Join(folder, x.Recording))
		if !strings.Contains(found, `"rule":"`+x.On+`"`) {
			t.Errorf("%s: the finding does not show again:\n%s", x.Recording, found)
		}
	}
	if heads == 0 {
		t.Error("no recording has first frames: expected one to check")
	}
}

func TestRecorderRefusesWrongFlags(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"capture -i lo --keep 5s", "expected --on too"},
		{"capture -r x --on warn", "expected -w FOLDER too"},
		{"capture -r x --on warn -w " + file, "expected a folder"},
		{"capture -r x --on warn -w " + folder + "/none", "expected a folder that exists"},
		{"capture -r x --on wrong -w " + folder, "--on: "},
		{"capture -r x --on loss>> -w " + folder, "--on: "},
		{"capture -r x --on warn --keep 0s -w " + folder, "expected a time above 0"},
		{"capture -r x --on warn --rate fast -w " + folder, "--rate: "},
		{"capture -r x --on warn -b packets:5 -w " + folder, "expected files:N, total:1GB"},
		{"capture -r x --on warn -F pcap -w " + folder, "recordings are pcapng"},
		{"capture -i lo -r x --on warn -w " + folder, "expected one or the other"},
	} {
		if _, errs, code := outcome(strings.Fields(c.args)...); code != app.ExitFailed || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d, %s: expected %q", c.args, code, errs, c.want)
		}
	}
}

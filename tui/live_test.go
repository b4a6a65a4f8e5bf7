package tui

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/ackscope/ackscope/internal/testenv"
)

// liveFrame is a frame of a pcap file.
type liveFrame struct {
	at, end int64 // nanoseconds since the first frame; where it ends in the file
	length  float64
	a       bool // the side that spoke first sent it
}

// liveFrames reads a pcap file of raw IP with nanoseconds.
func liveFrames(t *testing.T, path string) (list []liveFrame) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head, source, source4 = 16, 12, 16 // bytes: of a record; where the address of the sender begins and ends
	first, from := int64(0), ""
	for at := 24; at+head+source4 <= len(data); {
		word := func(i int) int64 { return int64(binary.LittleEndian.Uint32(data[at+4*i:])) }
		x := liveFrame{at: word(0)*1e9 + word(1), end: int64(at) + head + word(2), length: float64(word(3))}
		sender := string(data[at+head+source : at+head+source4])
		if len(list) == 0 {
			first, from = x.at, sender
		}
		x.at, x.a = x.at-first, sender == from
		list, at = append(list, x), int(x.end)
	}
	return list
}

// Graphs of a live capture, in real time: the right edge is the newest packet, and the bandwidth is
// what was sent. ACKSCOPE_LIVE=60s sends for a minute. Then a window of the graph has a second,
// so that the bandwidth at one place can be compared.
func TestTUILiveGraphs(t *testing.T) {
	program := testenv.Ackscope(t)
	length := 3 * time.Second
	if s := os.Getenv("ACKSCOPE_LIVE"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "run.pcap")
	out, err := exec.Command(program, "simulate", "gaffer:reliable", "--payload", "100-100", "--duration", length.String(),
		"-w", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	frames := liveFrames(t, path)
	x := newTerminal(t, "120", "40")
	x.run("mkfifo pipe; " + program + " tui - <pipe; echo left $?")
	pipe := x.follow(path)
	const step = int64(500 * time.Millisecond)
	start, sent, lag := time.Now(), 0, time.Duration(0)
	for next, from := step, 0; sent < len(frames); next += step {
		for sent < len(frames) && frames[sent].at < next {
			sent++
		}
		time.Sleep(time.Until(start.Add(time.Duration(next))))
		pipe(from, int(frames[sent-1].end))
		from = int(frames[sent-1].end)
		written := time.Now()
		switch next {
		case step:
			x.see(`gaffer/reliable`)
			x.keys("Enter")
			x.see(`following`)
			x.keys("T")
		default:
			x.see(regexp.QuoteMeta(fmt.Sprintf("+%.3f s", float64(frames[sent-1].at)/1e9)))
			lag = max(lag, time.Since(written))
		}
	}
	t.Logf("after each half second the right edge was the newest packet, at most %v later", lag.Round(time.Millisecond))
	var bytes [2]float64
	for _, f := range frames {
		bytes[map[bool]int{true: 0, false: 1}[f.a]] += f.length
	}
	middle := len(frames) / 2
	x.typed(fmt.Sprintf("%dG", middle))
	screen := x.see(fmt.Sprintf(`▲ frame %d\b`, middle))
	m := regexp.MustCompile(`(?s)bandwidth.*?\nA (\d+).*?\nB (\d+)`).FindStringSubmatch(screen)
	if m == nil {
		t.Fatalf("the bandwidth of both sides is not shown:\n%s", screen)
	}
	for side := range bytes {
		want := bytes[side] / (float64(frames[len(frames)-1].at) / 1e9)
		got, _ := strconv.ParseFloat(m[1+side], 64)
		t.Logf("side %c: %.0f B/s are shown, %.0f were sent", 'A'+side, got, want)
		if length >= 30*time.Second && (got < 0.95*want || got > 1.05*want) {
			t.Errorf("side %c: %.0f B/s are shown, and %.0f were sent", 'A'+side, got, want)
		}
	}
	x.keys("Z", "Z")
	x.see("left 0")
}

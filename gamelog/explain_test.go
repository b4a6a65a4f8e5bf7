package gamelog

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ackscope/ackscope/analyze"
	"github.com/ackscope/ackscope/machine"
)

// placed returns a log whose clock is that of the capture, known to the millisecond.
func placed(t *testing.T, text string) *Aligned {
	t.Helper()
	a := &Aligned{
		Log: read(t, text), Method: Sequences, Certainty: machine.Likely, Flow: &analyze.Flow{ID: 1}, unit: 1,
		fit: fit{line: line{rate: 1}, bound: 1e-3, from: 0, to: 10},
	}
	return a
}

// frames are lines of a game that runs 50 frames a second, but for one that ends at 5 s and
// took so many milliseconds.
func frames(long int, begins bool) string {
	var b strings.Builder
	for at := 0; at < 10000; at += 20 {
		took, when := 20, at
		switch {
		case at > 5000-long && at < 5000:
			continue
		case at == 5000 && begins:
			took, when = long, 5000-long
		case at == 5000:
			took = long
		}
		fmt.Fprintf(&b, `{"t":%.3f,"frame_ms":%d}`+"\n", float64(when)/1000, took)
	}
	return b.String()
}

func TestExplain(t *testing.T) {
	pause := analyze.Pause{Until: machine.Instant(5e9), Took: 480 * time.Millisecond}
	steady := frames(20, false)
	var sending, sparse strings.Builder
	for at := 0; at < 10000; at += 20 {
		fmt.Fprintf(&sending, `{"t":%.3f,"event":"send"}`+"\n", float64(at)/1000)
		if at <= 4520 || at >= 5000 {
			fmt.Fprintf(&sparse, `{"t":%.3f,"event":"send"}`+"\n", float64(at)/1000)
		}
	}
	for _, c := range []struct {
		name, text string
		want       Why
		says       string
	}{
		{"a frame that is written when it ends", frames(480, false), FrameTook, "the game's frame took 480 ms (line "},
		{"one that is written when it begins", frames(480, true), FrameTook, "the game's frame took 480 ms (line "},
		{"frames throughout", steady, RanOn, "has 23 lines in it: the game ran, and sent nothing (likely)"},
		{"sends throughout", sending.String(), SentOn, "sends in it: the game ran and sent, and nothing was captured"},
		{"no line", sparse.String(), Still, "has no line for 480 ms after line 227"},
		{"a log that begins later", `{"t":6,"frame_ms":20}`, Outside, "does not cover it"},
		{"a short frame", steady + `{"t":4.9,"frame_ms":200}`, RanOn, "the game ran"},
	} {
		a := placed(t, c.text)
		if c.want == Outside {
			a.fit.at = 6 // the first line is at 6 s
		}
		x := a.Explain(pause)
		if x.Why != c.want || !strings.Contains(x.String(), c.says) {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, x.Why, x.String(), c.want, c.says)
		}
	}
	a := placed(t, steady)
	a.fit.bound = 0.3
	if x := a.Explain(pause); x.Why != Uncertain || x.Certainty != machine.Unknown {
		t.Errorf("clocks known to 300 ms: %v, %v", x.Why, x.Certainty)
	}
}

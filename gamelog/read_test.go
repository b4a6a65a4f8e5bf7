package gamelog

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func read(t *testing.T, text string) *Log {
	t.Helper()
	l, err := Read("game.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Times lose no digit, whatever their unit and epoch.
func TestTimes(t *testing.T) {
	for _, c := range []struct {
		first, second string
		want          float64
	}{
		{"12.5", "13", 0.5},
		{"1795238665.808691001", "1795238665.808691002", 1e-9},
		{"1795238665808691001", "1795238665808691002", 1},
		{"-0.25", "0.25", 0.5},
		{"1.5e3", "1.6e3", 100},
		{`"2026-11-21T05:24:26.301201Z"`, `"2026-11-21T06:24:27.301202+01:00"`, 1.000001},
	} {
		l := read(t, `{"t":`+c.first+"}\n"+`{"t":`+c.second+"}\n")
		if len(l.Entries) != 2 || math.Abs(l.Entries[1].T-c.want) > 1e-12+1e-9*c.want {
			t.Errorf("%s to %s: %v, want %g", c.first, c.second, l.Entries, c.want)
		}
	}
}

// A line that is no entry is left out with its reason, and the others count.
func TestBadLines(t *testing.T) {
	long := `{"t":2,"x":"` + strings.Repeat("a", lineMost) + `"}`
	deep := `{"t":2,"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`
	for _, c := range []struct{ line, reason string }{
		{"garbage", "no JSON object"},
		{"[1]", "no JSON object"},
		{`{"t":NaN}`, "no JSON object"},
		{deep, "no JSON object"},
		{long, "longer than 64 KiB"},
		{`{"event":"send"}`, `no time "t"`},
		{`{"t":1e308}`, `"t" is no time`},
		{`{"t":99999999999999999999}`, `"t" is no time`},
		{`{"t":"yesterday"}`, "neither a number nor a date"},
		{`{"t":"2026-11-21T05:24:26Z"}`, "a date in some lines"},
		{`{"t":2,"frame_ms":-1}`, `"frame_ms" is no time`},
		{`{"t":2,"frame_ms":1e308}`, `"frame_ms" is no time`},
		{`{"t":2,"frame_ms":"fast"}`, `"frame_ms" is no time`},
	} {
		l := read(t, `{"t":1}`+"\n"+c.line+"\n\n"+`{"t":3,"frame_ms":16.5}`)
		if len(l.Entries) != 2 || l.BadCount != 1 || l.Bad[0].Line != 2 || !strings.Contains(l.Bad[0].Reason, c.reason) {
			t.Errorf("%.60s: %d entries, bad %v, want %q", c.line, len(l.Entries), l.Bad, c.reason)
		}
		if e := l.Entries[len(l.Entries)-1]; e.Line != 4 || e.Frame != 16.5 {
			t.Errorf("%.60s: the last entry is %+v", c.line, e)
		}
	}
	if _, err := Read("x", strings.NewReader("garbage\n")); !errors.Is(err, ErrNoLines) {
		t.Errorf("a file without a line: %v", err)
	}
}

// Events, numbers, other ends and counters are found under the names that games use.
func TestFields(t *testing.T) {
	l := read(t, `{"t":1,"event":"Sent","seq":7,"client_id":3,"mode":"notify"}
{"t":2,"event":"rx","sequence":9,"addr":"10.0.0.1:7"}
{"t":3,"sent":5,"counters":{"acked":4,"deep":{"no":1}},"rtt":66.5,"big":1e308}`)
	e := l.Entries
	if e[0].Kind != Send || e[0].Sequence != 7 || l.Peers[e[0].Peer] != "client_id 3" ||
		l.Streams[e[0].Stream] != "notify" {
		t.Errorf("the send is %+v", e[0])
	}
	if e[1].Kind != Receive || e[1].Sequence != 9 || l.Peers[e[1].Peer] != "10.0.0.1:7" {
		t.Errorf("the receipt is %+v", e[1])
	}
	got := map[string]float64{}
	for _, r := range l.Readings {
		got[l.Names[r.Name]] = r.Value
	}
	if len(got) != 4 || got["sent"] != 5 || got["counters.acked"] != 4 || got["rtt"] != 66.5 || got["big"] != 1e308 {
		t.Errorf("the counters are %v", got)
	}
}

// Any file is read without a panic, and what is kept is bounded by what it has.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"t":1,"event":"send","sequence":65535}` + "\n" + `{"t":2,"frame_ms":180}`, `{"t":-9e18}`,
		`{"t":"2026-01-02T03:04:05Z"}`,
		`{"t":1,"a":{"b":{"c":1}},"seq":-1}`, "\xff\xfe{}", `{"t":0.5` + strings.Repeat("9", 400) + `}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Read("x", strings.NewReader(string(data)))
		if err != nil {
			return
		}
		if len(l.Entries)+l.BadCount > l.Lines {
			t.Errorf("%d entries and %d bad lines of %d", len(l.Entries), l.BadCount, l.Lines)
		}
		for i := range l.Entries {
			if e := &l.Entries[i]; math.IsNaN(e.T) || math.IsInf(e.T, 0) || e.Frame < -1 || e.Frame > frameMost {
				t.Errorf("entry %+v", e)
			}
		}
		Align(l, Owner{}, &Trace{}, 0)
	})
}

package rebinding

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/ackscope/ackscope/capture"
	"github.com/ackscope/ackscope/internal/testenv"
)

// save writes datagrams to a capture file.
func save(t *testing.T, list []datagram) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "moved.pcapng")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := capture.NewWriter(out, capture.WriterOptions{Application: "ackscope"})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddInterface(capture.Interface{LinkType: linkRaw})
	if err != nil {
		t.Fatal(err)
	}
	src := framesOf(t, list)
	for i := range src.list {
		src.list[i].Interface = id
		if err := w.WriteFrame(&src.list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every command that names a flow names the one that it continues.
func TestOutputs(t *testing.T) {
	list := load(t, testenv.Capture(t, "reliable-clean.server.pcap.gz"))
	client, sent := busiest(list)
	path := save(t, move(pause(list, client, sent/2, 45*time.Second, 0), client, moved(client, false), sent/2, false))
	const reason = `A was 10\.77\.2\.1:\d+ in flow 1, likely: B's packets go on from \d+ to \d+, ` +
		`after 45 s without a packet of either side; an unrelated flow would fit as well with a chance of 0\.\d+ %`
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"flows", "-V"}, []string{`2 flows of 1 connection`, `(?m)^2 \(was 1\)  gaffer/reliable`, `(?m)^flow 2: ` + reason}},
		{[]string{"flows", "--json"}, []string{
			`"flow":2,.*"was":1,"was_addr":"10\.77\.2\.1:\d+","was_side":"a","was_certainty":"likely","was_chance":0\.00\d+,` +
				`"was_reason":"B's packets`,
		}},
		{[]string{"overview", "--all"}, []string{`2 flows of 1 connection`, `(?m)^flow 2 \(was 1\)  gaffer/reliable`}},
		{[]string{"overview", "--all", "--json"}, []string{`"flow":2,"was":1,`}},
		{[]string{"findings"}, []string{`rebound +A 10\.77\.2\.1:999`, `it went on here 45\.0 s after its last packet in flow 1`}},
		{[]string{"report", "--format", "markdown", "--replay=false"}, []string{`(?m)^## Flow 2 \(was 1\): `, `(?m)^` + reason}},
		{[]string{"report", "--format", "markdown", "--replay=false", "--flows", "1"}, []string{`(?m)^\| 2 \(was 1\) \| `}},
		{[]string{"report", "--replay=false", "-o", "-"}, []string{`>Flow 2 \(was 1\)</a>`, `>Flow 2 \(was 1\) <small>`, `A was 10\.77`}},
	} {
		out, err := exec.Command(testenv.Ackscope(t), append(c.args, path)...).Output()
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
		}
		for _, want := range c.want {
			if !regexp.MustCompile(want).Match(out) {
				t.Errorf("%v: nothing matches %s:\n%.4000s", c.args, want, out)
			}
		}
	}
}

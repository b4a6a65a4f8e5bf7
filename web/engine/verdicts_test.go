package engine_test

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ackscope/ackscope/cli/protocol"
	"github.com/ackscope/ackscope/cli/protocol/gaffer"
	"github.com/ackscope/ackscope/cli/protocol/riptide"
	"github.com/ackscope/ackscope/cli/protocol/srdp"
	"github.com/ackscope/ackscope/internal/rehost"
	"github.com/ackscope/ackscope/internal/testenv"
	"github.com/ackscope/ackscope/web/engine"
)

// found returns what an engine finds for the overview of another.
func found(t *testing.T, e *engine.Engine, args ...string) []byte {
	t.Helper()
	var out, said bytes.Buffer
	if code := e.Verdicts(&engine.Beside{}, args, &out, &said); code != 0 {
		t.Fatalf("%q: exit code %d: %s", args, code, said.Bytes())
	}
	return out.Bytes()
}

// TestVerdictsElsewhere: an overview is the same where another engine replays the capture, of honest
// sides and of those that diverge. It is the same too where that engine fails: it then says
// nothing, or half of a line, or speaks of another capture.
func TestVerdictsElsewhere(t *testing.T) {
	e := engine.New(protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol})
	list, err := filepath.Glob(filepath.Join(testenv.Module(t), "testdata", "pcaps", "*.pcap*"))
	if err != nil || len(list) < 100 {
		t.Fatal(len(list), err)
	}
	if !testenv.Whole() { // a part of them, and two that diverge
		var part []string
		for i := 0; i < len(list); i += 9 {
			part = append(part, list[i])
		}
		for _, side := range []string{"client", "server"} {
			part = append(part, testenv.Capture(t, "plain-le-stalebug-loss98."+side+".pcap.gz"))
		}
		list = part
	}
	diverge, skipped := 0, 0
	for i := range list {
		want := command(t, e, "overview", "--json", "--all", list[i])
		verdicts := found(t, e, list[i])
		if bytes.Contains(verdicts, []byte(`"Divergence":{`)) {
			diverge++
		}
		if bytes.Contains(verdicts, []byte(`"Reason":`)) {
			skipped++
		}
		other := found(t, e, list[(i+1)%len(list)])
		for name, given := range map[string]io.Reader{
			"found":   bytes.NewReader(verdicts),
			"second":  io.MultiReader(bytes.NewReader(other), bytes.NewReader(verdicts)),
			"nothing": strings.NewReader(""),
			"half":    bytes.NewReader(verdicts[:len(verdicts)/2]),
			"another": bytes.NewReader(other),
		} {
			var out, said bytes.Buffer
			e.Overview(&engine.Beside{Verdicts: given}, []string{"overview", "--json", "--all", list[i]}, &out, &said)
			if got := strings.TrimSuffix(out.String(), "\n"); got != strings.Join(want, "\n") {
				t.Fatalf("%s, %s: %s\ngot      %.900s\nexpected %.900s", filepath.Base(list[i]), name, said.Bytes(), got,
					strings.Join(want, "\n"))
			}
		}
	}
	if diverge == 0 || skipped == 0 {
		t.Errorf("%d captures have a divergence, and %d a flow that is not compared", diverge, skipped)
	}
}

// TestVerdictsRead: the verdicts are read, and not found again. One that is changed shows.
func TestVerdictsRead(t *testing.T) {
	e := engine.New(protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol})
	path := testenv.Capture(t, "u210_clean.client.pcap.gz")
	verdicts := bytes.Replace(found(t, e, path), []byte(`"Word":"conforms"`), []byte(`"Word":"changed"`), 1)
	var out, said bytes.Buffer
	beside := &engine.Beside{Verdicts: bytes.NewReader(verdicts)}
	if code := e.Overview(beside, []string{"overview", "--json", path}, &out, &said); code != 0 {
		t.Fatalf("exit code %d: %s", code, said.Bytes())
	}
	if !strings.Contains(out.String(), `"verdict":"changed"`) {
		t.Errorf("the overview does not have the verdict that was given: %s", out.Bytes())
	}
}

// TestTwoEngines: an overview is the same where another engine replays the capture at the same time.
// Both share the first run over Riptide: of one pair of hosts and of several, of one capture and of two.
func TestTwoEngines(t *testing.T) {
	here := engine.New(protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol})
	there := engine.New(protocol.Registry{gaffer.Protocol, riptide.Protocol, srdp.Protocol})
	hosts := filepath.Join(t.TempDir(), "hosts.pcapng")
	rehost.Simulated(t, hosts, "riptide", "--clients", "4", "--duration", "20s")
	fault := filepath.Join(t.TempDir(), "fault.pcapng")
	rehost.Simulated(t, fault, "riptide", "--clients", "3", "--fault", "window-shift", "--duration", "30s")
	one := testenv.Capture(t, "plain-le-stalebug-loss98.client.pcap.gz")
	traded, diverge := 0, 0
	for _, args := range [][]string{{hosts}, {fault}, {one}, {hosts, one}, {one, fault}, {"no-such.pcap"}} {
		var want bytes.Buffer
		expected := here.Run(append([]string{"overview", "--json", "--all"}, args...), &want, io.Discard)
		told := [2]chan []byte{make(chan []byte, 1), make(chan []byte, 1)}
		trade := func(share int) (trade func([]byte) []byte, end func()) {
			given := false
			give := func(own []byte) {
				given = true
				told[share] <- own
			}
			return func(own []byte) []byte {
					give(own)
					other := <-told[1-share]
					if len(own) > 0 && len(other) > 0 && share == 0 {
						traded++
					}
					return other
				}, func() {
					if !given {
						give(nil)
					}
				}
		}
		read, write := io.Pipe()
		go func() {
			with, end := trade(1)
			var found bytes.Buffer
			there.Verdicts(&engine.Beside{Trade: with}, args, &found, io.Discard)
			end()
			_, _ = write.Write(found.Bytes()) // the overview may have ended
			_ = write.Close()
		}()
		with, end := trade(0)
		var out, said bytes.Buffer
		code := here.Overview(&engine.Beside{Verdicts: read, Trade: with}, append([]string{"overview", "--json", "--all"},
			args...), &out, &said)
		end()
		_ = read.Close()
		if code != expected || out.String() != want.String() {
			t.Errorf("%q: exit code %d, expected %d: %s\ngot      %.900s\nexpected %.900s", args, code, expected, said.Bytes(),
				out.Bytes(), want.Bytes())
		}
		if strings.Contains(out.String(), `"verdict":"diverges"`) {
			diverge++
		}
	}
	if traded != 3 || diverge == 0 {
		t.Errorf("the engines shared %d first runs, expected 3; %d overviews have a divergence", traded, diverge)
	}
}
